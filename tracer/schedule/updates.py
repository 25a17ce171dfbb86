"""Slices that are updated: whether new values are computed where they are stored, or have memory of their own first.

An update that has nothing to do with the array goes into its memory at once. One that is computed from the array, as
in a stencil with fixed borders, needs the old values while it is stored: if it is most of the array, the result has
other memory, and only what is around it is copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tracer.ir.primitive import Composite, Join, Library, Reduce, Scatter, Structured
from tracer.ir.program import Atom, Equation, Literal, Program, Var
from tracer.ir.types import size
from tracer.ir.visit import use_counts
from tracer.primitives.lanes import mask_position
from tracer.schedule.elements import is_map

_FAR = 100  # equations before an update that are looked at


def is_update(equation: Equation) -> bool:
    """Whether the equation puts a slice of new values into an array."""
    return equation.primitive.name == "dynamic_update_slice"


def is_stored_at_once(equation: Equation, definitions: Mapping[Var, Equation]) -> bool:
    """Whether the new values of an update are computed where they are stored."""
    reads = reads_its_array(equation, definitions)
    return reads is False or (reads is True and _is_most(equation))


def is_made_anew(equation: Equation, definitions: Mapping[Var, Equation]) -> bool:
    """Whether an array is stored by loops of its own, wherever it is wanted: not in the memory of an operand."""
    match equation.primitive.lower:
        case Join() | Reduce() | Library("dot") | Composite():
            return True
        case Scatter():
            stored = is_update(equation) and is_stored_at_once(equation, definitions)
            return stored and reads_its_array(equation, definitions) is True
        case _:
            return is_map(equation) and equation.primitive.name not in ("reshape", "squeeze")


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


class Versions:
    """Which values of a program are versions of one array, so that one memory can hold them, one after another."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def definitions(self) -> dict[Var, Equation]:
        return {v: e for e in self.program.equations for v in e.outputs}

    @cached_property
    def _uses(self) -> dict[Var, int]:
        return use_counts(self.program)

    def of(self, atom: Var) -> list[Var]:
        """The value, what it is an updated version of, and so on: values that are read to be updated alone."""
        chain, definitions = [atom], self.definitions
        while (equation := definitions.get(chain[-1])) is not None:
            before = _updated(equation, chain[-1], definitions)
            if not isinstance(before, Var) or before not in definitions or self._uses[before] > 1:
                break
            if definitions[before].primitive.name in ("reshape", "squeeze"):  # a name for memory that is there
                break
            chain.append(before)
        return chain


def _updated(equation: Equation, result: Var, definitions: Mapping[Var, Equation]) -> Atom | None:
    """The array that a scatter, an update or a loop changes into a result; None where it may have to be kept."""
    params, position = equation.params, equation.outputs.index(result)
    match equation.primitive.lower:
        case Scatter():
            first = 0 if reads_its_array(equation, definitions) is False else None
        case Structured("scan") if position < params["carries"]:
            first = params["consts"]
        case Structured("while") if mask_position(params) is None:
            first = params["cond_consts"] + params["body_consts"]
        case _:
            first = None
    return None if first is None else equation.inputs[first + position]


def _is_most(equation: Equation) -> bool:
    """Whether the new values are most of the array, at a place that is known."""
    array, new, *starts = equation.inputs
    return all(isinstance(start, Literal) for start in starts) and 2 * size(new.type) > size(array.type)
