"""Fusion: which values are materialised, which are computed where they are read, and which share a loop.

A plan is a list of steps, see `steps`. Values that are neither roots nor outputs of other steps are inline: pulled by
their readers. A value is materialised if a schedule needs it in memory. It is also if it is expensive and would be
computed again, by several nests or under a broadcast. Joins are read in boxes (see `index_set_splitting`) where only
nests that can be cut read them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tracer.ir.primitive import Gather, IndexMap, Join, Pointwise
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.types import size
from tracer.passes.base.loops import loop_of
from tracer.schedule.elements.index_set_splitting import boxes_of, is_index_vector, is_parted
from tracer.schedule.elements.inline_budget import limited
from tracer.schedule.elements.puller import is_map, is_name, is_reduction
from tracer.schedule.plan.steps import BlockPlan, Nest, Other, Rename, Single, Step
from tracer.schedule.terms.element_cost import cost_of, operations_of
from tracer.schedule.terms.schedules import CHEAP, Schedules, Values

_MAX_ROOTS = 8
_SMALL = 4096  # elements of a domain whose loop costs more than unrelated values evict of each other's cache lines
_MAX_IN_REGISTERS = 2400  # operations on scalars in a block and its branches, functions written out
_MOVING = (IndexMap, Gather, Join)  # an element is read at another index than its own


def plan_block(program: Program, schedules: Schedules, *, calls: bool = False) -> BlockPlan:
    """Plan the equations of one program. Nested programs are planned on their own.

    schedules: say which operands must be in memory. calls: whether functions of scalars are called in any case, rather
    than written out where they are few.
    """
    calls = calls or _has_many_functions(program)
    parted = {e.outputs[0] for e in program.equations if is_parted(e, schedules.limits.join_elements)}
    while True:
        plan = _Planner(program, schedules, calls, parted).plan()
        misfits = _cut_in_boxes(plan) if parted else set()
        if not misfits:
            return plan
        parted -= misfits


def _cut_in_boxes(plan: BlockPlan) -> set[Var]:
    """Cut the nests that read joins in boxes. The joins of nests that cannot be cut: they must be stored."""
    misfits: set[Var] = set()
    for step in plan.steps:
        if isinstance(step, Nest):
            boxes = boxes_of(step.domain, step.roots, plan.inline, step.operations, whole=step.axes is not None)
            if isinstance(boxes, set):
                misfits |= boxes
            else:
                step.boxes = boxes
    return misfits


def _has_many_functions(program: Program) -> bool:
    """Whether a program, with its branches, has too many functions of scalars for LLVM to compile written out.

    The bodies of its loops decide for themselves.
    """
    operations, waiting = 0, [program]
    while waiting and operations <= _MAX_IN_REGISTERS:
        for equation in waiting.pop().equations:
            if _is_single(equation):
                operations += operations_of(equation)
            elif loop_of(equation) is None:
                waiting += [branch for _, branch in equation.nested()]
    return operations > _MAX_IN_REGISTERS


class _Planner:
    """Planner of one block. parted: joins whose operands are read in place of them, where possible."""

    def __init__(self, program: Program, schedules: Schedules, calls: bool, parted: set[Var]) -> None:
        self.program = program
        self.schedules = schedules
        self.parted = parted
        self.in_nests: set[Var] = set()  # values that are read at the elements of nests only
        self.pulled_once: set[Var] = set()  # values in nests whose elements are computed once
        self.definition: dict[Var, Equation] = {v: e for e in program.equations for v in e.outputs}
        self.readers: dict[Var, list[Equation]] = {}
        self.results: set[Var] = {a for a in program.outputs if isinstance(a, Var)}
        self.in_memory: set[Var] = set(self.results)
        self.cost: dict[Var, int] = {}  # of computing an element with everything it needs
        self.moved: set[Var] = set()  # computed from elements that lie elsewhere in another array
        self.barriers: dict[Var, int] = {}  # reductions and other steps on the way to the value
        self.roots: dict[Var, dict[int, bool]] = {}  # roots that pull the value; whether at its own index
        self.inline: dict[Var, Equation] = {}
        self.operations: dict[Var, int] = {}  # of a root, with all that is inline before it
        self.calls = calls
        self.called: set[Var] = self._functions() if calls else set()
        self._survey()

    def _functions(self) -> set[Var]:
        """Return the results of functions of scalars."""
        singles = [e for e in self.program.equations if _is_single(e)]
        return {e.outputs[0] for e in singles if isinstance(e.primitive.lower, Pointwise) and operations_of(e) >= 45}

    def _survey(self) -> None:
        for equation in self.program.equations:
            stored = self._operands_in_memory(equation)
            for atom in equation.inputs:
                if isinstance(atom, Var):
                    self.readers.setdefault(atom, []).append(equation)
            self.in_memory.update(a for a in stored if isinstance(a, Var))
            mapped = self._is_map(equation)
            inputs = [a for a in equation.inputs if isinstance(a, Var)]
            cost = cost_of(equation) + sum(self._cost_of_reading(v, equation) for v in inputs)
            barrier = max((self.barriers.get(v, 0) for v in inputs), default=0)
            if mapped and (_tells_axes_apart(equation) or not self.moved.isdisjoint(inputs)):
                self.moved.update(equation.outputs)
            for variable in equation.outputs:
                self.cost[variable] = min(cost, 10**6) if mapped and variable.type.shape else 0
                self.barriers[variable] = barrier if mapped else barrier + 1

    def _is_map(self, equation: Equation) -> bool:
        """Whether elements can be computed where they are read; elements of a join are its operands' elements."""
        return is_map(equation) or not self.parted.isdisjoint(equation.outputs)

    def _cost_of_reading(self, operand: Var, equation: Equation) -> int:
        """Return an operand's part of an element's cost, 0 where it is expensive and so stored, broadcast or joined."""
        cost = self.cost.get(operand, 0)
        stored = _expands(equation, operand) or not self.parted.isdisjoint(equation.outputs)
        return 0 if cost > CHEAP and stored else cost

    def _operands_in_memory(self, equation: Equation) -> Sequence[Atom]:
        """Return the operands that must be arrays in memory."""
        return self.schedules.of(equation).operands_in_memory(equation, Values(self.definition, self.cost))

    def _worth_storing_for(self, join: Equation) -> list[Var]:
        """Return the expensive operands of a join whose elements would be computed again.

        An operand that is mostly another array's elements stands for that array.
        """
        dear = {self._mapped_from(a) for a in join.inputs if isinstance(a, Var) and self.cost.get(a, 0) > CHEAP}
        once = join.outputs[0] in self.pulled_once
        return [array for array in dear if not (once and self._is_read_only_by(join, array))]

    def _is_read_only_by(self, join: Equation, array: Var) -> bool:
        """Whether an array's elements go to one join, directly or moved."""
        readers = self.readers.get(array, [])
        return all(
            reader is join
            or (isinstance(reader.primitive.lower, IndexMap) and self._is_read_only_by(join, reader.outputs[0]))
            for reader in readers
        )

    def _mapped_from(self, variable: Var) -> Var:
        """Return the array that a value's elements are taken from, if that is at most twice as large."""
        array = variable
        while (made := self.definition.get(array)) is not None and isinstance(made.primitive.lower, IndexMap):
            operand = made.inputs[0]
            if not isinstance(operand, Var) or 2 * size(variable.type) < size(operand.type):
                break
            array = operand
        return array

    def plan(self) -> BlockPlan:
        for number in range(len(self.program.equations) - 1, -1, -1):
            self._decide(number, self.program.equations[number])
        self.operations = limited(self.program.equations, self.inline, self.schedules.limits.nest_operations)
        return self._group()

    # which values are stored

    def _decide(self, number: int, equation: Equation) -> None:
        if self.parted:
            self._note_readers(equation)
        joined = self.parted.intersection(equation.outputs) & self.in_nests
        mapped = is_map(equation) or joined
        if not mapped or len(equation.outputs) != 1 or not equation.outputs[0].type.shape:
            for atom in equation.inputs:
                if isinstance(atom, Var):
                    self._reach(atom, {number: is_reduction(equation)})
            return
        variable = equation.outputs[0]
        stored = variable in self.in_memory or self._worth_storing(variable)
        if not stored:
            self.inline[variable] = equation
            if joined and not is_index_vector(equation, self.readers.get(variable, ())):
                self.in_memory.update(self._worth_storing_for(equation))
        elif equation.primitive.lower == IndexMap("reshape") and equation.inputs[0] in self.moved:
            self.in_memory.update(a for a in equation.inputs if isinstance(a, Var))  # no division for the axes before
        reached = {number: True} if stored else self.roots.get(variable, {})
        for atom in equation.inputs:
            if isinstance(atom, Var):
                identity = not isinstance(equation.primitive.lower, _MOVING)
                self._reach(atom, {root: same and identity for root, same in reached.items()})

    def _note_readers(self, equation: Equation) -> None:
        """Note the equation's results if nests alone read them, and once; later equations are decided."""
        if all(self._is_read_in_nests(v) for v in equation.outputs):
            self.in_nests.update(equation.outputs)
            for variable in equation.outputs:
                first, *others = self.readers.get(variable, [equation])
                once = all(reader is first for reader in others) and not _expands(first, variable)
                if once and (first.outputs[0] not in self.inline or first.outputs[0] in self.pulled_once):
                    self.pulled_once.add(variable)

    def _is_read_in_nests(self, variable: Var) -> bool:
        """Whether all readers of a value are elements of nests. Later equations are decided already."""
        for reader in self.readers.get(variable, ()):
            if len(reader.outputs) != 1 or not reader.outputs[0].type.shape:
                return False
            result = reader.outputs[0]
            if result not in self.in_nests if result in self.inline else not is_map(reader):
                return False
        return True

    def _reach(self, variable: Var, roots: Mapping[int, bool]) -> None:
        present = self.roots.setdefault(variable, {})
        if len(present) > _MAX_ROOTS:
            return
        for root, identity in roots.items():
            present[root] = present.get(root, True) and identity

    def _worth_storing(self, variable: Var) -> bool:
        cost, roots = self.cost[variable], self.roots.get(variable, {})
        if cost <= CHEAP:
            return False
        if any(_expands(reader, variable) for reader in self.readers.get(variable, [])):
            return True
        return len(roots) > 1 and not self._meet_in_one_nest(variable, roots)

    def _meet_in_one_nest(self, variable: Var, roots: Mapping[int, bool]) -> bool:
        """Whether all roots that pull the value can share a loop over its domain."""
        if len(roots) > _MAX_ROOTS or not all(roots.values()):
            return False
        equations = [self.program.equations[n] for n in roots]
        axes = {e.params["axes"] for e in equations if is_reduction(e)}
        levels = {self._level(e) for e in equations}
        domains = {_domain(e) for e in equations}
        return len(axes) <= 1 and len(levels) == 1 and domains == {variable.type.shape}

    def _level(self, equation: Equation) -> int:
        """Return the number of barriers before the equation's loop."""
        return max((self.barriers.get(a, 0) for a in equation.inputs if isinstance(a, Var)), default=0)

    # which roots share a nest

    def _group(self) -> BlockPlan:
        steps: list[Step] = []
        step_of: dict[Var, int] = {}
        open_nests: dict[tuple[int, ...], int] = {}
        reads: dict[Var, int] = {}  # the last nest over a value's domain that reads it
        last_read: dict[Var, int] = {}
        last_shifted: dict[Var, int] = {}
        for equation in self.program.equations:
            if all(v in self.inline for v in equation.outputs) and equation.outputs:
                continue
            pulled = self._pulled(equation)
            renamed = self._is_rename(equation)
            called = not self.called.isdisjoint(equation.outputs)
            rooted = is_reduction(equation) or (is_map(equation) and bool(equation.outputs[0].type.shape)) or called
            rooted = rooted and not renamed
            number = len(steps)
            if renamed:
                steps.append(Rename(equation))
            elif rooted:
                domain = _domain(equation)
                joined = None if called else self._nest_of(domain, equation, pulled, steps, step_of, open_nests, reads)
                if joined is not None:
                    number = joined
                else:
                    steps.append(Nest(domain))
                if not called:
                    open_nests[domain] = number
                    reads.update((v, number) for v, same in pulled.items() if same and v.type.shape == domain)
                nest = steps[number]
                assert isinstance(nest, Nest)
                nest.operations = self._together(nest, equation)
                nest.roots.append(equation)
                if is_reduction(equation):
                    nest.axes = equation.params["axes"]
            else:
                steps.append(Single(equation) if _is_single(equation) else Other(equation))
            for variable in equation.outputs:
                step_of[variable] = number
            for variable, same in pulled.items():
                last_read[variable] = max(last_read.get(variable, 0), number)
                if not same or not rooted or variable.type.shape != domain:
                    last_shifted[variable] = max(last_shifted.get(variable, 0), number)
        for atom in self.program.outputs:
            if isinstance(atom, Var):
                last_read[atom] = len(steps)
        for step in reversed(steps):
            if isinstance(step, Rename):  # readers of the new name read the old one's memory
                (old,), (new,) = step.equation.inputs, step.equation.outputs
                assert isinstance(old, Var)
                read = last_read.get(new, 0)
                last_read[old] = max(last_read.get(old, 0), read)
                last_shifted[old] = max(last_shifted.get(old, 0), last_shifted.get(new, 0))
        return BlockPlan(steps, self.inline, step_of, last_read, last_shifted, self.calls)

    def _is_rename(self, equation: Equation) -> bool:
        """Whether a stored value is its operand's memory under another name or shape."""
        if not is_name(equation) or not equation.outputs[0].type.shape:
            return False
        operand = equation.inputs[0]
        return isinstance(operand, Var) and operand not in self.inline and bool(operand.type.shape)

    def _pulled(self, equation: Equation) -> dict[Var, bool]:
        """Return the materialised values that an equation reads, also through inline ones.

        Each comes with whether it is read at the equation's own index.
        """
        found: dict[Var, bool] = {}
        seen: dict[Var, bool] = {}
        identity = not isinstance(equation.primitive.lower, _MOVING)
        stack = [(a, identity) for a in equation.inputs if isinstance(a, Var)]
        while stack:
            variable, same = stack.pop()
            if variable in seen and (not seen[variable] or same):
                continue
            seen[variable] = same
            if variable in self.inline:
                inner = self.inline[variable]
                keeps = same and not isinstance(inner.primitive.lower, _MOVING)
                stack.extend((a, keeps) for a in inner.inputs if isinstance(a, Var))
            else:
                found[variable] = found.get(variable, True) and same
        return found

    def _nest_of(
        self, domain: tuple[int, ...], equation: Equation, pulled: Mapping[Var, bool], steps: Sequence[Step],
        step_of: Mapping[Var, int], open_nests: Mapping[tuple[int, ...], int], reads: Mapping[Var, int],
    ) -> int | None:  # fmt: skip
        """Return the nest that an equation joins: the last that computes a value it reads, or else the open one.

        A result of the program may also join the last nest that reads one of its operands. Its memory is there all the
        time.

        The open nest of a large domain takes equations that read one of its operands. Unrelated equations would evict
        its data from the caches, and leave no roots for the readers of its own values. So an update of many equal
        arrays is one nest an array.
        """
        others = {step_of[variable] for variable in pulled if variable in step_of}
        if not self.results.isdisjoint(equation.outputs):
            others |= {reads[variable] for variable in pulled if variable in reads}
        for number in sorted(others, reverse=True):
            step = steps[number]
            is_over = isinstance(step, Nest) and step.domain == domain
            if is_over and self._may_join(step, number, equation, pulled, step_of):
                return number
        last = open_nests.get(domain)
        if last is None or not self._may_join(steps[last], last, equation, pulled, step_of):
            return None
        nest, count = steps[last], math.prod(domain)
        assert isinstance(nest, Nest)
        wide = {variable for variable in pulled if size(variable.type) >= count}
        small = count <= _SMALL and 2 * len(nest.roots) < _MAX_ROOTS  # leaves roots for values computed from them
        related = small or any(not wide.isdisjoint(self._pulled(root)) for root in nest.roots)
        return last if related else None

    def _may_join(
        self, nest: Step, number: int, equation: Equation, pulled: Mapping[Var, bool], step_of: Mapping[Var, int]
    ) -> bool:
        assert isinstance(nest, Nest)
        axes = equation.params["axes"] if is_reduction(equation) else None
        if (axes is not None and nest.axes not in (None, axes)) or len(nest.roots) >= _MAX_ROOTS:
            return False
        if self._together(nest, equation) > self.schedules.limits.nest_operations:
            return False
        for variable, identity in pulled.items():
            at = step_of.get(variable, -1)
            if at > number or (at == number and not (identity and is_map(self.definition[variable]))):
                return False
        return True

    def _together(self, nest: Nest, equation: Equation) -> int:
        """Return the operations of a nest with one more root. Near the limit, shared operations count once."""
        most = nest.operations + self.operations.get(equation.outputs[0], 1)
        if most <= self.schedules.limits.nest_operations or not nest.roots:
            return most
        waiting, seen = [*nest.roots, equation], set[Var]()
        total = 0
        while waiting:
            total += operations_of(root := waiting.pop())
            inner = dict.fromkeys(a for a in root.inputs if isinstance(a, Var) and a in self.inline and a not in seen)
            seen.update(inner)
            waiting += [self.inline[variable] for variable in inner]
        return total


def _domain(equation: Equation) -> tuple[int, ...]:
    return equation.inputs[0].type.shape if is_reduction(equation) else equation.outputs[0].type.shape


def _is_single(equation: Equation) -> bool:
    return is_map(equation) and len(equation.outputs) == 1 and not equation.outputs[0].type.shape


def _expands(reader: Equation, variable: Var) -> bool:
    lower = reader.primitive.lower
    return isinstance(lower, IndexMap) and lower.repeats and size(reader.outputs[0].type) > size(variable.type)


def _tells_axes_apart(equation: Equation) -> bool:
    """Whether an element's axes say where it is read: its position alone does not."""
    lower = equation.primitive.lower
    return isinstance(lower, IndexMap) and not lower.keeps_order
