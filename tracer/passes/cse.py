"""Common subexpression elimination: an equation equal to an earlier one is replaced by it, and by its source line.

Nested programs compare by their digests. Sums and products are not reassociated. Operands of commutative primitives are
ordered, except of complex products, whose parts may be contracted differently.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tracer.ir import dtypes
from tracer.ir.digest import params_key
from tracer.ir.primitive import Effect, Params, Structured
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.types import ArrayType, StackType
from tracer.ir.visit import substitute, substitute_atoms
from tracer.passes.base.rewrite import nested_first
from tracer.primitives.base.shapes import optimization_barrier_p


def _merge(program: Program) -> Program:
    known: dict[Any, Equation] = {}
    numbers: dict[Var, int] = {variable: number for number, variable in enumerate(program.inputs)}
    replaced: dict[Var, Atom] = {}
    kept: list[Equation] = []
    for original in program.equations:
        equation = substitute(original, replaced) if replaced else original
        key = equation_key(equation, numbers) if _may_merge(equation) else None
        earlier = None if key is None else known.setdefault(key, equation)
        if earlier is None or earlier is equation:
            kept.append(equation)
            for variable in equation.outputs:
                numbers[variable] = len(numbers)
        else:
            replaced.update(zip(equation.outputs, earlier.outputs, strict=True))
    if len(kept) == len(program.equations):
        return program
    return replace(program, equations=tuple(kept), outputs=substitute_atoms(program.outputs, replaced))


def _may_merge(equation: Equation) -> bool:
    """Whether the equation may be merged with an equal one.

    Barriers stay apart: recomputation relies on it. A call into Python runs as often as the user made it. Stacks stay
    apart, too: the schedule changes them in place.
    """
    primitive = equation.primitive
    if primitive is optimization_barrier_p or (primitive.effects and Effect.IO in equation.effects):
        return False
    if primitive.lower == Structured("callback"):
        return False
    return not any(type(variable.type) is StackType for variable in equation.outputs)


def equation_key(equation: Equation, numbers: dict[Var, int]) -> Any:
    """Return a key that is equal for equations that compute equal values. `numbers` names the variables."""
    inputs: list[Any] = [numbers[a] if type(a) is Var else (a.type, a.bits) for a in equation.inputs]  # type: ignore[union-attr]
    if equation.primitive.commutative and not _is_complex(equation.inputs[0]) and _order(inputs[1]) < _order(inputs[0]):
        inputs[:2] = inputs[1], inputs[0]
    holds = any(True for _ in equation.nested()) if equation.params else False
    return (equation.primitive, tuple(inputs), _Compared(equation.params) if holds else params_key(equation.params))


class _Compared:
    """Parameters with programs, which are compared where everything else is equal: their digests take long."""

    __slots__ = ("params",)

    def __init__(self, params: Params) -> None:
        self.params = params

    def __hash__(self) -> int:
        return len(self.params)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Compared) and params_key(self.params) == params_key(other.params)


def _order(key: Any) -> tuple[bool, Any]:
    """Order variables by number, then literals by their bits."""
    return (False, key) if isinstance(key, int) else (True, key[1])


def _is_complex(atom: Atom) -> bool:
    return isinstance(atom.type, ArrayType) and dtypes.is_complex(atom.type.dtype)


cse = nested_first(_merge)
"""Merge equal equations, nested programs included."""
