"""Programs run equation by equation, those that round in their own way by interpreted loops of their own.

Nothing is fused, and control flow is Python's. What the passes, the schedule and LLVM make of the whole program must
have the same bits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.laws.machines import Native, run_loops
from tests.laws.tolerances import tolerance_of
from tests.laws.values import Array
from tracer.ir import dtypes
from tracer.ir.loop.check import check_module
from tracer.ir.primitive import NoRule
from tracer.ir.program import Atom, Equation, Literal, Program, Var
from tracer.ir.types import ArrayType
from tracer.passes.pipeline import optimize
from tracer.primitives.base import reference
from tracer.primitives.catalogue import CATALOGUE
from tracer.schedule.pipeline import schedule

# the interpreter has NumPy in the place of these, which sums in another order
BY_LIBRARY = ("dot_general", "conv", "fft")


def nesting() -> Iterator[ModuleType]:
    """The modules of primitives whose references run nested programs."""
    rules = [p.reference for p in CATALOGUE if not isinstance(p.reference, NoRule | np.ufunc)]
    for name in {rule.__module__ for rule in rules}:
        module = sys.modules.get(name)
        if module is not None and name != reference.__name__ and hasattr(module, "run_reference"):
            yield module


def run_by_leaves(program: Program, values: Sequence[Any]) -> dict[Var, Any]:
    """Every value of the program on arrays; nested programs run in the same way."""
    with ExitStack() as stack:
        for module in nesting():
            stack.enter_context(patch.object(module, "run_reference", _outputs))
        return _values(program, values)


def _outputs(program: Program, values: Sequence[Any]) -> list[Any]:
    known = _values(program, values)
    return [_read(atom, known) for atom in program.outputs]


def _values(program: Program, values: Sequence[Any]) -> dict[Var, Any]:
    known: dict[Var, Any] = dict(zip(program.inputs, values, strict=True))
    for equation in program.equations:
        if is_leaf(equation):
            given = [np.ascontiguousarray(known[atom]) for atom in equation.inputs if isinstance(atom, Var)]
            outputs: Sequence[Any] = _leaf(_Key(equation))(given)
        else:
            operands = [_read(atom, known) for atom in equation.inputs]
            outputs = reference.reference_outputs(equation.primitive, operands, equation.params)
        for variable, value in zip(equation.outputs, outputs, strict=True):
            is_array = isinstance(variable.type, ArrayType)
            known[variable] = np.broadcast_to(value, variable.type.shape) if is_array else value
    return known


def _read(atom: Atom, known: dict[Var, Any]) -> Any:
    return np.asarray(atom.value, atom.type.dtype) if isinstance(atom, Literal) else known[atom]


def is_leaf(equation: Equation) -> bool:
    """Whether the equation rounds in its own way: it has a tolerance. Elsewhere the reference has the bits of loops."""
    types = [atom.type for atom in (*equation.inputs, *equation.outputs)]
    if any(True for _ in equation.nested()) or not all(isinstance(type, ArrayType) for type in types):
        return False
    is_complex = any(dtypes.is_complex(type.dtype) for type in types if isinstance(type, ArrayType))
    results = [v.type.dtype for v in equation.outputs]  # type: ignore[union-attr]
    return any(tolerance_of(equation.primitive.name, dtype, is_complex=is_complex) is not None for dtype in results)


class _Key:
    """An equation by what its loops depend on."""

    def __init__(self, equation: Equation) -> None:
        given = [Var(a.type) if isinstance(a, Var) else a for a in equation.inputs]
        outputs = tuple(Var(v.type) for v in equation.outputs)
        leaf = Equation(equation.primitive, tuple(given), equation.params, outputs, equation.source)
        self.program = Program(tuple(a for a in given if isinstance(a, Var)), (leaf,), outputs, "leaf")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.program == other.program

    def __hash__(self) -> int:
        return hash(self.program)


@lru_cache(maxsize=4096)
def _leaf(key: _Key) -> Callable[[Sequence[Array]], list[Array]]:
    scheduled = schedule(optimize(key.program))
    if key.program.equations[0].primitive.name in BY_LIBRARY:
        return Native(scheduled).run
    check_module(scheduled.module)
    return partial(run_loops, scheduled, verify=False)
