"""Schedules as data: one record for each way of lowering, kept in the file that writes it.

`dispatch.SCHEDULES` lists them all. Fusion asks a record which operands must be in memory, plans of memory which
operand a result overwrites. The writer of a block calls its `write`, and the reports of cost call its `cost`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tracer.errors import InternalError
from tracer.ir.primitive import Alias, Composite, Gather, IndexMap, Join, Library, Scatter, Structured
from tracer.ir.program import Atom, Equation, Var
from tracer.ir.target import Limits
from tracer.schedule.terms.cost import Cost, Nested

CHEAP: Final = 2
"""Operations of an element that are repeated rather than stored."""


class Values(NamedTuple):
    """Facts about the values of a block, by which a schedule chooses the operands to materialise.

    definitions: the equations that compute them. costs: operations for one element, with all that is inline before it.
    """

    definitions: Mapping[Var, Equation]
    costs: Mapping[Var, int]


def all_operands(equation: Equation, values: Values) -> Sequence[Atom]:
    """Return all operands: a routine reads arrays in memory."""
    return equation.inputs


def no_operands(equation: Equation, values: Values) -> Sequence[Atom]:
    """Return no operands: loops compute elements where they are read."""
    return ()


Definitions = Mapping[Var, Equation]


def never(equation: Equation, definitions: Definitions) -> bool:
    """Return False."""
    return False


def always(equation: Equation, definitions: Definitions) -> bool:
    """Return True."""
    return True


def no_overwritten(equation: Equation, position: int, definitions: Definitions) -> Atom | None:
    """Return None: the operands stay unchanged."""
    return None


@dataclass(frozen=True, slots=True)
class Schedule:
    """One way of lowering.

    lowering, kind: the lowering record that it is for, and its `kind`, empty for every kind. cost: work of an equation,
    from the costs of its nested programs. write: writes an equation that is no part of a nest, given its block's writer
    (Any: `BlockWriter` stands above this file). None where passes expand the equation or nests compute its elements.
    operands_in_memory: operands that must be arrays in memory. stores_anew: whether loops of its own store the whole
    result, given the equations before it. overwritten: the operand whose memory the result at a position keeps, with
    changes. None where the operand may have to stay.
    """

    lowering: type
    kind: str
    cost: Callable[[Equation, Nested], Cost]
    write: Callable[[Any, Equation], None] | None = None
    operands_in_memory: Callable[[Equation, Values], Sequence[Atom]] = all_operands
    stores_anew: Callable[[Equation, Definitions], bool] = never
    overwritten: Callable[[Equation, int, Definitions], Atom | None] = no_overwritten


class Schedules:
    """Records by lowering and kind, and the limits of the planner that reads them."""

    def __init__(self, records: Sequence[Schedule], limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._records = {(record.lowering, record.kind): record for record in records}
        assert len(self._records) == len(records), "two schedules for one lowering"

    def of(self, equation: Equation) -> Schedule:
        """Return the record of an equation's lowering. Raises InternalError where there is none."""
        lower = equation.primitive.lower
        found = self._records.get((type(lower), _kind(lower))) or self._records.get((type(lower), ""))
        if found is None:
            raise InternalError(f"{equation.primitive.name} has no schedule: {lower}")
        return found

    def overwritten(self, equation: Equation, result: Var, definitions: Definitions) -> Atom | None:
        """Return the array that the equation changes into a result, or None where that may have to be kept."""
        return self.of(equation).overwritten(equation, equation.outputs.index(result), definitions)

    def write(self, writer: Any, equation: Equation) -> None:
        """Write an equation by its schedule, given its block's writer. Raises InternalError where there is none."""
        write = self.of(equation).write
        if write is None:
            raise InternalError(f"{equation.primitive.name} has no schedule: {equation.primitive.lower}")
        write(writer, equation)


def _kind(lower: object) -> str:
    match lower:
        case IndexMap(kind) | Join(kind) | Gather(kind) | Alias(kind) | Library(kind) | Structured(kind):
            return str(kind)
        case Scatter(kind=kind) | Composite(kind=kind):
            return str(kind)
        case _:
            return ""
