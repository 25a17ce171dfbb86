"""Carries of native loops: registers for values without axes, buffers for arrays.

The body overwrites a carried array's buffer. It does so in place where its plan allows, else by a copy at the end of
the iteration. Where a body makes a new array of the old one, two buffers alternate. An iteration of the native loop is
then two steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracer.ir.layout import components, scalar_count
from tracer.ir.loop import Address, Carry, Operand, Register
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.types import StackType, Type
from tracer.schedule.elements.in_place_updates import is_most, is_update
from tracer.schedule.plan.fusion import plan_block
from tracer.schedule.plan.steps import BlockPlan
from tracer.schedule.terms.value_locations import Element, Memory, Scalars, Source, StackSource
from tracer.schedule.write.growable_stacks import copy_stack, new_stack, own_stack
from tracer.schedule.write.program_writer import BlockWriter

_MIN_IN_TURN = 1 << 10  # scalars of a carry for which a second buffer is worth a body that is written twice


class Carries:
    """The carries of a loop: registers for values without axes, buffers for arrays."""

    def __init__(
        self, writer: BlockWriter, equation: Equation, initial: Sequence[Atom], results: Sequence[Var]
    ) -> None:
        self.writer = writer
        self.equation = equation
        self.types = [atom.type for atom in initial]
        self.buffers: list[Memory | StackSource | None] = []
        self.spare: dict[int, Memory] = {}  # second buffers, by the carry's position
        self.framed: set[int] = set()  # updated arrays whose other elements both buffers hold
        self.entry: list[Carry] = []
        for atom, result in zip(initial, results, strict=True):
            if isinstance(atom.type, StackType):
                self.buffers.append(own_stack(writer, equation, atom))
            elif atom.type.shape:
                self.buffers.append(self._buffer(atom, result))
            else:
                self.buffers.append(None)
                self.entry += [Carry(Register(x.dtype, "c"), x) for x in writer.element_of(atom)]

    def _buffer(self, atom: Atom, result: Var) -> Memory:
        """Return the carry's memory, holding the initial value: that value's own memory at its last use."""
        writer = self.writer
        source = writer.memory_of(atom)
        if isinstance(atom, Var) and writer.may_take_over(self.equation, atom, result):
            writer.sources.pop(atom, None)
            return source
        memory = writer.target_of(result)
        if memory != source:
            writer.copy(memory, source)
        return memory

    def sources(self, registers: Sequence[Operand]) -> list[Source]:
        """Return the carries as the body, or code after the loop, reads them."""
        given = iter(registers)
        result: list[Source] = []
        for type, buffer in zip(self.types, self.buffers, strict=True):
            if buffer is not None:
                result.append(buffer)
            else:
                result.append(Scalars(tuple(next(given) for _ in range(components(type)[1]))))
        return result

    def targets(self, body: BlockWriter, first_input: int) -> None:
        """Let the body store new carries in place of the old where these are dead."""
        inputs = body.program.inputs[first_input:]
        definitions = body.versions.definitions
        for old, atom, buffer in zip(inputs, body.program.outputs, self.buffers, strict=False):
            if not isinstance(buffer, Memory) or not isinstance(atom, Var) or atom in body.targets or atom is old:
                continue
            if atom in body.program.inputs:
                continue
            versions = body.versions.of(atom)
            if body.plan.may_overwrite(old, versions[-1], definitions.get(versions[-1])):
                body.targets.update(dict.fromkeys(versions, buffer))

    def take_turns(self, program: Program, first_input: int) -> None:
        """Give a second buffer to the arrays that the body replaces rather than updates."""
        pairs = zip(self.buffers, self.types, strict=True)
        sizes = [scalar_count(type) if isinstance(buffer, Memory) else 0 for buffer, type in pairs]
        positions = [n for n, size in enumerate(sizes) if size >= _MIN_IN_TURN]
        definitions = {v: e for e in program.equations for v in e.outputs}
        made = {n: definitions.get(a) for n in positions if isinstance(a := program.outputs[n], Var)}
        schedules = self.writer.module.schedules
        anew = {n for n, e in made.items() if e is not None and schedules.of(e).stores_anew(e, definitions)}
        if not anew and not any(e is not None and is_update(e) for e in made.values()):
            return
        plan = plan_block(program, schedules)
        for n, equation in made.items():
            old, new = program.inputs[first_input + n], program.outputs[n]
            alone = sum(new is other for other in program.outputs) == 1
            if equation is None or not alone or not isinstance(new, Var):
                continue
            if n not in anew and not _must_keep(equation, old, new, plan):
                continue
            if not plan.may_overwrite(old, new, equation):
                self.spare[n] = self.writer.allocate(new.type)
                if is_update(equation) and equation.inputs[0] is old:
                    self.framed.add(n)
                    self.writer.copy(self.spare[n], self._memory(n))

    def _memory(self, position: int) -> Memory:
        buffer = self.buffers[position]
        assert isinstance(buffer, Memory)
        return buffer

    def turn(self, body: BlockWriter) -> None:
        """Let the body store new arrays in second buffers, which are the carries' from then on."""
        for n, memory in self.spare.items():
            atom = body.program.outputs[n]
            assert isinstance(atom, Var)
            body.targets[atom] = memory
            if n in self.framed:
                body.framed.add(atom)
            self.buffers[n], self.spare[n] = memory, self._memory(n)

    def settle(self, body: BlockWriter, outputs: Sequence[Source]) -> list[Operand]:
        """Move the body's results to the carries' buffers, and return the scalars that the loop yields."""
        yields: list[Operand] = []
        moves: list[tuple[Memory, Memory]] = []
        stacks: list[tuple[StackSource, Source, Type]] = []
        for buffer, source, type in zip(self.buffers, outputs, self.types, strict=True):
            if buffer is None:
                yields += registers_of(body, source)
            elif isinstance(buffer, StackSource):
                if source != buffer:
                    stacks.append((buffer, source, type))
            elif source != buffer:
                assert isinstance(source, Memory)
                moves.append((buffer, source))
        move_at_once(body, moves)
        _move_stacks(body, stacks)
        return yields


