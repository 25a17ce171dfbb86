"""Rows on a GPU: nests whose rows are a sequence of reductions and maps over columns, a block of threads a row.

    statements between    all threads compute them alike; one thread stores their results
    reductions            see `row_reductions`; every thread has the total
    maps                  thread t takes columns t, t + T, t + 2T, ..., or groups of columns in this way

A column belongs to the same thread in all of them. So an array that only the row itself reads, column by column, lies
in registers (see `folds`). Values that several phases load lie there, too. Other memory is handed on after a barrier.
`row_kernels` writes the kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Alloc,
    Block,
    Buffer,
    Compute,
    For,
    Function,
    Load,
    LoopKind,
    Register,
    Statement,
    Store,
)  # fmt: skip
from tracer.ir.loop.walk import accesses_of, statements_of
from tracer.ir.target import Machine
from tracer.schedule.gpu.row_reductions import chain, threads_for
from tracer.schedule.gpu.threads import Axes, Unfit, is_reduction, split, trips

SHORT_ROW: Final = 32
"""Elements of the shortest row that more than one thread reduces."""
_MANY_ROWS: Final = 1024  # that keep a GPU busy with one thread a row
REGISTER_BYTES: Final = 256
"""Bytes of a thread's columns in registers: half of what each of 512 threads can have."""

Place = tuple[int, int, int, frozenset[tuple[Register, int]]]
"""An address by column: the number of columns, the step from one to the next, and the terms without columns."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A reduction or map over the columns of a row. loops: over them, outermost first."""

    loops: tuple[For, ...]
    reduces: bool

    @property
    def axes(self) -> Axes:
        return Axes(tuple(loop.index for loop in self.loops), tuple(trips(loop) for loop in self.loops))

    @property
    def length(self) -> int:
        return prod(self.axes.sizes)

    @property
    def body(self) -> Block:
        return self.loops[-1].body

    def place(self, address: Address) -> Place | None:
        """Return an address by column, None where it does not step evenly from column to column."""
        steps = dict(address.terms)
        own, step = 1, steps.get(self.loops[-1].index, 0)
        for loop in reversed(self.loops):
            if steps.get(loop.index, 0) != step * own:
                return None
            own *= trips(loop)
        columns = self.axes.registers
        rest = frozenset((r, c) for r, c in address.terms if r not in columns)
        return self.length, step, address.constant, rest


@dataclass(frozen=True, slots=True)
class RowProgram:
    """The statements of a row, in order."""

    steps: tuple[Statement | Phase, ...]

    @property
    def phases(self) -> tuple[Phase, ...]:
        return tuple(step for step in self.steps if isinstance(step, Phase))

    @property
    def length(self) -> int:
        """Columns of the longest phase."""
        return max(phase.length for phase in self.phases)

    def smoothness(self, register: Register | None = None) -> int:
        """Return the number of accesses that are contiguous in the register; in each phase's columns for None."""
        return sum(
            (register or phase.loops[-1].index, 1) in address.terms
            for phase in self.phases
            for s in statements_of(phase.body)
            if isinstance(s, Load | Store)
            for _, address, _ in accesses_of(s)
        )


def row_program(statements: Sequence[Statement]) -> RowProgram | None:
    """Return the statements of a row as phases and statements between, or None for other statements."""
    steps: list[Statement | Phase] = []
    for s in statements:
        if isinstance(s, For):
            try:
                phase = _phase(s)
            except Unfit:
                return None
            if phase is None:
                return None
            steps.append(phase)
        elif isinstance(s, Compute | Load | Store | Alloc):
            steps.append(s)
        else:
            return None
    return RowProgram(tuple(steps)) if any(isinstance(step, Phase) for step in steps) else None


def _phase(s: For) -> Phase | None:
    if is_reduction(s):
        loops = chain(s)
        return Phase(loops, reduces=True) if loops and all(trips(loop) >= 0 for loop in loops) else None
    loops = (s,)
    while len(loops[-1].body.statements) == 1 and isinstance(loops[-1].body.statements[0], For):
        inner = loops[-1].body.statements[0]
        if inner.kind is not LoopKind.PARALLEL:
            break
        loops = (*loops, inner)
    is_map = all(loop.kind is LoopKind.PARALLEL and not loop.carries and trips(loop) >= 0 for loop in loops)
    return Phase(loops, reduces=False) if is_map else None


def takes_columns(axes: Axes, program: RowProgram) -> bool:
    """Whether a nest is one reduction that reads its innermost independent axis smoothly, and the reduced one not."""
    if axes.last is None or len(program.phases) != 1 or not program.phases[0].reduces or program.length < SHORT_ROW:
        return False
    simple = all(isinstance(s, Phase | Compute | Load | Store) for s in program.steps)
    return simple and program.smoothness(axes.last) > program.smoothness()


def takes_a_block(axes: Axes, program: RowProgram) -> bool:
    """Whether each row gets a block of its own: where that reads memory smoothly, or rows are few."""
    if program.length < SHORT_ROW or takes_columns(axes, program):
        return False
    return prod(axes.sizes) < _MANY_ROWS or program.smoothness() >= program.smoothness(axes.last or Register(I64))


def has_blocks(loop: For, _: Machine) -> bool:
    """Whether the rows of a loop get a block each."""
    program = row_program(loop.body.statements)
    return program is not None and takes_a_block(Axes((loop.index,), (trips(loop),)), program)


def folds(function: Function, buffers: Sequence[Buffer]) -> bool:
    """Whether arrays of which each row reads and writes its own part may all lie in registers.

    The parts are single values, or are read and written column by column, by phases over all columns.
    """
    axes, statements = split(function.body)
    program = row_program(statements)
    if program is None or not takes_a_block(axes, program):
        return False
    rows, room = prod(axes.sizes), REGISTER_BYTES
    for buffer in buffers:
        length = buffer.size // max(rows, 1)
        room -= register_bytes(buffer, length, threads_for(rows, program.length))
        if not all(_is_own(step, buffer, length) for step in program.steps):
            return False
    return room >= 0


def register_bytes(buffer: Buffer, columns: int, threads: int) -> int:
    """Return the bytes of a thread's columns in registers."""
    return -(-columns // threads) * max(buffer.dtype.itemsize, 4) if columns > 1 else 0


def _is_own(step: Statement | Phase, buffer: Buffer, length: int) -> bool:
    """Whether a step uses a buffer only as the row's single value, or column by column."""
    if not isinstance(step, Phase):
        return length == 1 or all(b is not buffer for b, _, _ in accesses_of(step))
    for s in statements_of(step.body):
        for b, address, _ in accesses_of(s):
            place = step.place(address)
            if b is buffer and (isinstance(s, Store) if length == 1 else not place or place[:2] != (length, 1)):
                return False
    return True
