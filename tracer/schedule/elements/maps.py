"""Schedules of equations that nests compute where they are read, and of equations that passes expand."""

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
    Parts,
    Pointwise,
    Structured,
)
from tracer.ir.program import Atom, Equation, Var
from tracer.ir.types import size
from tracer.schedule.elements.puller import is_map, is_name
from tracer.schedule.terms import cost
from tracer.schedule.terms.schedules import Definitions, Schedule, Values, always, no_operands

_SLICES: Final = (IndexMap("slice"), IndexMap("squeeze"))
_PERMUTATIONS: Final = (IndexMap("transpose"), IndexMap("reverse"))


def _gathered(equation: Equation, values: Values) -> Sequence[Atom]:
    """Return the array that a gather reads: its operand, or the array of which that is a view.

    A stored view would be copied as a whole for each gather, even in a loop over slices of rows. A permuted array is
    copied where more elements are gathered than it has, which may then lie side by side.
    """
    operand = atom = equation.inputs[0]
    views = _SLICES + _PERMUTATIONS if size(equation.outputs[0].type) < size(operand.type) else _SLICES
    while isinstance(atom, Var) and (made := values.definitions.get(atom)) is not None:
        inserts_axes = made.primitive.lower == IndexMap("broadcast") and size(made.inputs[0].type) == size(atom.type)
        if made.primitive.lower not in views and not inserts_axes:
            break
        atom = made.inputs[0]
    stored = isinstance(atom, Var) and (atom not in values.definitions or not is_map(values.definitions[atom]))
    return (atom if stored and atom.type.shape else operand,)


def _moves_elements(equation: Equation, definitions: Definitions) -> bool:
    """Whether elements have other positions in the result than in the operand, whose memory would do otherwise."""
    return not is_name(equation)


POINTWISE: Final = Schedule(Pointwise, "", cost.pointwise_cost, operands_in_memory=no_operands, stores_anew=always)
COMPARE: Final = Schedule(Compare, "", cost.flops_of_results, operands_in_memory=no_operands, stores_anew=always)
CHECKED: Final = Schedule(Checked, "", cost.flops_of_results, operands_in_memory=no_operands, stores_anew=always)
CONVERT: Final = Schedule(Convert, "", cost.conversion_cost, operands_in_memory=no_operands, stores_anew=always)
PARTS: Final = Schedule(Parts, "", cost.moves_of_results, operands_in_memory=no_operands, stores_anew=always)
INDEX_MAP: Final = Schedule(IndexMap, "", cost.no_cost, operands_in_memory=no_operands, stores_anew=_moves_elements)
COUNTER: Final = Schedule(Generate, "", cost.no_cost, operands_in_memory=no_operands, stores_anew=always)
GATHER: Final = Schedule(Gather, "", cost.moves_of_results, operands_in_memory=_gathered, stores_anew=always)

COMPOSITE: Final = Schedule(Composite, "", cost.flops_of_results, stores_anew=always)
ARG_REDUCE: Final = Schedule(ArgReduce, "", cost.flops_of_operand)
CALL: Final = Schedule(Structured, "call", cost.first_cost)
CUSTOM_JVP: Final = Schedule(Structured, "custom_jvp", cost.first_cost)
CUSTOM_VJP: Final = Schedule(Structured, "custom_vjp", cost.first_cost)


def permuted_array(atom: Atom, values: Values, *, keeps_rows: bool = False) -> Atom:
    """Return the array whose elements a value holds in another order of axes or directions, itself if none.

    keeps_rows: go no further than the last two axes stay where they are.
    """
    while isinstance(atom, Var) and atom in values.definitions:
        made = values.definitions[atom]
        if made.primitive.lower not in (IndexMap("transpose"), IndexMap("reverse")):
            break
        rank = len(atom.type.shape)
        if keeps_rows and made.params.get("permutation", ())[-2:] != (rank - 2, rank - 1):
            break
        atom = made.inputs[0]
    return atom
