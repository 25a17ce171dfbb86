"""Row reductions on a GPU: a block of threads for each row, which joins its parts in a fixed order.

With T threads, a power of two that follows from the row's length and the number of rows:

1. thread t joins groups t, t + T, t + 2T, ... of neighbouring elements, starting from the operation's identity (see
   `wide_accesses.row_width`);
2. the 32 lanes of each warp join by halving: lane i with lane i ^ 16, then 8, 4, 2, 1;
3. the T / 32 totals of the warps join in the same way, through shared memory;
4. the reduction's initial value comes in from the left.

Step 2 exchanges values in both directions. All operations commute, so that every lane ends with the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracer.ir.loop import (
    Buffer,
    Carry,
    For,
    Operand,
    Register,
    Space,
)
from tracer.ir.loop.build import Builder
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.threads import WARP

_MAX_THREADS = 256
_MAX_THREADS_FEW_ROWS = 512  # a single row has but one multiprocessor
_FEW_ROWS = 16
_LONG_ROW = 1 << 12  # whose columns lie in registers of more threads
_ELEMENTS_A_THREAD = 4  # at least, where the row is long enough for a warp


def chain(loop: For) -> tuple[For, ...]:
    """Return the reduced loops from this one inwards, none if an outer one does more than pass results on."""
    if all(carry.combine is not None for carry in loop.carries):
        return (loop,)
    inner = loop.body.statements[0]
    assert isinstance(inner, For), "a reduction holds one loop, or joins itself"
    handed = tuple(carry.register for carry in loop.carries) == tuple(carry.initial for carry in inner.carries)
    rest = chain(inner)
    return (loop, *rest) if handed and loop.body.yields == inner.results and rest else ()


def threads_for(rows: int, length: int) -> int:
    """Return the threads of a row's block."""
    most = _MAX_THREADS_FEW_ROWS if rows < _FEW_ROWS or length > _LONG_ROW else _MAX_THREADS
    threads = WARP
    while threads < most and threads * _ELEMENTS_A_THREAD < length:
        threads *= 2
    return threads


def shared_totals(b: Builder, carries: Sequence[Carry], threads: int) -> list[Buffer]:
    """Allocate memory for the totals of the warps, one for each carry; none where a warp is the block."""
    if threads == WARP:
        return []
    sizes = [(f"s{n}", carry.register.dtype, threads // WARP) for n, carry in enumerate(carries)]
    return [b.alloc(Buffer(*size, Space.SHARED, written=True)) for size in sizes]


def halved(b: Builder, carry: Carry, value: Operand, lanes: int) -> Operand:
    """Write step 2: the total of `lanes` lanes, in every one of them."""
    assert carry.combine is not None
    offset = lanes // 2
    while offset:
        value = b.apply(carry.combine, value, b.shuffle(value, offset))
        offset //= 2
    return value


def across_warps(
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
    return [halved(b, c, b.load(buffer, mine), warps) for c, buffer in zip(carries, shared, strict=True)]
