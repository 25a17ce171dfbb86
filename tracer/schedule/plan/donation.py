"""Donated operands: results that are computed in the memory of an operand that the caller has given up.

An operand's memory can serve one result of equal storage. The result is the operand itself or a chain of its updates,
loops included. It may also be an elementwise function after the operand's last other read. All other results have
memory of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tracer.ir.program import Program, Var
from tracer.ir.types import Type, size, strong
from tracer.schedule.plan.steps import BlockPlan
from tracer.schedule.plan.update_chains import Versions
from tracer.schedule.terms.schedules import Schedules


@dataclass(frozen=True, slots=True)
class Donor:
    """An operand, by its index, that gives its memory to a result.

    is_updated: the result is an update of the operand, so the block that computes it takes the memory over itself.
    """

    operand: int
    is_updated: bool = False


def donors_of(program: Program, plan: BlockPlan, schedules: Schedules, donated: Collection[int]) -> dict[int, Donor]:
    """Return, by the indices of results, the donated operands whose memory they can have. plan: the program's."""
    found: dict[int, Donor] = {}
    if not donated:
        return found
    chooser = _Chooser(program, plan, schedules)
    left: dict[Type, list[int]] = {}  # a result only takes the memory of an operand of its type
    for operand in sorted(donated):
        left.setdefault(strong(program.inputs[operand].type), []).append(operand)
    seen: set[Var] = set()
    for number, atom in enumerate(program.outputs):
        if not isinstance(atom, Var) or atom in seen:
            continue
        seen.add(atom)
        fitting = left.get(strong(atom.type), [])
        donor = next(chooser.candidates(atom, fitting), None)
        if donor is not None:
            found[number] = donor
            fitting.remove(donor.operand)
    return found


class _Chooser:
    def __init__(self, program: Program, plan: BlockPlan, schedules: Schedules) -> None:
        self.program = program
        self.plan = plan
        self.versions = Versions(program, plan, schedules)

    def candidates(self, result: Var, operands: Collection[int]) -> Iterator[Donor]:
        """Yield the operands, all of the result's type, whose memory it can take over, in order of preference."""
        inputs, definitions = self.program.inputs, self.versions.definitions
        if not result.type.shape or not size(result.type):
            return
        fitting = {n: inputs[n] for n in operands}
        if result not in definitions:
            yield from (Donor(n) for n, operand in fitting.items() if operand is result)
            return
        version = self.versions.of(result)[-1]
        equation = definitions[version]
        before = self.versions.before(version)
        for number, operand in fitting.items():
            if operand is before and self.plan.last_read[operand] <= self.plan.step_of.get(version, -1):
                yield Donor(number, is_updated=True)
        for number, operand in fitting.items():
            if self.plan.may_overwrite(operand, version, equation):
                yield Donor(number)
