"""Control flow in loop IR: `while_loop` and `scan` are native loops, `cond` a native branch.

Carries and results without axes are registers. Carried arrays have their own buffer, which the body overwrites. It does
so in place where its plan allows, else by a copy at the end of the iteration. In a `scan` whose body makes a new array
of the old one, two buffers alternate. An iteration of the native loop is then two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from tracer.ir.layout import components, scalar_count
from tracer.ir.loop import Address, Carry, Compute, Copy, If, Invoke, Load, Operand, Register, Store, Update
from tracer.ir.loop.build import Builder
from tracer.ir.loop.walk import blocks_of, statements_of
from tracer.ir.primitive import Structured
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import StackType, Type, with_shape
from tracer.primitives.control.divergence import mask_position
from tracer.schedule.elements.divergent.analysis import lane_fit, shared_arrays
from tracer.schedule.elements.in_place_updates import is_most, is_update
from tracer.schedule.plan.fusion import plan_block
from tracer.schedule.plan.steps import BlockPlan
from tracer.schedule.plan.update_chains import kept_operand
from tracer.schedule.terms.affine import plus, scaled, shifted
from tracer.schedule.terms.cost import NOTHING, Cost, Nested, nested_cost
from tracer.schedule.terms.schedules import Definitions, Schedule, Values
from tracer.schedule.terms.value_locations import Element, Memory, Scalars, Source, StackSource
from tracer.schedule.write.divergent_loops import shared_results, write_lanes
from tracer.schedule.write.growable_stacks import copy_stack, new_stack, own_stack, stack_of
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
                yields += _registers(body, source)
            elif isinstance(buffer, StackSource):
                if source != buffer:
                    stacks.append((buffer, source, type))
            elif source != buffer:
                assert isinstance(source, Memory)
                moves.append((buffer, source))
        _move_at_once(body, moves)
        _move_stacks(body, stacks)
        return yields


def _must_keep(equation: Equation, old: Var, new: Var, plan: BlockPlan) -> bool:
    """Whether an equation updates most of an array that a later step still reads unchanged."""
    updates = is_update(equation) and equation.inputs[0] is old and is_most(equation)
    return updates and plan.last_read.get(old, -1) > plan.step_of.get(new, -1)


def _move_at_once(body: BlockWriter, moves: Sequence[tuple[Memory, Memory]]) -> None:
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


def _registers(writer: BlockWriter, source: Source) -> Element:
    """Return the element of a value without axes, loaded where it is in memory."""
    match source:
        case Scalars(element):
            return element
        case Memory(buffer, start, type):
            count = components(type)[1]
            return tuple(writer.builder.load(buffer, Address(start.constant + k, start.terms)) for k in range(count))
        case _:
            raise AssertionError(source)


def _wrote_in_lanes(writer: BlockWriter, equation: Equation, write: Callable[[BlockWriter, Equation], None]) -> bool:
    """Write native loops in the lanes of one nest, where the loop's lanes have nothing to do with one another.

    Whether that was so. write: how the loop is written otherwise, for results that all lanes share.
    """
    fit = lane_fit(equation)
    if fit is None:
        return False
    apart = shared_results(equation, writer.plan.last_read)
    if apart is not None:
        write(writer, apart)
    write_lanes(writer, equation, fit)
    return True


def write_while(writer: BlockWriter, equation: Equation) -> None:
    """Write a while_loop."""
    if _wrote_in_lanes(writer, equation, write_while):
        return
    params, inputs = equation.params, equation.inputs
    first, second = params["cond_consts"], params["cond_consts"] + params["body_consts"]
    cond_consts, body_consts = _sources(writer, inputs[:first]), _sources(writer, inputs[first:second])
    carries = Carries(writer, equation, inputs[second:], equation.outputs)
    b = writer.builder
    loop = b.while_(*carries.entry)
    with loop.condition as condition:
        test = _block(writer, b, params["cond"], [*cond_consts, *carries.sources(loop.carries)])
        (predicate,) = test.write()
        condition.yields(*_registers(test, predicate))
    with loop.body as scope:
        owned = [False] * len(body_consts) + [True] * len(carries.types)
        body = _block(writer, b, params["body"], [*body_consts, *carries.sources(loop.carries)], owned)
        carries.targets(body, len(body_consts))
        scope.yields(*carries.settle(body, body.write()))
    b.leave()
    _bind(writer, equation.outputs, carries.sources(loop.results))


def write_scan(writer: BlockWriter, equation: Equation) -> None:
    """Write a scan: a counted loop over slices."""
    if _wrote_in_lanes(writer, equation, write_scan):
        return
    params, inputs, b = equation.params, equation.inputs, writer.builder
    consts, count, length = params["consts"], params["carries"], params["length"]
    fixed = _sources(writer, inputs[:consts])
    carries = Carries(writer, equation, inputs[consts : consts + count], equation.outputs[:count])
    xs = [writer.memory_of(atom) for atom in inputs[consts + count :]]
    ys = [writer.target_of(v) for v in equation.outputs[count:]]

    def step(registers: Sequence[Operand], number: Address) -> Sequence[Operand]:
        """Write one step of the scan and return its carries in registers."""
        at = shifted(scaled(number, -1), length - 1) if params["reverse"] else number
        targets = [None] * count + [_slice(y, at) for y in ys]
        owned = [False] * consts + [n not in carries.framed for n in range(count)] + [False] * len(xs)
        sources = [*fixed, *carries.sources(registers), *[_slice(x, at) for x in xs]]
        body = BlockWriter(writer.module, b, params["body"], sources, targets, owned)
        carries.targets(body, consts)
        carries.turn(body)
        return carries.settle(body, body.write()[:count])

    carries.take_turns(params["body"], consts)
    steps = 2 if carries.spare else 1
    loop = b.for_("step", 0, length // steps, carries=carries.entry)
    with loop:
        registers: Sequence[Operand] = loop.carries
        for n in range(steps):
            registers = step(registers, Address(n, ((loop.index, steps),)))
        loop.yields(*registers)
    registers = loop.results
    if length % steps:
        registers = step(registers, Address(length - 1))
    b.leave()
    _bind(writer, equation.outputs[:count], carries.sources(registers))


def write_for(writer: BlockWriter, equation: Equation) -> None:
    """Write a counted loop whose count is known at run time."""
    params, inputs, b = equation.params, equation.inputs, writer.builder
    consts = params["consts"]
    count = writer.element_of(inputs[0])[0]
    fixed = _sources(writer, inputs[1 : 1 + consts])
    carries = Carries(writer, equation, inputs[1 + consts :], equation.outputs)
    loop = b.for_("step", 0, count, carries=carries.entry)
    with loop:
        last = b.compute(ScalarOp.SUB, count, 1) if params["reverse"] else None
        step = loop.index if last is None else b.compute(ScalarOp.SUB, last, loop.index)
        owned = [False] * (1 + consts) + [True] * len(carries.types)
        sources = [Scalars((step,)), *fixed, *carries.sources(loop.carries)]
        body = _block(writer, b, params["body"], sources, owned)
        carries.targets(body, 1 + consts)
        loop.yields(*carries.settle(body, body.write()))
    b.leave()
    _bind(writer, equation.outputs, carries.sources(loop.results))


def _slice(stacked: Memory, step: Address) -> Memory:
    """Return one step of a stacked array."""
    type = with_shape(stacked.type, stacked.type.shape[1:])
    return Memory(stacked.buffer, plus(stacked.start, scaled(step, scalar_count(type))), type)


def write_cond(writer: BlockWriter, equation: Equation) -> None:
    """Write a cond: a chain of branches, the last one for every other index."""
    index, operands = equation.inputs[0], equation.inputs[1:]
    sources = _sources(writer, operands)
    chosen = writer.element_of(index)[0]
    taken = _taken_over(writer, equation)
    targets = [writer.target_of(v) if v.type.shape and v not in taken else None for v in equation.outputs]
    kept = [writer.memory_of(v) if v in taken else None for v in equation.outputs]
    places = _Places(sources, [a in taken.values() for a in operands], targets, kept)
    results = _write_branches(writer, chosen, equation.params["branches"], places)
    written = writer.builder.statements[-1]
    if any(not isinstance(s, _NEVER_FAIL) for block in blocks_of(written) for s in statements_of(block)):
        writer.builder.leave()
    registers = iter(results)
    for variable in equation.outputs:
        if not variable.type.shape:
            writer.sources[variable] = Scalars(tuple(next(registers) for _ in range(components(variable.type)[1])))


_NEVER_FAIL = (Compute, Load, Store, Update, Copy, If, Invoke)  # functions that may are followed by a Leave


class _Places(NamedTuple):
    """Where branches find their operands and leave their results.

    owned: which operands are changed into results. kept: their memory, for such a result; any other result is stored in
    its target, or yielded in registers.
    """

    sources: Sequence[Source]
    owned: Sequence[bool]
    targets: Sequence[Memory | None]
    kept: Sequence[Memory | None]


def _taken_over(writer: BlockWriter, equation: Equation) -> dict[Var, Var]:
    """Return the results that every branch makes by updating one array at its last use, or returns, with that array."""
    taken: dict[Var, Var] = {}
    for position, variable in enumerate(equation.outputs):
        number = kept_operand(equation, position, writer.module.schedules) if variable.type.shape else None
        operand = equation.inputs[number] if number is not None else None
        if isinstance(operand, Var) and writer.may_take_over(equation, operand, variable):
            taken[variable] = operand
            writer.sources[variable] = writer.memory_of(operand)
            writer.sources.pop(operand)
    return taken


def _write_branches(writer: BlockWriter, index: Operand, branches: Sequence[Program], places: _Places) -> list[Operand]:
    b = writer.builder
    if len(branches) == 1:
        return _write_branch(writer, b, branches[0], places)
    branch = b.if_(b.compute(ScalarOp.LE, index, 0))
    with branch:
        branch.yields(*_write_branch(writer, b, branches[0], places))
    with branch.otherwise as otherwise:
        lower = b.compute(ScalarOp.SUB, index, 1) if len(branches) > 2 else index
        otherwise.yields(*_write_branches(writer, lower, branches[1:], places))
    return list(branch.results)


def _write_branch(writer: BlockWriter, b: Builder, program: Program, places: _Places) -> list[Operand]:
    block = BlockWriter(
        writer.module, b, program, places.sources, places.targets, places.owned, calls=writer.plan.calls
    )  # fmt: skip
    outputs = block.write()
    registers: list[Operand] = []
    moves: list[tuple[Memory, Memory]] = []
    for source, target, memory in zip(outputs, places.targets, places.kept, strict=True):
        if memory is not None:
            assert isinstance(source, Memory)
            moves += [(memory, source)] if source != memory else []
        elif target is None:
            registers += _registers(block, source)
    _move_at_once(block, moves)
    return registers


def _block(
    writer: BlockWriter, b: Builder, program: Program, sources: Sequence[Source], owned: Sequence[bool] | None = None
) -> BlockWriter:
    return BlockWriter(writer.module, b, program, sources, [None] * len(program.outputs), owned)


def _sources(writer: BlockWriter, atoms: Sequence[Atom]) -> list[Source]:
    """Return the operands of a nested program: arrays in memory, values without axes in registers."""
    return [_source(writer, atom) for atom in atoms]


def _source(writer: BlockWriter, atom: Atom) -> Source:
    if isinstance(atom.type, StackType):
        return stack_of(writer, atom)
    return writer.memory_of(atom) if atom.type.shape else Scalars(writer.element_of(atom))


def _bind(writer: BlockWriter, variables: Sequence[Var], sources: Sequence[Source]) -> None:
    writer.sources.update(zip(variables, sources, strict=True))


# -- records -----------------------------------------------------------------------------------------------------


def _operands_in_memory(equation: Equation, values: Values) -> Sequence[Atom]:
    """Return the operands that all lanes of a loop share, where it runs in lanes, else all operands."""
    shared = shared_arrays(equation)
    return equation.inputs if shared is None else shared


def _while_cost(equation: Equation, nested: Nested) -> Cost:
    return replace(nested_cost(equation, nested), unknown_trips=True)


def _scan_cost(equation: Equation, nested: Nested) -> Cost:
    return nested_cost(equation, nested).times(equation.params["length"])


def _cond_cost(equation: Equation, nested: Nested) -> Cost:
    return max(nested, key=lambda cost: cost.work, default=NOTHING)


def _carry_of_while(equation: Equation, position: int, definitions: Definitions) -> Atom | None:
    """Return the carry. None where lanes stop one by one: their loop stores results of its own."""
    params = equation.params
    first = params["cond_consts"] + params["body_consts"]
    return equation.inputs[first + position] if mask_position(params) is None else None


def _carry_of_scan(equation: Equation, position: int, definitions: Definitions) -> Atom | None:
    params = equation.params
    return equation.inputs[params["consts"] + position] if position < params["carries"] else None


WHILE: Final = Schedule(Structured, "while", _while_cost, write_while, _operands_in_memory, overwritten=_carry_of_while)
FOR: Final = Schedule(Structured, "for", nested_cost, write_for, _operands_in_memory)
SCAN: Final = Schedule(Structured, "scan", _scan_cost, write_scan, _operands_in_memory, overwritten=_carry_of_scan)
COND: Final = Schedule(Structured, "cond", _cond_cost, write_cond)
