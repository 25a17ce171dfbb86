"""Verifier of programs: the invariants of every program, traced, transformed or read.

- Every variable is defined once, by an input or an equation, before its first use and in the same program.
- Nested programs are closed and well formed themselves.
- An equation's outputs have exactly the types that its primitive infers, weak flags included.
- Literals are scalars of their type's dtype; parameters hold no arrays.
- A faulting equation whose primitive has a guard passes a boolean predicate there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from tracer.errors import InternalError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Effect
from tracer.ir.program import Equation, Literal, Program, Var, infer_types
from tracer.ir.text import equation_text, name_text, program_text
from tracer.ir.types import ArrayType, Float0Type, KeyType, StackType

NOTE_LINES = 200  # of the program, attached to the error


def check_program(program: Program) -> Program:
    """Return the program if it is well formed.

    Raises InternalError with the equation and the reason otherwise; the program is attached as a note.
    """
    _check(program, name_text(program.name), set())
    return program


def _check(program: Program, place: str, checked: set[int]) -> None:
    """Check a program. `place` is its path in errors; `checked` holds the ids of nested programs already seen."""
    defined: set[Var] = set()
    for position, variable in enumerate(program.inputs):
        if not isinstance(variable, Var):
            _fail(program, place, None, f"input {position} is not a variable: {variable!r}")
        if variable in defined:
            _fail(program, place, None, f"input {position} is the same variable as an earlier input")
        defined.add(variable)
    for equation in program.equations:
        reason = (
            _atoms(equation.inputs, "operand", defined, program)
            or _params(equation)
            or _types(equation)
            or _guard(equation)
            or _definitions(equation, defined)
        )
        if reason is not None:
            _fail(program, place, equation, reason)
        for label, nested in equation.nested():
            if id(nested) not in checked:
                checked.add(id(nested))
                _check(nested, f"{label} of {equation.primitive.name} in {place}", checked)
    reason = _atoms(program.outputs, "output", defined, program)
    if reason is not None:
        _fail(program, place, None, reason)


# Each check below returns the defect as text, or None.


def _atoms(atoms: Sequence[object], role: str, defined: set[Var], program: Program) -> str | None:
    for position, atom in enumerate(atoms):
        if isinstance(atom, Literal):
            reason = _literal(atom)
            if reason is not None:
                return f"{role} {position}, a literal, {reason}"
        elif not isinstance(atom, Var):
            return f"{role} {position} is neither a variable nor a literal: {atom!r}"
        elif atom not in defined:
            later = any(atom in equation.outputs for equation in program.equations)
            fault = "is used before its definition" if later else "is not defined in this program"
            return f"{role} {position}, of type {atom.type}, {fault}"
    return None


def _literal(literal: Literal) -> str | None:
    type, value = literal.type, literal.value
    if type.__class__ is not ArrayType or type.shape != ():
        return f"has the type {type}, but literals are scalars"
    if not isinstance(value, np.generic):
        return f"holds a {value.__class__.__name__}, not a NumPy scalar"
    if value.dtype != type.dtype:
        return f"holds a value of {value.dtype}, but its type is {type}"
    return None


def _params(equation: Equation) -> str | None:
    for name, value in equation.params.items():
        if value.__class__ not in _SIMPLE and any(map(_is_array, _leaves(value))):
            return f"parameter {name!r} holds an array: arrays are operands"
    return None


_SIMPLE = frozenset((int, float, bool, str, type(None), Program, np.dtype))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(tuple(value.values()))
    else:
        yield value


def _is_array(value: Any) -> bool:
    if isinstance(value, np.generic | np.dtype | type | Program):
        return False
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def _types(equation: Equation) -> str | None:
    try:
        inferred = infer_types(equation.primitive, equation.inputs, equation.params)
    except Exception as error:  # a rule that fails in any way could not have typed this equation
        return f"its types cannot be inferred: {error.__class__.__name__}: {error}"
    outputs = equation.outputs
    if len(inferred) != len(outputs):
        return f"it has {len(outputs)} outputs, but {equation.primitive.name} gives {len(inferred)}"
    for position, (variable, type) in enumerate(zip(outputs, inferred, strict=True)):
        if variable.type is not type and variable.type != type:
            if not _is_type(type):  # parameters of the wrong type came into it
                return f"output {position} has the type {variable.type}, but no type is inferred from the parameters"
            return f"output {position} has the type {variable.type}, but {type} is inferred"
    return None


def _is_type(type: object) -> bool:
    """Whether a rule gave a type: an array's has a dtype that exists, and sizes."""
    if isinstance(type, StackType):
        return _is_type(type.item)
    if not isinstance(type, ArrayType):
        return isinstance(type, KeyType | Float0Type)
    known: object = type.dtype
    return isinstance(known, np.dtype) and known in dtypes.SHORT_NAMES and all(isinstance(n, int) for n in type.shape)


def _guard(equation: Equation) -> str | None:
    guard = equation.primitive.guard
    if guard is None or Effect.FAULT not in equation.effects:
        return None
    if guard >= len(equation.inputs):
        return f"it may fault, but has no operand {guard} to guard it"
    type = equation.inputs[guard].type
    if not isinstance(type, ArrayType) or not dtypes.is_bool(type.dtype):
        return f"it may fault, but operand {guard}, its guard, is {type} instead of bool"
    return None


def _definitions(equation: Equation, defined: set[Var]) -> str | None:
    for position, variable in enumerate(equation.outputs):
        if variable in defined:
            return f"output {position}, of type {variable.type}, is already defined"
        defined.add(variable)
    return None


def _fail(program: Program, place: str, equation: Equation | None, reason: str) -> NoReturn:
    shown = [] if equation is None else [equation_text(program, equation)]
    error = InternalError(message(f"{place} is not a well-formed program", *shown, reason))
    lines = program_text(program).split("\n")
    if len(lines) > NOTE_LINES:
        lines = [*lines[:NOTE_LINES], f"... {len(lines) - NOTE_LINES} more lines"]
    error.add_note("\n".join(lines))
    raise error
