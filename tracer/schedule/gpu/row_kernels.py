"""Kernels of rows: a block of threads runs the phases of a row one after another. See `row_programs`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Alloc,
    Block,
    Buffer,
    Carry,
    Compute,
    For,
    Load,
    LoopKind,
    Operand,
    Register,
    Space,
    Statement,
    Store,
    View,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.build import Builder, address
from tracer.ir.loop.walk import registers_read, statements_of, with_statements
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.row_programs import REGISTER_BYTES, Phase, Place, RowProgram, register_bytes
from tracer.schedule.gpu.row_reductions import across_warps, halved, shared_totals, threads_for
from tracer.schedule.gpu.threads import WARP, Axes, in_thread
from tracer.schedule.gpu.wide_accesses import Group, column_place, row_width


def map_row_program(axes: Axes, program: RowProgram, loads: Sequence[Statement] = ()) -> Block:
    """Return a kernel with one block of threads for each row."""
    rows = prod(axes.sizes)
    threads = threads_for(rows, program.length)
    b = Builder()
    with b.for_("b", 0, rows, kind=LoopKind.BLOCK) as block:
        names = dict(axes.locate(b, block.index))
        carries = [c for phase in program.phases if phase.reduces for c in phase.loops[-1].carries]
        shared = shared_totals(b, carries, threads)
        with b.for_("t", 0, threads, kind=LoopKind.THREAD) as thread:
            for load in loads:
                b.add(load)
            _Row(b, program, names, shared, thread.index, threads, row_width(program, threads)).write()
    return b.finish()


class _Row:
    """Writer of a row. names: other names of registers. shared: memory for the totals of the carries that are left.

    local: arrays in registers, by the memory in whose place they are. known: single values stored by the row, by
    address. since: accesses to memory that the kernel writes, since the last barrier.
    """

    def __init__(
        self, b: Builder, program: RowProgram, names: dict[Register, Operand], shared: list[Buffer], thread: Register,
        threads: int, width: int,
    ) -> None:  # fmt: skip
        self.b, self.program, self.names, self.shared = b, program, names, shared
        self.thread, self.threads, self.width = thread, threads, width
        self.local: dict[Buffer | tuple[Buffer, Place], Buffer] = {}
        self.filled: set[tuple[Buffer, Place]] = set()
        self.known: dict[tuple[Buffer, Address], Operand] = {}
        self.since: dict[Buffer, set[Place | None]] = {}
        self.first: Operand | None = None
        self.groups = 0
        steps = program.steps
        everything = [s for step in steps for s in (statements_of(step.body) if isinstance(step, Phase) else (step,))]
        self.written = {s.buffer for s in everything if isinstance(s, Store)}

    def write(self) -> None:
        """Write all steps. One thread runs the statements behind the last phase."""
        self.keep()
        steps = self.program.steps
        last = max(i for i, step in enumerate(steps) if isinstance(step, Phase)) + 1
        for step in steps[:last]:
            if isinstance(step, Phase):
                self.phase(step)
            else:
                self.between(step)
        after = list(self.forwarded(steps[last:]))
        self.meet(None, after)
        if after:
            with self.b.if_(self.b.compute(ScalarOp.EQ, self.thread, 0)):
                self.add(after)

    def add(self, statements: Sequence[Statement]) -> None:
        for s in in_thread(statements, self.names):
            self.b.add(s)

    # -- arrays in registers

    def keep(self) -> None:
        """Choose arrays for registers: the row's own, then memory that several phases load, as far as they fit."""
        room = REGISTER_BYTES
        for step in self.program.steps:
            if isinstance(step, Alloc) and step.buffer.size > 1:
                room -= register_bytes(step.buffer, step.buffer.size, self.threads)
                self.allocate(step.buffer, step.buffer)
        loads: Counter[tuple[Buffer, Place]] = Counter()
        for phase in self.program.phases:
            loads.update({key for s in phase.body.statements if (key := self.kept(phase, s)) is not None})
        for (buffer, place), count in loads.items():
            size = register_bytes(buffer, place[0], self.threads)
            if count > 1 and size <= room:
                room -= size
                self.allocate((buffer, place), replace(buffer, size=place[0]))

    def kept(self, phase: Phase, s: Statement) -> tuple[Buffer, Place] | None:
        """Return the memory that a load of a column reads, None where something writes it or all columns share it."""
        if not isinstance(s, Load) or s.mask is not None or s.buffer in self.written:
            return None
        place = phase.place(s.address)
        return (s.buffer, place) if place is not None and place[1] else None

    def rounds(self, columns: int) -> int:
        """Return the groups of columns of one thread."""
        return -(-columns // (self.threads * self.width))

    def allocate(self, key: Buffer | tuple[Buffer, Place], whole: Buffer) -> None:
        size, name = self.rounds(whole.size) * self.width, f"kept{len(self.local)}"
        self.local[key] = self.b.alloc(Buffer(name, whole.dtype, size, Space.LOCAL, written=True))

    # -- between phases

    def between(self, s: Statement) -> None:
        """Write a statement that all threads run alike, a store for the first of them."""
        for found in self.forwarded((s,)):
            self.meet(None, (found,))
            if isinstance(found, Store):
                self.first = self.first or self.b.compute(ScalarOp.EQ, self.thread, 0, name="first")
                found = replace(found, mask=self.first)
            self.add((found,))

    def forwarded(self, statements: Sequence[Statement | Phase]) -> Iterator[Statement]:
        """Yield statements without loads of values that the row stored before, and without memory for its own."""
        for s in statements:
            if isinstance(s, Load) and self.is_known(s):
                continue
            if isinstance(s, Store):
                self.known = {key: value for key, value in self.known.items() if key[0] is not s.buffer}
                value = self.names.get(s.value, s.value) if isinstance(s.value, Register) else s.value
                self.known[s.buffer, s.address] = value
                if s.buffer.space is Space.LOCAL:
                    continue
            if not isinstance(s, Alloc | Phase):
                yield s

    def is_known(self, s: Load) -> bool:
        """Whether a load reads a value that the row stored before. Names the value."""
        value = self.known.get((s.buffer, s.address))
        if value is not None:
            self.names[s.result] = value
        return value is not None

    def meet(self, phase: Phase | None, statements: Sequence[Statement]) -> None:
        """Write a barrier where other threads wrote memory that a step reads, or read memory that it writes."""
        found: dict[Buffer, set[Place | None]] = {}
        for s in statements_of(Block(tuple(statements))):
            if isinstance(s, Load | Store) and s.buffer in self.written and s.buffer.space is not Space.LOCAL:
                found.setdefault(s.buffer, set()).add(phase.place(s.address) if phase else None)
        for buffer, places in found.items():
            before = self.since.get(buffer, places)
            if buffer in self.since and (before != places or len(places) > 1 or None in places):
                self.b.barrier()
                self.since.clear()
                break
        for buffer, places in found.items():
            self.since.setdefault(buffer, set()).update(places)

    # -- phases

    def phase(self, phase: Phase) -> None:
        """Write a map, or a reduction whose results all threads have."""
        stored = {s.buffer for s in statements_of(phase.body) if isinstance(s, Store)}
        self.known = {key: value for key, value in self.known.items() if key[0] not in stored}
        body = with_statements(phase.body, lambda s: () if isinstance(s, Load) and self.is_known(s) else (s,))
        self.meet(phase, body.statements)
        carries = phase.loops[-1].carries
        given = [Carry(c.register, c.identity) for c in carries if c.identity is not None]
        totals: list[Operand] = list(self.columns(phase, body, given))
        totals = [halved(self.b, c, total, WARP) for c, total in zip(carries, totals, strict=True)]
        if self.shared and carries:
            mine, self.shared = self.shared[: len(carries)], self.shared[len(carries) :]
            totals = across_warps(self.b, carries, totals, mine, self.thread)
        outermost = phase.loops[0]
        for start, carry, result, total in zip(outermost.carries, carries, outermost.results, totals, strict=True):
            assert carry.combine is not None
            initial = start.initial
            initial = self.names.get(initial, initial) if isinstance(initial, Register) else initial
            self.b.add(Compute(result, carry.combine, (initial, total)))

    def columns(self, phase: Phase, body: Block, carries: Sequence[Carry]) -> tuple[Register, ...]:
        """Write a loop over a thread's groups, unrolled if some lie in registers. Return the carries' results."""
        k, groups = Register(I64, "k"), phase.length // self.width
        results = tuple(Register(c.register.dtype, "part") for c in carries)
        outer = (
            carries if self.width == 1 else [replace(c, register=Register(c.register.dtype, "acc")) for c in carries]
        )
        inner = Builder()
        if not any(self.is_kept(phase, s) for s in statements_of(body)):
            index = phase.loops[-1].index if len(phase.loops) == self.width == 1 else k
            ends = self.group(inner, phase, body, (index, index), (carries, outer))
            stop, step = index_constant(groups), self.threads
            loop = For(index, self.thread, stop, inner.finish(*ends), LoopKind.SERIAL, step, 1, tuple(outer), results)
        else:
            group = inner.compute(ScalarOp.MUL, k, self.threads)
            group = inner.compute(ScalarOp.ADD, group, self.thread, name="j")
            ends = self.inside(inner, phase, body, (k, group), (carries, outer))
            start, stop = index_constant(0), index_constant(self.rounds(phase.length))
            loop = For(k, start, stop, inner.finish(*ends), carries=tuple(outer), results=results, unrolled=True)
        self.b.add(loop)
        return results

    def is_kept(self, phase: Phase, s: Statement) -> bool:
        """Whether a statement accesses an array in registers, or memory that has one."""
        return (isinstance(s, Load | Store) and s.buffer in self.local) or self.kept(phase, s) in self.local

    def inside(
        self, inner: Builder, phase: Phase, body: Block, place: tuple[Operand, Operand],
        carries: tuple[Sequence[Carry], Sequence[Carry]],
    ) -> Sequence[Operand]:  # fmt: skip
        """Write a group, if there is one: the last round may have fewer groups than threads."""
        groups = phase.length // self.width
        if groups % self.threads == 0:
            return self.group(inner, phase, body, place, carries)
        with inner.if_(inner.compute(ScalarOp.LT, place[1], groups, name="inside")) as branch:
            branch.yields(*self.group(inner, phase, body, place, carries))
        if carries[1]:
            with branch.otherwise as otherwise:
                otherwise.yields(*(c.register for c in carries[1]))
        return branch.results

    def group(
        self, inner: Builder, phase: Phase, body: Block, place: tuple[Operand, Operand],
        carries: tuple[Sequence[Carry], Sequence[Carry]],
    ) -> Sequence[Operand]:  # fmt: skip
        """Write a group of columns. Return its yields.

        place: which of the thread's groups, and of the row's. carries: of the columns, and of the groups.
        """
        moves, (k, group) = Group(inner, self.width, f"w{self.groups}_"), place
        self.groups += 1
        if self.width == 1:
            return self.column(inner, phase, self.with_registers(phase, body, address(k), moves, group), group)
        changed = self.with_registers(phase, body, address((k, self.width), moves.element), moves, group)
        each = Builder()
        column = group
        if not registers_read(changed).keys().isdisjoint(phase.axes.registers):
            column = each.compute(ScalarOp.MUL, group, self.width)
            column = each.compute(ScalarOp.ADD, column, moves.element, name="c")
        ends = self.column(each, phase, changed, column)
        within = [Carry(c.register, outer.register) for c, outer in zip(*carries, strict=True)]
        results = tuple(Register(c.register.dtype, "part") for c in within)
        moves.add(each.finish(*ends), within, results)
        return results

    def column(self, inner: Builder, phase: Phase, body: Block, column: Operand) -> list[Operand]:
        """Write a phase's statements for one column. Return their yields."""
        within = {**self.names, **phase.axes.locate(inner, column)}
        for s in in_thread(body.statements, within):
            inner.add(s)
        return [within.get(v, v) if isinstance(v, Register) else v for v in body.yields]

    def with_registers(self, phase: Phase, body: Block, at: Address, moves: Group, group: Operand) -> Block:
        """Return a phase's body with arrays in registers in the place of memory, and with wide accesses.

        at: the place of the column in the thread's arrays.
        """

        def change(s: Statement) -> Sequence[Statement]:
            if isinstance(s, Load | Store) and s.buffer in self.local:
                return (replace(s, buffer=self.local[s.buffer], address=at),)
            key = self.kept(phase, s)
            kept = None if key is None else self.local.get(key)
            if key is None or kept is None or not isinstance(s, Load):
                if (
                    not isinstance(s, Load | Store)
                    or self.width == 1
                    or not (place := column_place(phase, s))
                    or not place[1]
                ):
                    return (s,)
                return (moves.moved(s, self.start(phase, s, group)),)
            if key in self.filled:
                return (Load(s.result, kept, at),)
            self.filled.add(key)
            if self.width == 1:
                return (s, Store(kept, at, s.result))
            first = Address(0, tuple((r, n) for r, n in at.terms if r is not moves.element))
            moves.b.copy(View(kept, first), View(s.buffer, self.start(phase, s, group)), self.width)
            return (Load(s.result, kept, at),)

        return with_statements(body, change)

    def start(self, phase: Phase, s: Load | Store, group: Operand) -> Address:
        """Return the address of a group's first column."""
        place = column_place(phase, s)
        assert place is not None, "wide accesses step by one"
        terms = [(self.names.get(r, r), n) for r, n in place[0].terms]
        return address(place[0].constant, *terms, (group, self.width))
