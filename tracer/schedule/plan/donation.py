"""Donated operands: results that are computed in the memory of an operand that the caller has given up.

An operand's memory can serve one result of equal storage: the operand itself, the result of a chain of updates of it,
loops included, or an elementwise function of it after its last other read. All other results have memory of their
own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tracer.ir.program import Program, Var
from tracer.ir.types import same_up_to_weakness, size
from tracer.schedule.plan.fusion import plan_block
from tracer.schedule.plan.update_chains import Versions, updated
from tracer.schedule.terms.schedules import Schedules


@dataclass(frozen=True, slots=True)
class Donor:
    """An operand, by its index, that gives its memory to a result. is_updated: the result is an update of the operand,
    so the block that computes it takes the memory over itself.
    """

    operand: int
    is_updated: bool = False


def donors_of(program: Program, schedules: Schedules, donated: Collection[int]) -> dict[int, Donor]:
    """Return, by the indices of results, the donated operands whose memory they can have."""
    found: dict[int, Donor] = {}
    if not donated:
        return found
    chooser = _Chooser(program, schedules)
    left = sorted(donated)
    for number, atom in enumerate(program.outputs):
        first = isinstance(atom, Var) and not any(atom is other for other in program.outputs[:number])
        donor = next(chooser.candidates(atom, left), None) if first and isinstance(atom, Var) else None
        if donor is not None:
            found[number] = donor
            left.remove(donor.operand)
    return found


class _Chooser:
    def __init__(self, program: Program, schedules: Schedules) -> None:
        self.program = program
        self.plan = plan_block(program, schedules)
        self.versions = Versions(program, self.plan)

    def candidates(self, result: Var, operands: Collection[int]) -> Iterator[Donor]:
        """Yield the operands whose memory a result can take over, in order of preference."""
        inputs, definitions = self.program.inputs, self.versions.definitions
        if not result.type.shape or not size(result.type):
            return
        fitting = {n: inputs[n] for n in operands if same_up_to_weakness(inputs[n].type, result.type)}
        if result not in definitions:
            yield from (Donor(n) for n, operand in fitting.items() if operand is result)
            return
        version = self.versions.of(result)[-1]
        equation = definitions[version]
        before = updated(equation, version, definitions)
        for number, operand in fitting.items():
            if operand is before and self.plan.last_read[operand] <= self.plan.step_of.get(version, -1):
                yield Donor(number, is_updated=True)
        for number, operand in fitting.items():
            if self.plan.may_overwrite(operand, version, equation):
                yield Donor(number)
