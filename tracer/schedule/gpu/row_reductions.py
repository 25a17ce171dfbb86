"""Row reductions on a GPU: a block of threads for each row, which joins its parts in a fixed order.

With T threads, a power of two that follows from the row's length and the number of rows:

1. thread t joins elements t, t + T, t + 2T, ... in this order, starting from the operation's identity;
2. the 32 lanes of each warp join by halving: lane i with lane i ^ 16, then 8, 4, 2, 1;
3. the T / 32 totals of the warps join in the same way, through shared memory;
4. the reduction's initial value comes in from the left.

Step 2 exchanges values in both directions. All operations commute, so that every lane ends with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from tracer.ir.loop import (
    Address,
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
    index_constant,
)
from tracer.ir.loop.build import Builder
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.threads import WARP, Axes, Names, Unfit, in_thread, is_reduction, trips

_MOST_THREADS = 256
_MOST_THREADS_FEW_ROWS = 512  # a single row has but one multiprocessor
_FEW_ROWS = 16
_ELEMENTS_A_THREAD = 4  # at least, where the row is long enough for a warp


@dataclass(frozen=True, slots=True)
class Row:
    """A reduction of one row. loops: the reduced ones, outermost first; the innermost has the combining carries.

    before: statements whose results it reads. after: statements that read its results."""

    before: tuple[Statement, ...]
    loops: tuple[For, ...]
    after: tuple[Statement, ...]

    @property
    def axes(self) -> Axes:
        """The reduced axes."""
        return Axes(tuple(loop.index for loop in self.loops), tuple(trips(loop) for loop in self.loops))

    @property
    def length(self) -> int:
        return prod(self.axes.sizes)

    @property
    def innermost(self) -> Register:
        """The reduced index that runs fastest."""
        return self.loops[-1].index

    def smoothness(self, register: Register | None) -> int:
        """Return the number of accesses that are contiguous in the register."""
        return sum((register, 1) in address.terms for address in _addresses(self.loops[-1].body.statements))


def _addresses(statements: Sequence[Statement]) -> Iterator[Address]:
    for s in statements:
        match s:
            case Load() | Store():
                yield s.address
            case For():
                yield from _addresses(s.body.statements)
            case _:
                pass


def row_of(statements: Sequence[Statement]) -> Row | None:
    """Return the statements as one reduction with the statements before and after it; None for other statements."""
    at = [i for i, s in enumerate(statements) if isinstance(s, For)]
    if len(at) != 1:
        return None
    before, loop, after = tuple(statements[: at[0]]), statements[at[0]], tuple(statements[at[0] + 1 :])
    plain = all(isinstance(s, Compute | Load) for s in before) and all(isinstance(s, Compute | Store) for s in after)
    assert isinstance(loop, For)
    loops = _chain(loop) if plain and is_reduction(loop) else ()
    try:
        return Row(before, loops, after) if all(trips(each) >= 0 for each in loops) and loops else None
    except Unfit:
        return None


def _chain(loop: For) -> tuple[For, ...]:
    """Return the reduced loops from this one inwards, none if an outer one does more than pass results on."""
    if all(carry.combine is not None for carry in loop.carries):
        return (loop,)
    inner = loop.body.statements[0]
    assert isinstance(inner, For), "a reduction holds one loop, or joins itself"
    handed = tuple(carry.register for carry in loop.carries) == tuple(carry.initial for carry in inner.carries)
    rest = _chain(inner)
    return (loop, *rest) if handed and loop.body.yields == inner.results and rest else ()


def map_rows(axes: Axes, row: Row, loads: Sequence[Statement] = ()) -> Block:
    """Return a kernel with one block of threads for each row: see the module docstring."""
    rows = prod(axes.sizes)
    threads = _threads(rows, row.length)
    b = Builder()
    with b.for_("b", 0, rows, kind=LoopKind.BLOCK) as block:
        names = axes.locate(b, block.index)
        carries = row.loops[-1].carries
        shared = [_shared(b, n, c, threads) for n, c in enumerate(carries)] if threads > WARP else []
        with b.for_("t", 0, threads, kind=LoopKind.THREAD) as thread:
            for statement in (*loads, *in_thread(row.before, names)):
                b.add(statement)
            totals = _partial(b, row, names, thread.index, threads)
            totals = [_halved(b, c, total, WARP) for c, total in zip(carries, totals, strict=True)]
            if shared:
                totals = _across_warps(b, carries, totals, shared, thread.index)
            _finish(b, row, names, totals, thread.index)
    return b.finish()


def _threads(rows: int, length: int) -> int:
    most = _MOST_THREADS_FEW_ROWS if rows < _FEW_ROWS else _MOST_THREADS
    threads = WARP
    while threads < most and threads * _ELEMENTS_A_THREAD < length:
        threads *= 2
    return threads


def _shared(b: Builder, number: int, carry: Carry, threads: int) -> Buffer:
    return b.alloc(Buffer(f"s{number}", carry.register.dtype, threads // WARP, Space.SHARED, written=True))


def _partial(b: Builder, row: Row, names: Names, thread: Register, threads: int) -> list[Operand]:
    """Write step 1: each thread's share of the row."""
    innermost, axes = row.loops[-1], row.axes
    position = Register(innermost.index.dtype, "k") if len(row.loops) > 1 else innermost.index
    inner = Builder()
    within = {**names, **axes.locate(inner, position)}
    for statement in in_thread(innermost.body.statements, within):
        inner.add(statement)
    yields = tuple(within.get(v, v) if isinstance(v, Register) else v for v in innermost.body.yields)
    carries = [Carry(c.register, c.identity) for c in innermost.carries if c.identity is not None]
    results = [Register(c.register.dtype, "part") for c in carries]
    b.add(
        For(
            position, thread, index_constant(row.length), inner.finish(*yields), LoopKind.SERIAL, threads, 1,
            tuple(carries), tuple(results),
        )
    )  # fmt: skip
    return list(results)


