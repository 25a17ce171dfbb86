"""Schedules of the equations whose elements nests compute where they are read, and of those that passes expand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.ir.primitive import (
    ArgReduce,
    Checked,
    Compare,
    Composite,
    Convert,
    Gather,
    Generate,
    IndexMap,
    Pointwise,
    Structured,
)
from tracer.ir.program import Atom, Equation, Var
from tracer.schedule.terms import cost
from tracer.schedule.terms.schedules import Schedule, Values, no_operands


def _gathered(equation: Equation, values: Values) -> Sequence[Atom]:
    return equation.inputs[:1]


POINTWISE: Final = Schedule(Pointwise, "", cost.pointwise_cost, operands_in_memory=no_operands)
COMPARE: Final = Schedule(Compare, "", cost.flops_of_results, operands_in_memory=no_operands)
CHECKED: Final = Schedule(Checked, "", cost.flops_of_results, operands_in_memory=no_operands)
CONVERT: Final = Schedule(Convert, "", cost.conversion_cost, operands_in_memory=no_operands)
IMAGINARY_PART: Final = Schedule(Structured, "imag", cost.moves_of_results, operands_in_memory=no_operands)
COMPLEX_PARTS: Final = Schedule(Structured, "complex", cost.moves_of_results, operands_in_memory=no_operands)
INDEX_MAP: Final = Schedule(IndexMap, "", cost.no_cost, operands_in_memory=no_operands)
COUNTER: Final = Schedule(Generate, "", cost.no_cost, operands_in_memory=no_operands)
GATHER: Final = Schedule(Gather, "", cost.moves_of_results, operands_in_memory=_gathered)

COMPOSITE: Final = Schedule(Composite, "", cost.flops_of_results)
ARG_REDUCE: Final = Schedule(ArgReduce, "", cost.flops_of_operand)
CALL: Final = Schedule(Structured, "call", cost.first_cost)
CUSTOM_JVP: Final = Schedule(Structured, "custom_jvp", cost.first_cost)
CUSTOM_VJP: Final = Schedule(Structured, "custom_vjp", cost.first_cost)


def permuted_array(atom: Atom, values: Values) -> Atom:
    """Return the array whose elements a value holds in another order of axes or directions, itself if none."""
    while isinstance(atom, Var) and atom in values.definitions:
        made = values.definitions[atom]
        if made.primitive.lower not in (IndexMap("transpose"), IndexMap("reverse")):
            break
        atom = made.inputs[0]
    return atom
