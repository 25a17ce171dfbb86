"""Cumulative operations on a GPU: a block of threads for each row, or for each chunk of a long row.

A block takes tiles with a column for each thread, so that threads read and write neighbouring elements:

1. the 32 lanes of each warp combine by halves, the last lane of a first half with every lane of the second one
   (Sklansky 1960, as in `loop.Prefix`);
2. the totals of the warps before, from the row's first one on, come in from the left, in order;
3. with chunks, a first kernel finds the total of each. In a second one the totals of the chunks before come in from
   the left, in order.

Sums of non-negative values never decrease. Chunks follow from shapes alone. Products of floats stay in order: a part
might overflow, and the whole not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from tracer.ir import dtypes
from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Carry,
    Compute,
    Constant,
    For,
    Function,
    Load,
    LoopKind,
    Operand,
    Register,
    Space,
    Statement,
    Store,
)  # fmt: skip
from tracer.ir.loop.build import Builder, constant
from tracer.ir.loop.walk import operands_of
from tracer.ir.reductions import COMBINING, identity
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.row_programs import SHORT_ROW
from tracer.schedule.gpu.row_reductions import threads_for
from tracer.schedule.gpu.threads import WARP, Axes, Unfit, in_thread, split, trips

BLOCKS: Final = 264
"""Blocks of a kernel that needs no chunks: two for each multiprocessor of a large GPU."""
MIN_CHUNK: Final = 1 << 12
"""Fewest elements of a chunk."""
ALIGNMENT: Final = 64
"""Bytes, of the memory for chunks' totals."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A loop that stores partial results.

    before: statements that need none of them. joined: the results, one for each carry. elements: the values
    that they join. after: statements that need results.
    """

    loop: For
    before: tuple[Statement, ...]
    joined: tuple[Compute, ...]
    elements: tuple[Operand, ...]
    after: tuple[Statement, ...]

    @property
    def length(self) -> int:
        return trips(self.loop)

    @property
    def shared(self) -> tuple[Register, ...]:
        """Registers of `before` that `after` reads."""
        own = {s.result for s in self.before if isinstance(s, Compute | Load)}
        found = (v for s in self.after for v in _read(s) if isinstance(v, Register) and v in own)
        return tuple(dict.fromkeys(found))

    def smoothness(self, register: Register | None) -> int:
        """Return the number of accesses whose step in a register is one element."""
        accesses = [s for s in (*self.before, *self.after) if isinstance(s, Load | Store)]
        return sum(any(r is register and abs(c) == 1 for r, c in s.address.terms) for s in accesses)


def scan_of(nest: Block) -> tuple[Axes, Scan] | None:
    """Return the rows and their partial results where each row is worth a block, or None for other nests."""
    found = partial_results(nest)
    return found if found is not None and _takes_a_block(*found) else None


def partial_results(nest: Block) -> tuple[Axes, Scan] | None:
    """Return the rows of a nest and their partial results, or None for other nests."""
    try:
        alone = len(nest.statements) == 1 and isinstance(nest.statements[0], For) and nest.statements[0].carries
        axes, statements = (Axes((), ()), nest.statements) if alone else split(nest)
        scan = _scan(statements)
        return None if scan is None or trips(scan.loop) < 0 else (axes, scan)
    except Unfit:
        return None


def _scan(statements: Sequence[Statement]) -> Scan | None:
    if len(statements) != 1 or not isinstance(statements[0], For):
        return None
    loop = statements[0]
    body = loop.body.statements
    simple = loop.kind is LoopKind.SERIAL and all(isinstance(s, Compute | Load | Store) for s in body)
    if not simple or not loop.carries or any(c.combine is not None for c in loop.carries):
        return None
    carried = {c.register: n for n, c in enumerate(loop.carries)}
    joined, elements = dict[int, Compute](), dict[int, Operand]()
    before, after = list[Statement](), list[Statement]()
    results = set[Operand]()
    for s in body:
        taken = [v for v in _read(s) if isinstance(v, Register) and v in carried]
        if taken:
            number = carried[taken[0]]
            if len(taken) > 1 or number in joined or not isinstance(s, Compute) or not _associates(s):
                return None
            (elements[number],) = (v for v in s.operands if v is not taken[0])
            joined[number] = s
            results.add(s.result)
        elif isinstance(s, Store) or not results.isdisjoint(_read(s)):
            after.append(s)
            if isinstance(s, Compute | Load):
                results.add(s.result)
        else:
            before.append(s)
    ordered = tuple(joined[n] for n in sorted(joined))
    if loop.body.yields != tuple(s.result for s in ordered) or not results.isdisjoint(elements.values()):
        return None
    stored = {s.buffer for s in after if isinstance(s, Store)}
    if any(isinstance(s, Load) and s.buffer in stored for s in body):
        return None
    return Scan(loop, tuple(before), ordered, tuple(elements[n] for n in sorted(elements)), tuple(after))


def _read(s: Statement) -> list[Operand]:
    """Return the operands of a statement, addresses included."""
    places = [r for r, _ in s.address.terms] if isinstance(s, Load | Store) else []
    return [*operands_of(s), *places]


def _associates(s: Compute) -> bool:
    """Whether parts may be joined on their own."""
    dtype = s.result.dtype
    return s.op in COMBINING and len(s.operands) == 2 and not (s.op is ScalarOp.MUL and dtypes.is_float(dtype))


def _takes_a_block(axes: Axes, scan: Scan) -> bool:
    """Whether rows get blocks: where that reads memory smoothly, or rows would not fill a warp."""
    if scan.length < SHORT_ROW:
        return False
    return prod(axes.sizes) < WARP or scan.smoothness(scan.loop.index) >= max(1, scan.smoothness(axes.last))


def map_scan(axes: Axes, scan: Scan, loads: Sequence[Statement] = ()) -> Block:
    """Return a kernel with one block of threads for each row."""
    return _Scanning(axes, scan, loads).kernel()


def chunked_scan(function: Function, arena: int) -> tuple[Function, Function, list[Buffer]] | None:
    """Return the kernels of a scan of long rows, and the memory between them at an offset of the arena.

    None for other functions. The first kernel finds the totals of chunks, the second one all results.
    """
    found = scan_of(function.body)
    if found is None or any(isinstance(p, Register) for p in function.parameters):
        return None
    axes, scan = found
    rows = prod(axes.sizes)
    wanted = min(-(-BLOCKS // max(rows, 1)), scan.length // MIN_CHUNK)
    if wanted < 2 or not rows:
        return None
    threads = threads_for(rows * wanted, scan.length // wanted)
    size = -(-scan.length // wanted // threads) * threads
    chunks = -(-scan.length // size)
    buffers, parts = totals_of(function.name, scan.loop.results, rows * chunks, arena)
    first, second = (_Scanning(axes, scan, (), parts, chunks, size, alone).kernel() for alone in (True, False))
    parameters = (*function.parameters, *parts)
    named = (
        Function(f"{function.name}_chunks", parameters, first),
        Function(f"{function.name}_joined", parameters, second),
    )
    return *named, buffers


def totals_of(name: str, results: Sequence[Register], count: int, arena: int) -> tuple[list[Buffer], list[Buffer]]:
    """Return memory for `count` totals of each result, at an offset of the arena, and kernels' parameters for it."""
    buffers, offset = list[Buffer](), arena
    for n, result in enumerate(results):
        buffer = Buffer(f"{name}_totals{n}", result.dtype, count, Space.ARENA, offset, ALIGNMENT, written=True)
        buffers.append(buffer)
        offset += -(-count * result.dtype.itemsize // ALIGNMENT) * ALIGNMENT
    return buffers, [replace(b, name=f"totals{n}", space=Space.ARGUMENT, offset=0) for n, b in enumerate(buffers)]


class _Scanning:
    """Writer of a scan's kernel. totals: memory of the chunks' totals, which the kernel stores if `alone`."""

    def __init__(
        self, axes: Axes, scan: Scan, loads: Sequence[Statement], totals: Sequence[Buffer] = (), chunks: int = 1,
        size: int = 0, alone: bool = False,
    ) -> None:  # fmt: skip
        self.axes, self.scan, self.loads, self.totals, self.chunks = axes, scan, loads, totals, chunks
        self.size, self.alone = size or scan.length, alone
        self.blocks = prod(axes.sizes) * chunks
        self.threads = threads_for(self.blocks, self.size)
        self.warps = self.threads // WARP
        self.ops = tuple(s.op for s in scan.joined)
        self.dtypes = tuple(s.result.dtype for s in scan.joined)
        self.empty = tuple(Constant(identity(op, t), t) for op, t in zip(self.ops, self.dtypes, strict=True))
        self.b = Builder()

    def kernel(self) -> Block:
        b = self.b
        with b.for_("b", 0, self.blocks, kind=LoopKind.BLOCK) as block:
            row: Operand = block.index
            chunk: Operand = constant(0, I64)
            if self.chunks > 1:
                row = b.compute(ScalarOp.IDIV, block.index, self.chunks, name="row")
                chunk = b.compute(ScalarOp.IREM, block.index, self.chunks, name="chunk")
            names = dict(self.axes.locate(b, row))
            of_warps = self.memory("warps", 2 * self.warps if self.warps > 1 else 0)
            of_chunks = self.memory("chunks", 0 if self.alone or self.chunks == 1 else self.chunks)
            with b.for_("t", 0, self.threads, kind=LoopKind.THREAD) as thread:
                for load in self.loads:
                    b.add(load)
                offsets = self.offsets(of_chunks, row, chunk, thread.index) if of_chunks else ()
                first = b.compute(ScalarOp.ADD, b.compute(ScalarOp.MUL, chunk, self.size), thread.index, name="first")
                results = self.tiles(names, of_warps, offsets, first, thread.index)
                if self.alone:
                    mask = b.compute(ScalarOp.EQ, thread.index, 0)
                    for buffer, result in zip(self.totals, results, strict=True):
                        b.store(buffer, block.index, result, mask=mask)
        return b.finish()

    def memory(self, name: str, size: int) -> list[Buffer]:
        """Allocate memory of the block for each carry, none for size 0."""
        buffers = [Buffer(f"{name}{n}", t, size, Space.SHARED, written=True) for n, t in enumerate(self.dtypes)]
        return [self.b.alloc(buffer) for buffer in buffers if size]

    def join(self, xs: Sequence[Operand], ys: Sequence[Operand]) -> tuple[Operand, ...]:
        return tuple(self.b.apply(op, x, y) for op, x, y in zip(self.ops, xs, ys, strict=True))

    def offsets(self, shared: Sequence[Buffer], row: Operand, chunk: Operand, thread: Register) -> tuple[Operand, ...]:
        """Write the initial values joined with the totals of the chunks before."""
        b = self.b
        assert isinstance(row, Register)
        with b.for_("c", thread, self.chunks, step=self.threads) as each:
            for buffer, total in zip(shared, self.totals, strict=True):
                place = Address(0, ((row, self.chunks), (each.index, 1)))
                b.store(buffer, each.index, b.load(total, place))
        b.barrier()
        starts = [
            Carry(Register(t, "offset"), c.initial) for t, c in zip(self.dtypes, self.scan.loop.carries, strict=True)
        ]
        with b.for_("c", 0, chunk, carries=starts) as loop:
            loop.yields(*self.join(loop.carries, [b.load(buffer, loop.index) for buffer in shared]))
        return loop.results

    def tiles(
        self, names: Mapping[Register, Operand], shared: Sequence[Buffer], offsets: Sequence[Operand], first: Operand,
        thread: Register,
    ) -> tuple[Register, ...]:  # fmt: skip
        """Write all tiles of the block. Return the total of each carry."""
        b, scan = self.b, self.scan
        starts = self.empty if self.chunks > 1 else [c.initial for c in scan.loop.carries]
        carries = [Carry(Register(t, "so_far"), x) for t, x in zip(self.dtypes, starts, strict=True)]
        bits = [b.compute(ScalarOp.NE, b.compute(ScalarOp.AND, thread, 1 << n), 0) for n in range(5)]
        with b.for_("tile", 0, -(-self.size // self.threads), carries=carries) as tile:
            column = b.compute(ScalarOp.ADD, b.compute(ScalarOp.MUL, tile.index, self.threads), first, name="column")
            whole = self.size % self.threads == 0 and self.size * self.chunks == scan.length
            inside = None if whole else b.compute(ScalarOp.LT, column, scan.length, name="inside")
            within = {**names, scan.loop.index: column}
            found, total = self.in_warp(self.elements(within, inside), bits)
            before: Sequence[Operand] = tile.carries
            if shared:
                before, ends = self.across_warps(tile.index, tile.carries, total, shared, thread)
            else:
                ends = self.join(before, total)
            if not self.alone:
                self.finish(within, inside, self.join(before, found), offsets)
            tile.yields(*ends)
        return tile.results

    def elements(self, within: dict[Register, Operand], inside: Operand | None) -> Sequence[Operand]:
        """Write the values that a thread joins in this tile, the identity outside.

        Names the registers that `finish` reads.
        """
        b, scan = self.b, self.scan
        before = tuple(in_thread(scan.before, within))
        elements = [within.get(x, x) if isinstance(x, Register) else x for x in scan.elements]
        if inside is None:
            for s in before:
                b.add(s)
            return elements
        shared = () if self.alone else scan.shared
        with b.if_(inside) as branch:
            for s in before:
                b.add(s)
            branch.yields(*elements, *shared)
        with branch.otherwise as otherwise:
            otherwise.yields(*self.empty, *(Constant(r.dtype.type(0), r.dtype) for r in shared))
        within.update(zip(shared, branch.results[len(elements) :], strict=True))
        return branch.results[: len(elements)]

    def in_warp(self, found: Sequence[Operand], bits: Sequence[Operand]) -> tuple[Sequence[Operand], Sequence[Operand]]:
        """Write step 1: a lane's result, and the total of all lanes."""
        total = found
        for n, second in enumerate(bits):
            others = [self.b.shuffle(x, 1 << n) for x in total]
            found = self.b.choose(second, self.join(others, found), found)
            total = self.join(total, others)
        return found, total

    def across_warps(
        self, tile: Register, so_far: Sequence[Operand], total: Sequence[Operand], shared: Sequence[Buffer],
        thread: Register,
    ) -> tuple[Sequence[Operand], Sequence[Operand]]:  # fmt: skip
        """Write step 2: all before this warp, and all up to the last warp.

        Tiles use the halves of the memory in turn, so that one barrier a tile is enough.
        """
        b = self.b
        half, warp = b.compute(ScalarOp.AND, tile, 1), b.compute(ScalarOp.IDIV, thread, WARP, name="warp")
        assert isinstance(half, Register)
        assert isinstance(warp, Register)
        lane = b.compute(ScalarOp.EQ, b.compute(ScalarOp.IREM, thread, WARP), 0)
        for buffer, x in zip(shared, total, strict=True):
            b.store(buffer, Address(0, ((half, self.warps), (warp, 1))), x, mask=lane)
        b.barrier()
        before = so_far
        for n in range(self.warps):
            mine = b.compute(ScalarOp.EQ, warp, n)
            before = self.b.choose(mine, so_far, before) if n else so_far
            so_far = self.join(so_far, [b.load(buffer, Address(n, ((half, self.warps),))) for buffer in shared])
        return before, so_far

    def finish(
        self, within: Mapping[Register, Operand], inside: Operand | None, found: Sequence[Operand],
        offsets: Sequence[Operand],
    ) -> None:  # fmt: skip
        """Write the statements that need results."""
        results = self.join(offsets, found) if offsets else found
        names = {**within, **{s.result: x for s, x in zip(self.scan.joined, results, strict=True)}}
        after = in_thread(self.scan.after, names)
        if inside is None:
            for s in after:
                self.b.add(s)
            return
        with self.b.if_(inside):
            for s in after:
                self.b.add(s)
