"""Updates of slices: whether new values are computed where they are stored, or have memory of their own first.

An update independent of the array goes into its memory at once. So does an update that reads, element by element, only
the elements it replaces, as in `u.at[1:-1].add(f(v))`. An update that reads other elements, as in a stencil with fixed
borders, needs the old values during its stores. If it is most of the array, the result has other memory, and only
elements around the update are copied.
"""

from __future__ import annotations

from collections.abc import Mapping

from tracer.ir.primitive import Compare, Convert, IndexMap, Pointwise, Scatter
from tracer.ir.program import Atom, Equation, Literal, Var
from tracer.ir.types import size
from tracer.schedule.elements.puller import is_map

_FAR = 100  # equations before an update that are looked at


def is_update(equation: Equation) -> bool:
    """Whether the equation puts a slice of new values into an array."""
    lower = equation.primitive.lower
    return isinstance(lower, Scatter) and lower.kind == "slice"


def is_stored_at_once(equation: Equation, definitions: Mapping[Var, Equation]) -> bool:
    """Whether the new values of an update are computed where they are stored."""
    reads = reads_its_array(equation, definitions)
    return reads is False or (reads is True and is_most(equation))


def is_computed_in_place(equation: Equation, definitions: Mapping[Var, Equation]) -> bool:
    """Whether new values are computed from the array while they are stored."""
    stored = is_update(equation) and is_stored_at_once(equation, definitions)
    return stored and reads_its_array(equation, definitions) is True


def reads_its_array(equation: Equation, definitions: Mapping[Var, Equation]) -> bool | None:
    """Whether an update or scatter computes its values or indices from elements of the array that it may have replaced.

    Returns None where that is unknown.
    """
    array, place = equation.inputs[0], _start(equation)
    waiting = [(atom, place is not None and n == 0) for n, atom in enumerate(equation.inputs[1:])]
    seen: set[tuple[Atom, bool]] = set()
    while waiting:
        atom, same = waiting.pop()  # same: it is read at the elements of the update
        if atom is array:
            return True
        if not isinstance(atom, Var) or (atom, same) in seen:
            continue
        seen.add((atom, same))
        before = definitions.get(atom)
        if before is not None and is_map(before) and not (same and _takes_slice(before, array, place)):
            waiting += [(operand, same and _keeps_indices(before)) for operand in before.inputs]
        if len(seen) > _FAR:
            return None
    return False


def _start(equation: Equation) -> tuple[int, ...] | None:
    """Return the start of an update, or None where it is not concrete."""
    starts = equation.inputs[2:]
    if not is_update(equation) or not all(isinstance(start, Literal) for start in starts):
        return None
    return tuple(int(start.value) for start in starts if isinstance(start, Literal))


def _takes_slice(equation: Equation, array: Atom, place: tuple[int, ...] | None) -> bool:
    """Whether the equation takes a slice of an array from there."""
    params = equation.params
    if equation.primitive.lower != IndexMap("slice") or equation.inputs[0] is not array:
        return False
    return params["start_indices"] == place and set(params["strides"]) == {1}


def _keeps_indices(equation: Equation) -> bool:
    """Whether an element is computed from elements of the operands that have its index."""
    return isinstance(equation.primitive.lower, Pointwise | Compare | Convert)


def is_most(equation: Equation) -> bool:
    """Whether the new values of an update are most of the array, at a concrete index."""
    array, new, *starts = equation.inputs
    return all(isinstance(start, Literal) for start in starts) and 2 * size(new.type) > size(array.type)
