"""The verifier: what must hold of every program, whoever wrote it.

- Every variable is defined once, by an input or an equation, before its first use and in the same program.
- Nested programs are closed and well formed themselves.
- An equation's outputs have exactly the types that its primitive infers, weak flags included.
- Literals are scalars of their type's dtype; parameters hold no arrays.
- A faulting equation whose primitive has a guard passes a boolean predicate there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from tracer.errors import InternalError, TracerError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Effect
from tracer.ir.program import Atom, Equation, Literal, Program, Var, infer_types
from tracer.ir.text import equation_text, name_text, program_text
from tracer.ir.types import ArrayType

NOTE_LINES = 200  # of the program, attached to the error


def check_program(program: Program) -> Program:
    """The same program, if it is well formed.

    Raises InternalError with the equation and the reason otherwise; the program is attached as a note.
    """
    _check(program, name_text(program.name), set())
    return program


def _check(program: Program, name: str, checked: set[Program]) -> None:
    """`name` says where the program is found; `checked` holds the nested programs that are known to be right."""
    defined: set[Var] = set()
    for position, variable in enumerate(program.inputs):
        if not isinstance(variable, Var):
            _fail(program, name, None, f"input {position} is no variable but {variable!r}")
        if variable in defined:
            _fail(program, name, None, f"input {position} is the same variable as an input before it")
        defined.add(variable)
    for equation in program.equations:
        reason = _operands(equation.inputs, defined, program) or _types(equation) or _rest(equation)
        if reason is None:
            reason = _definitions(equation, defined)
        if reason is not None:
            _fail(program, name, equation, reason)
        for label, nested in equation.nested():
            key = id(nested)
            if key not in checked:
                checked.add(key)
                _check(nested, f"{name}, {label} of {equation.primitive.name}", checked)
    reason = _operands(program.outputs, defined, program, "output")
    if reason is not None:
        _fail(program, name, None, reason)
