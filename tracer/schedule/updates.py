"""Slices that are updated: whether new values are computed where they are stored, or have memory of their own first.

An update that has nothing to do with the array goes into its memory at once. One that is computed from the array, as
in a stencil with fixed borders, needs the old values while it is stored: if it is most of the array, the result has
other memory, and only what is around it is copied.
"""

from __future__ import annotations

from collections.abc import Mapping

from tracer.ir.primitive import Composite, Join, Library, Reduce, Scatter
from tracer.ir.program import Equation, Literal, Var
from tracer.ir.types import size
from tracer.schedule.elements import is_map, is_name

_FAR = 100  # equations before an update that are looked at


def is_update(equation: Equation) -> bool:
    """Whether the equation puts a slice of new values into an array."""
    return equation.primitive.name == "dynamic_update_slice"


def is_stored_at_once(equation: Equation, definitions: Mapping[Var, Equation]) -> bool:
    """Whether the new values of an update are computed where they are stored."""
    reads = reads_its_array(equation, definitions)
    return reads is False or (reads is True and _is_most(equation))


def is_computed_in_place(equation: Equation, definitions: Mapping[Var, Equation]) -> bool:
    """Whether new values are computed from the array while they are stored."""
    stored = is_update(equation) and is_stored_at_once(equation, definitions)
    return stored and reads_its_array(equation, definitions) is True


def is_made_anew(equation: Equation, definitions: Mapping[Var, Equation]) -> bool:
    """Whether an array is stored by loops of its own, wherever it is wanted: not in the memory of an operand."""
    match equation.primitive.lower:
        case Join() | Reduce() | Library("dot") | Composite():
            return True
        case Scatter():
            return is_computed_in_place(equation, definitions)
        case _:
            return is_map(equation) and not is_name(equation)


def reads_its_array(equation: Equation, definitions: Mapping[Var, Equation]) -> bool | None:
    """Whether an update or scatter computes what it stores, or where, from the array, element by element; None where
    that is not clear."""
    array = equation.inputs[0]
    waiting, seen = list(equation.inputs[1:]), set[Var]()
    while waiting:
        atom = waiting.pop()
        if atom is array:
            return True
        if not isinstance(atom, Var) or atom in seen:
            continue
        seen.add(atom)
        before = definitions.get(atom)
        if before is not None and is_map(before):
            waiting += before.inputs
        if len(seen) > _FAR:
            return None
    return False


def _is_most(equation: Equation) -> bool:
    """Whether the new values are most of the array, at a place that is known."""
    array, new, *starts = equation.inputs
    return all(isinstance(start, Literal) for start in starts) and 2 * size(new.type) > size(array.type)