def _must_keep(equation: Equation, old: Var, new: Var, plan: BlockPlan) -> bool:
    """Whether an equation updates most of an array that a later step still reads unchanged."""
    updates = is_update(equation) and equation.inputs[0] is old and is_most(equation)
    return updates and plan.last_read.get(old, -1) > plan.step_of.get(new, -1)


def move_at_once(body: BlockWriter, moves: Sequence[tuple[Memory, Memory]]) -> None:
    """Copy (target, source) pairs as if at once: targets that another pair still reads are copied last, or saved."""
    pending = list(moves)
    while pending:
        free = next((n for n, move in enumerate(pending) if _unread(move[0], pending[:n] + pending[n + 1 :])), None)
        if free is None:  # a cycle of buffers
            target = pending[0][0]
            saved = body.allocate(target.type)
            body.copy(saved, target)
            pending = [(t, saved if s.view == target.view else s) for t, s in pending]
        else:
            body.copy(*pending.pop(free))


def _move_stacks(body: BlockWriter, moves: Sequence[tuple[StackSource, Source, Type]]) -> None:
    """Copy stacks that the body returns in another order: all to temporaries first, then back."""
    saved = []
    for target, source, type in moves:
        assert isinstance(source, StackSource)
        assert isinstance(type, StackType)
        aside = new_stack(body)
        copy_stack(body, aside, source, type)
        saved.append((target, aside, type))
    for target, aside, type in saved:
        body.builder.reset(target.number)
        copy_stack(body, target, aside, type)


def _unread(target: Memory, moves: Sequence[tuple[Memory, Memory]]) -> bool:
    return all(source.view != target.view for _, source in moves)


def registers_of(writer: BlockWriter, source: Source) -> Element:
    """Return the element of a value without axes, loaded where it is in memory."""
    match source:
        case Scalars(element):
            return element
        case Memory(buffer, start, type):
            count = components(type)[1]
            return tuple(writer.builder.load(buffer, Address(start.constant + k, start.terms)) for k in range(count))
        case _:
            raise AssertionError(source)
