"""Long columns of cumulative operations on a GPU: a thread for each chunk of a column, where columns are few.

Threads that follow each other take neighbouring columns, so that they read and write neighbouring elements:

1. a thread joins the elements of its chunk in order, starting from the operation's identity;
2. it joins the initial value with the totals of the chunks before, in order, and then its chunk again. Each of the
   chunk's partial results comes in from the right, so that sums of non-negative values never decrease.

Chunks follow from shapes alone. Products of floats stay in order: a part might overflow, and the whole not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Carry,
    Constant,
    For,
    Function,
    LoopKind,
    Operand,
    Register,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.build import Builder, address
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.scan_kernels import BLOCKS, Scan, partial_results, scan_of, totals_of
from tracer.schedule.gpu.threads import Axes, renamed
from tracer.schedule.terms.two_steps import Steps

_THREADS: Final = 256 * BLOCKS
_MIN_CHUNK: Final = 24  # elements, so that a large GPU has work from 8 MB on
SMALL: Final = 1 << 16
"""Elements that one kernel reads before a second one is launched."""


def chunked_columns(function: Function, arena: int, small: int) -> Steps | None:
    """Return the nests of a scan of few long columns, and the memory between them. None for other functions.

    small: elements of a scan that stays one nest.
    """
    found = partial_results(function.body)
    if found is None or scan_of(function.body) is not None:
        return None
    axes, scan = found
    count = prod(axes.sizes)
    wanted = min(_THREADS // max(count, 1), scan.length // _MIN_CHUNK)
    if wanted < 2 or count * scan.length < small:
        return None
    size = -(-scan.length // wanted)
    chunks = -(-scan.length // size)
    buffers, parts = totals_of(function.name, scan.loop.results, chunks * count, arena)
    columns = _Columns(axes, scan, parts, chunks, size)
    parameters = (*function.parameters, *parts)
    first = Function(f"{function.name}_chunks", parameters, columns.nest(alone=True))
    return first, Function(f"{function.name}_joined", parameters, columns.nest(alone=False)), buffers


class _Columns:
    """Writer of both nests. totals: memory of the chunks' totals. size: elements of a chunk."""

    def __init__(self, axes: Axes, scan: Scan, totals: Sequence[Buffer], chunks: int, size: int) -> None:
        self.axes, self.scan, self.totals, self.chunks, self.size = axes, scan, totals, chunks, size
        self.chunk = Register(I64, "chunk")
        self.count = prod(axes.sizes)
        self.empty = [Constant(identity(s.op, s.result.dtype), s.result.dtype) for s in scan.joined]

    def nest(self, *, alone: bool) -> Block:
        """Return the nest of step 1 if `alone`, else of step 2."""
        b = Builder()
        column = [(r, prod(self.axes.sizes[n + 1 :])) for n, r in enumerate(self.axes.registers)]
        place = address(*column)
        before = () if alone else self.before(b, place)
        first = b.compute(ScalarOp.MUL, self.chunk, self.size, name="first")
        stop: Operand = index_constant(self.size)
        if self.size * self.chunks > self.scan.length:
            stop = b.compute(ScalarOp.MIN, b.compute(ScalarOp.SUB, self.scan.length, first), self.size, name="stop")
        carries = [Carry(Register(x.dtype, "so_far"), x) for x in self.empty]
        with b.for_("k", 0, stop, carries=carries) as loop:
            names = {self.scan.loop.index: b.compute(ScalarOp.ADD, first, loop.index, name="row")}
            loop.yields(*self.element(b, names, loop.carries, before))
        if alone:
            for buffer, total in zip(self.totals, loop.results, strict=True):
                b.store(buffer, address(place, (self.chunk, self.count)), total)
        body = b.finish()
        loops = [(self.chunk, self.chunks), *zip(self.axes.registers, self.axes.sizes, strict=True)]
        for register, length in reversed(loops):
            body = Block((For(register, index_constant(0), index_constant(length), body, LoopKind.PARALLEL),))
        return body

    def before(self, b: Builder, place: Address) -> Sequence[Operand]:
        """Write the initial values joined with the totals of the chunks before."""
        carries = [Carry(Register(c.register.dtype, "before"), c.initial) for c in self.scan.loop.carries]
        with b.for_("c", 0, self.chunk, carries=carries) as loop:
            totals = [b.load(buffer, address(place, (loop.index, self.count))) for buffer in self.totals]
            pairs = zip(self.scan.joined, loop.carries, totals, strict=True)
            loop.yields(*(b.apply(s.op, x, total) for s, x, total in pairs))
        return loop.results

    def element(
        self, b: Builder, names: Mapping[Register, Operand], so_far: Sequence[Operand], before: Sequence[Operand]
    ) -> Sequence[Operand]:
        """Write an element of the chunk, and in step 2 its results. Return the chunk's partial results."""
        for s in self.scan.before:
            b.add(renamed(s, names))
        elements = [names.get(x, x) if isinstance(x, Register) else x for x in self.scan.elements]
        pairs = zip(self.scan.joined, so_far, elements, strict=True)
        found = [b.apply(s.op, x, element) for s, x, element in pairs]
        if before:
            own = dict(names)
            for s, left, x in zip(self.scan.joined, before, found, strict=True):
                own[s.result] = b.apply(s.op, left, x)
            for statement in self.scan.after:
                b.add(renamed(statement, own))
        return found