def _halved(b: Builder, carry: Carry, value: Operand, lanes: int) -> Operand:
    """Write step 2: the total of `lanes` lanes, in every one of them."""
    assert carry.combine is not None
    offset = lanes // 2
    while offset:
        value = b.apply(carry.combine, value, b.shuffle(value, offset))
        offset //= 2
    return value


def _across_warps(
    b: Builder, carries: Sequence[Carry], totals: Sequence[Operand], shared: Sequence[Buffer], thread: Register
) -> list[Operand]:
    """Write step 3: the first lane of each warp stores its total, and every warp joins all of them."""
    warps = shared[0].size
    warp = b.compute(ScalarOp.IDIV, thread, WARP, name="warp")
    first = b.compute(ScalarOp.EQ, b.compute(ScalarOp.IREM, thread, WARP), 0, name="first")
    assert isinstance(warp, Register)
    for buffer, total in zip(shared, totals, strict=True):
        b.store(buffer, warp, total, mask=first)
    b.barrier()
    mine = b.compute(ScalarOp.IREM, thread, warps, name="lane")
    assert isinstance(mine, Register)
    return [_halved(b, c, b.load(buffer, mine), warps) for c, buffer in zip(carries, shared, strict=True)]


def _finish(b: Builder, row: Row, names: Names, totals: Sequence[Operand], thread: Register) -> None:
    """Write step 4, and the statements that one thread runs afterwards."""
    outermost = row.loops[0]
    for start, carry, result, total in zip(
        outermost.carries, row.loops[-1].carries, outermost.results, totals, strict=True
    ):
        assert carry.combine is not None
        initial = names.get(start.initial, start.initial) if isinstance(start.initial, Register) else start.initial
        b.add(Compute(result, carry.combine, (initial, total)))
    with b.if_(b.compute(ScalarOp.EQ, thread, 0)):
        for statement in in_thread(row.after, names):
            b.add(statement)
