"""A program as loop IR statements: its steps in order, its values in registers, in the arena or in targets.

Values without axes live in registers of the enclosing function. Arrays live in memory. Every loop over arrays is its
own function that the enclosing one invokes, so that equal nests are written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.errors import InternalError
from tracer.ir.layout import components, scalar_count
from tracer.ir.loop import Address, Buffer, Function, Space
from tracer.ir.loop.build import Builder
from tracer.ir.primitive import Effect
from tracer.ir.program import Atom, Equation, Literal, Program, Var
from tracer.ir.program import Source as SourceLine
from tracer.ir.target import Target
from tracer.ir.types import Type
from tracer.schedule.elements.gather_bounds import FaultSites
from tracer.schedule.elements.in_place_updates import is_update, reads_its_array
from tracer.schedule.elements.puller import Puller, literal_element
from tracer.schedule.memory.arena import Arena
from tracer.schedule.plan.fusion import plan_block
from tracer.schedule.plan.steps import BlockPlan, Nest, Other, Rename, Single
from tracer.schedule.plan.update_chains import Versions
from tracer.schedule.terms.canonical_key import function_key
from tracer.schedule.terms.origins import Origins
from tracer.schedule.terms.schedules import Schedules
from tracer.schedule.terms.value_locations import Element, Inline, Memory, Scalars, Source, StackSource
from tracer.schedule.write.nest_reuse import NestKey, Written, lifted_nest, nest_key, written
from tracer.schedule.write.nest_writer import Argument, Invocation, NestWriter

_MAX_IN_LINE = 32  # calls of nests without a branch: LLVM's time is quadratic in a basic block


class ModuleState:
    """State that the blocks of one module share: functions (equal ones once), the arena, fault sites, callbacks."""

    def __init__(self, schedules: Schedules, target: Target, origins: Origins | None = None) -> None:
        self.schedules = schedules
        self.target = target
        self.functions: list[Function] = []
        self.arena = Arena()
        self.sites = FaultSites(origins)
        self.callbacks: list[Any] = []
        self.stacks = 0
        self.written: dict[NestKey, Written] = {}  # nests that may come again
        self.alike: dict[NestKey, int | Written] = {}  # nests without their constants: their count, or their function
        self._names: dict[Any, str] = {}

    def next_name(self) -> str:
        return f"nest{len(self.functions)}"

    def share(self, function: Function) -> str:
        """Return the name of an equal function written before, or of this one from now on."""
        key = function_key(function)
        if key not in self._names:
            self._names[key] = function.name
            self.functions.append(function)
        return self._names[key]


class BlockWriter:
    """Writes one program. inputs: a source for each input. targets: where outputs must be stored, or None.

    owned: the inputs whose memory the block may overwrite once it has read them last. calls: whether functions of
    scalars are called, where the block is a branch of a block that has decided. plan: the program's, where it is made
    already.
    """

    def __init__(
        self,
        module: ModuleState,
        builder: Builder,
        program: Program,
        inputs: Sequence[Source],
        targets: Sequence[Memory | None],
        owned: Sequence[bool] | None = None,
        *,
        calls: bool = False,
        plan: BlockPlan | None = None,
    ) -> None:
        self.module = module
        self.builder = builder
        self.program = program
        self.plan = plan or plan_block(program, module.schedules, calls=calls)
        self.sources: dict[Var, Source] = dict(zip(program.inputs, inputs, strict=True))
        self.step = 0  # the number of the step that is being written
        self.invocations = 0
        self.targets: dict[Var, Memory] = {}
        self.wanted = targets
        own = owned or [False] * len(inputs)
        self.owned: set[Var] = {v for v, on in zip(program.inputs, own, strict=True) if on}
        self.shared: set[Var] = set()  # values whose memory goes by several names
        self.framed: set[Var] = set()  # updates whose targets already hold the elements around them
        self.versions = Versions(program, self.plan, module.schedules)
        inputs_set = set(program.inputs)
        for atom, target in zip(program.outputs, targets, strict=True):
            if isinstance(atom, Var) and target is not None and atom not in inputs_set:
                for version in self.versions.of(atom):
                    self.targets.setdefault(version, target)
        for planned in reversed(self.plan.steps):
            if isinstance(planned, Rename):
                self._aim(planned.equation)

    def write(self) -> list[Source]:
        """Write all steps; the outputs' sources, in their targets where there are any."""
        for number, planned in enumerate(self.plan.steps):
            self.step = number
            before = len(self.builder.statements)
            match planned:
                case Nest():
                    self._write_nest(planned)
                case Single(equation):
                    self._write_single(equation)
                case Rename(equation):
                    self._rename(equation)
                case Other(equation):
                    self.module.schedules.write(self, equation)
            if self.module.sites.origins is not None and not isinstance(planned, Nest):
                self.module.sites.origins.computes(planned.equation.source, self.builder.statements[before:])
        return [self._output(a, t) for a, t in zip(self.program.outputs, self.wanted, strict=True)]

    # sources

    def source_of(self, variable: Var) -> Source:
        """Return where a value is now."""
        if variable in self.plan.inline:
            return Inline(self.plan.inline[variable])
        return self.sources[variable]

    def target_of(self, variable: Var) -> Memory:
        """Return memory for a value to be stored: its target, or a new slice of the arena."""
        source = self.sources.get(variable)
        if isinstance(source, Memory):
            return source
        memory = self.targets.get(variable) or self.allocate(variable.type)
        self.sources[variable] = memory
        if self.module.sites.origins is not None:
            self.module.sites.origins.writes(memory.buffer, self._lines()[0])
        return memory

    def allocate(self, type: Type) -> Memory:
        """Return new memory in the arena."""
        return self.module.arena.allocate(type)

    def memory_of(self, atom: Atom) -> Memory:
        """Return the memory of a value, stored to the arena first if it is in registers. Arrays must be in memory."""
        source = Scalars(literal_element(atom)) if isinstance(atom, Literal) else self.source_of(atom)
        match source:
            case Memory():
                return source
            case Scalars(element):
                memory = self.allocate(atom.type)
                self.store(memory, element)
                return memory
            case Inline() | StackSource():
                raise InternalError(f"{atom} is wanted in memory, where it is not: {source}")

    def element_of(self, atom: Atom) -> Element:
        """Return the one element of a value without axes, in registers."""
        return Puller(self.builder, self.source_of, {}, self.module.sites).element(atom, ())

    def store(self, memory: Memory, element: Element) -> None:
        """Store the element of a value without axes."""
        for part, value in enumerate(element):
            self.builder.store(memory.buffer, Address(memory.start.constant + part, memory.start.terms), value)

    def reads(self, atoms: Sequence[Atom]) -> set[Var]:
        """Return the values that are read for the atoms' elements: themselves, or operands of inline ones."""
        found: set[Var] = set()
        waiting, seen = [a for a in atoms if isinstance(a, Var)], set[Var]()
        while waiting:
            variable = waiting.pop()
            if variable in seen:
                continue
            seen.add(variable)
            inner = self.plan.inline.get(variable)
            if inner is None:
                found.add(variable)
            else:
                waiting += [a for a in inner.inputs if isinstance(a, Var)]
        return found

    def dies_here(self, variable: Var) -> bool:
        """Whether this step reads the value last, and the block may write over its memory."""
        mine = variable in self.owned or variable not in self.program.inputs
        return mine and variable not in self.shared and self.plan.last_read.get(variable, -1) == self.step

    def may_take_over(self, equation: Equation, operand: Var, result: Var) -> bool:
        """Whether a result may take over its operand's memory, which has no other reader and is no target."""
        source = self.sources.get(operand)
        promised = isinstance(source, Memory) and any(source.view == target.view for target in self.targets.values())
        alone = sum(operand is atom for atom in equation.inputs) == 1
        alone = alone and (
            operand not in self.reads([atom for atom in equation.inputs if atom is not operand])
            or (is_update(equation) and reads_its_array(equation, self.versions.definitions) is False)
        )
        return alone and not promised and result not in self.targets and self.dies_here(operand)

    # steps

    def invoke(self, invocation: Invocation) -> str:
        """Call a nest, written before or now; its name."""
        name = self.module.share(invocation.function)
        self._call(name, invocation.arguments, faults=invocation.faults)
        return name

    def _call(self, name: str, arguments: Sequence[Argument], *, faults: bool) -> None:
        self.builder.invoke(name, *arguments)
        self.invocations += 1
        if self.module.sites.origins is not None:
            self.module.sites.origins.calls(name, self._lines())
        if faults or self.invocations % _MAX_IN_LINE == 0:
            self.builder.leave()

    def _lines(self) -> list[SourceLine | None]:
        """Return the lines of the equations of the step that is being written."""
        step = self.plan.steps[self.step]
        return [equation.source for equation in (step.roots if isinstance(step, Nest) else (step.equation,))]

    def _write_nest(self, nest: Nest) -> None:
        if nest.boxes:
            for box in nest.boxes:
                writer = NestWriter(nest, self.source_of, self.target_of, self.module.sites, box)
                self.invoke(writer.write(self.module.next_name()))
            return
        key = nest_key(nest, self.source_of, self.target_of)
        before = self.module.written.get(key) if key is not None else None
        if key is not None and before is not None:
            self._call(before.name, before.arguments(key), faults=False)
            return
        if key is not None and self.module.target.parametric_nests and self._write_alike(nest):
            return
        writer = NestWriter(nest, self.source_of, self.target_of, self.module.sites)
        invocation = writer.write(self.module.next_name())
        name = self.invoke(invocation)
        if key is not None:
            self.module.written[key] = written(name, key, invocation)

    def _write_alike(self, nest: Nest) -> bool:
        """Call a function of the nest's constants, if several nests before differed in these alone."""
        lifted = lifted_nest(nest, self.source_of, self.target_of)
        if lifted is None:
            return False
        known = self.module.alike.get(lifted.key, 1)
        if isinstance(known, int) and known < self.module.target.limits.equal_nests:
            self.module.alike[lifted.key] = known + 1
            return False
        if isinstance(known, int):
            writer = NestWriter(lifted.nest, lifted.source_of, self.target_of, self.module.sites)
            invocation = writer.write(self.module.next_name())
            known = written(self.module.share(invocation.function), lifted.key, invocation)
            self.module.alike[lifted.key] = known
        self._call(known.name, lifted.arguments(known), faults=False)
        return True

    def _write_single(self, equation: Equation) -> None:
        variable = equation.outputs[0]
        source = Inline(equation)

        def lookup(wanted: Var) -> Source:
            return source if wanted is variable else self.source_of(wanted)

        element = Puller(self.builder, lookup, {}, self.module.sites).element(variable, ())
        self.sources[variable] = Scalars(element)
        if Effect.FAULT in equation.effects:
            self.builder.leave()

    def _aim(self, equation: Equation) -> None:
        """Let an array that reaches a target under another shape be stored there at once."""
        (old,), (new,) = equation.inputs, equation.outputs
        target = self.targets.get(new)
        if target is not None and isinstance(old, Var) and old not in self.program.inputs:
            self.targets.setdefault(old, Memory(target.buffer, target.start, old.type))

    def _rename(self, equation: Equation) -> None:
        (old,), (new,) = equation.inputs, equation.outputs
        source = self.memory_of(old)
        if new in self.targets:
            target = self.target_of(new)
            if target.view != source.view:
                self.copy(target, source)
        else:
            self.sources[new] = Memory(source.buffer, source.start, new.type)
            self.shared.update(v for v in (old, new) if isinstance(v, Var))

    def _output(self, atom: Atom, target: Memory | None) -> Source:
        source = Scalars(literal_element(atom)) if isinstance(atom, Literal) else self.sources[atom]
        if target is None or source == target:
            return source
        match source:
            case Scalars(element):
                self.store(target, element)
            case Memory():
                self.copy(target, source)
            case Inline() | StackSource():
                raise InternalError("an output was planned inline")
        return target

    def copy(self, target: Memory, source: Memory) -> None:
        """Copy a whole value."""
        self.builder.copy(target.view, source.view, scalar_count(source.type))


def entry_buffer(name: str, type: Type, space: Space) -> Memory:
    """Return the memory of an operand or result of the program."""
    dtype, _ = components(type)
    buffer = Buffer(name, dtype, scalar_count(type), space, written=space in (Space.OUTPUT, Space.DONATED))
    return Memory(buffer, Address(), type)
