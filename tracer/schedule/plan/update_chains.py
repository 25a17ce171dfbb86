"""Versions of one array: values that follow each other in one memory, since each is the former one, updated."""

from __future__ import annotations

from functools import cached_property

from tracer.ir.program import Atom, Equation, Program, Var
from tracer.schedule.elements.in_place_updates import is_update, reads_its_array
from tracer.schedule.elements.puller import is_name
from tracer.schedule.plan.fusion import plan_block
from tracer.schedule.plan.steps import BlockPlan, Rename
from tracer.schedule.terms.schedules import Schedules


class Versions:
    """Which values of a program are versions of one array, so that one memory can hold them, one after another."""

    def __init__(self, program: Program, plan: BlockPlan, schedules: Schedules) -> None:
        self.program = program
        self.plan = plan
        self.schedules = schedules

    @cached_property
    def definitions(self) -> dict[Var, Equation]:
        return {v: e for e in self.program.equations for v in e.outputs}

    @cached_property
    def _readers(self) -> dict[Var, list[Equation]]:
        found: dict[Var, list[Equation]] = {}
        for equation in self.program.equations:
            for atom in equation.inputs:
                if isinstance(atom, Var):
                    found.setdefault(atom, []).append(equation)
        return found

    def of(self, atom: Var) -> list[Var]:
        """Return the value, the value that it updates, and so on, while each is last read by its update."""
        chain, definitions = [atom], self.definitions
        while chain[-1] in definitions:
            before = self.before(chain[-1])
            if not isinstance(before, Var) or before not in definitions or before in self.plan.inline:
                break
            if not self._is_last(chain[-1], before) or is_name(definitions[before]):  # for memory that is there
                break
            chain.append(before)
        return chain

    def before(self, version: Var) -> Atom | None:
        """Return the array that is changed into a version, or None where that may have to be kept."""
        return self.schedules.overwritten(self.definitions[version], version, self.definitions)

    def _is_last(self, result: Var, before: Var) -> bool:
        """Whether the equation that turns a value into the result is its last reader, once, and by no other name."""
        at = self.plan.step_of.get(result, -1)
        updating = self.definitions[result]
        others = [e for e in self._readers[before] if e is not updating]
        once = len(self._readers[before]) == len(others) + 1
        harmless = updating if is_update(updating) and not self._reads_others(updating) else None
        return once and self.plan.last_read[before] <= at and all(self._runs_before(e, at, harmless) for e in others)

    def _reads_others(self, update: Equation) -> bool:
        """Whether an update computes new values from elements of its array that it may have replaced."""
        return reads_its_array(update, self.definitions) is not False

    def _runs_before(self, equation: Equation, at: int, harmless: Equation | None) -> bool:
        """Whether an equation has run before a step begins, and its results are not aliases.

        harmless: the equation of that step, where it reads only elements that it replaces."""
        if equation is harmless:
            return True
        for variable in equation.outputs:
            if variable in self.plan.inline:
                if not all(self._runs_before(reader, at, harmless) for reader in self._readers.get(variable, ())):
                    return False
            elif self.plan.step_of[variable] >= at or isinstance(self.plan.steps[self.plan.step_of[variable]], Rename):
                return False
        return True


def kept_operand(equation: Equation, position: int, schedules: Schedules) -> int | None:
    """Return the operand of a cond that every branch returns as the result at `position`, updated or not, else None."""
    found: set[int | None] = set()
    for branch in equation.params["branches"]:
        atom: Atom | None = branch.outputs[position]
        if atom not in branch.inputs and isinstance(atom, Var):
            versions = Versions(branch, plan_block(branch, schedules), schedules)
            atom = versions.before(versions.of(atom)[-1])
        found.add(branch.inputs.index(atom) if isinstance(atom, Var) and atom in branch.inputs else None)
    return 1 + number if len(found) == 1 and (number := found.pop()) is not None else None
