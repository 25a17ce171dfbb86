"""Batches of small matrices: one problem a lane, so that vectors are full for any size.

A block of problems is transposed so that one element of all of them is a vector. Algorithms work on these vectors in
scratch memory that stays in the first cache, and the result is transposed back. Lanes are independent, so neither
threads nor vector width change bits. A single problem takes the same steps without lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.layout import components
from tracer.ir.loop import (
    Address,
    Buffer,
    Carry,
    Constant,
    LoopKind,
    Operand,
    Register,
    Space,
    Transpose,
    View,
    index_constant,
)
from tracer.ir.loop.build import Builder, constant
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp
from tracer.schedule.elements.complex.arithmetic import combine
from tracer.schedule.terms.affine import ZERO, Affine, of_operand, of_register, operand_of, plus, scaled, shifted
from tracer.schedule.terms.value_locations import Element, Memory
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter

_NONE: Final = index_constant(0)
_WRITTEN_OUT: Final = 4  # rows and columns up to which loops are written out, elements held in registers
_SWEPT_OUT: Final = 2  # the bound for algorithms in sweeps, which gain nothing from more


@dataclass
class Cells:
    """An array of scratch memory for each lane: `columns` elements a row, `parts` scalars each.

    known: the elements that are held in registers, where loops are written out; None where none is.
    """

    lanes: Lanes
    buffer: Buffer
    columns: int
    parts: int
    known: dict[int, Element] | None = field(default=None)

    def get(self, row: Affine, column: Affine = ZERO) -> Element:
        at = plus(scaled(row, self.columns), column)
        if self.known is None:
            return self._load(at)
        if at.constant not in self.known:
            self.known[at.constant] = self._load(at)
        return self.known[at.constant]

    def put(self, element: Element, row: Affine, column: Affine = ZERO) -> None:
        at = plus(scaled(row, self.columns), column)
        if self.known is None:
            self._store(at, element)
        else:
            self.known[at.constant] = element

    def flush(self) -> None:
        """Store the elements held in registers."""
        for position, element in (self.known or {}).items():
            self._store(Affine(position), element)

    def _load(self, at: Affine) -> Element:
        return tuple(self.lanes.b.load(self.buffer, self._place(at, part)) for part in range(self.parts))

    def _store(self, at: Affine, element: Element) -> None:
        for part, value in enumerate(element):
            self.lanes.b.store(self.buffer, self._place(at, part), value)

    def _place(self, at: Affine, part: int) -> Address:
        width = self.lanes.width
        return plus(scaled(at, self.parts * width), Affine(part * width), self.lanes.lane)


class Lanes:
    """Vocabulary of an algorithm's steps: loops, sums along them, and arithmetic on elements."""

    def __init__(self, b: Builder, width: int, *, written_out: bool) -> None:
        self.b = b
        self.width = width
        self.written_out = written_out
        self.lane: Affine = ZERO

    def cells(self, buffer: Buffer, columns: int, parts: int) -> Cells:
        return Cells(self, buffer, columns, parts, {} if self.written_out else None)

    def each(self, start: Affine, stop: Affine, body: Callable[[Affine], None]) -> None:
        """Write the body for every index from start to stop."""
        if self.written_out:
            for index in range(start.constant, stop.constant):
                body(Affine(index))
            return
        with self.b.for_("k", operand_of(self.b, start), operand_of(self.b, stop)) as loop:
            body(of_register(loop.index))

    def each_down(self, stop: int, body: Callable[[Affine], None]) -> None:
        """Write the body for every index below `stop`, from the last to the first."""
        self.each(ZERO, Affine(stop), lambda k: body(plus(Affine(stop - 1), scaled(k, -1))))

    def fold(
        self, start: Affine, stop: Affine, initial: Element, body: Callable[[Affine, Element], Element]
    ) -> Element:
        """Return the last element of a loop that computes each one from the one before."""
        if self.written_out:
            for index in range(start.constant, stop.constant):
                initial = body(Affine(index), initial)
            return initial
        carries = [Carry(Register(x.dtype, "sum"), x) for x in initial]
        loop = self.b.for_("k", operand_of(self.b, start), operand_of(self.b, stop), carries=carries)
        with loop:
            loop.yields(*body(of_register(loop.index), tuple(loop.carries)))
        return tuple(loop.results)

    def all(self, rows: int, columns: int, body: Callable[[Affine, Affine], None]) -> None:
        """Write the body for every row and column."""
        self.each(ZERO, Affine(rows), lambda i: self.each(ZERO, Affine(columns), lambda j: body(i, j)))

    def pairs(self, n: int, body: Callable[[Affine, Affine], None]) -> None:
        """Write the body for every pair of indices below n, the lower one first, row by row."""
        self.each(ZERO, Affine(n - 1), lambda i: self.each(shifted(i, 1), Affine(n), lambda j: body(i, j)))

    def exchange(self, array: Cells, row: Affine, other: Operand, rows: Affine, columns: Affine) -> None:
        """Swap rows `row` and `other`, which is at least `row`. Each lane has its own `other`."""
        if not self.written_out:
            place = of_operand(other)

            def swap(column: Affine) -> None:
                x, y = array.get(row, column), array.get(place, column)
                array.put(x, place, column)
                array.put(y, row, column)

            self.each(ZERO, columns, swap)
            return
        below = [Affine(i) for i in range(row.constant + 1, rows.constant)]
        hits = [self.b.apply(ScalarOp.EQ, other, operand_of(self.b, i)) for i in below]
        for column in map(Affine, range(columns.constant)):
            x = front = array.get(row, column)
            for i, hit in zip(below, hits, strict=True):
                y = array.get(i, column)
                array.put(self.choose(hit, x, y), i, column)
                front = self.choose(hit, y, front)
            array.put(front, row, column)

    # -- arithmetic ------------------------------------------------------------------------------------------------

    def less_product(self, total: Element, x: Element, y: Element) -> Element:
        """Return total - x * y, each product rounded with its sum."""
        fma, minus = ScalarOp.FMA, self.b.apply(ScalarOp.NEG, x[0])
        if len(x) == 1:
            return (self.b.apply(fma, minus, y[0], total[0]),)
        turned = self.b.apply(ScalarOp.NEG, x[1])
        real = self.b.apply(fma, minus, y[0], self.b.apply(fma, x[1], y[1], total[0]))
        imag = self.b.apply(fma, minus, y[1], self.b.apply(fma, turned, y[0], total[1]))
        return real, imag

    def product(self, x: Element, y: Element) -> Element:
        """Return x * y."""
        return combine(self.b, ScalarOp.MUL, x, y) if len(x) > 1 else (self.b.apply(ScalarOp.MUL, x[0], y[0]),)

    def by(self, x: Element, factor: Operand) -> Element:
        """Return an element times a real scalar."""
        return tuple(self.b.apply(ScalarOp.MUL, part, factor) for part in x)

    def conjugate(self, x: Element) -> Element:
        return x if len(x) == 1 else (x[0], self.b.apply(ScalarOp.NEG, x[1]))

    def size(self, x: Element) -> Operand:
        """Return |x|, or |Re x| + |Im x|."""
        parts = [self.b.apply(ScalarOp.ABS, part) for part in x]
        return parts[0] if len(x) == 1 else self.b.apply(ScalarOp.ADD, *parts)

    def divider(self, x: Element) -> Callable[[Element], Element]:
        """Return a function that divides by x, as a product with its reciprocal.

        Subnormal divisors and their dividends are scaled by a power of two first, so that no reciprocal overflows."""
        dtype = x[0].dtype
        tiny, grown = (2.0**-124, 2.0**64) if dtype == dtypes.F32 else (2.0**-1018, 2.0**128)
        is_tiny = self.b.apply(ScalarOp.LT, self.size(x), constant(tiny, dtype))
        factor = self.b.select(is_tiny, constant(grown, dtype), constant(1, dtype))
        larger, one = self.by(x, factor), constant(1, dtype)
        if len(x) == 1:
            inverse = self.b.apply(ScalarOp.DIV, one, larger[0])
            return lambda y: self.by(self.by(y, factor), inverse)
        pair = combine(self.b, ScalarOp.DIV, (one, constant(0, dtype)), larger)
        return lambda y: combine(self.b, ScalarOp.MUL, self.by(y, factor), pair)

    def choose(self, predicate: Operand, x: Element, y: Element) -> Element:
        return self.b.choose(predicate, x, y)


@dataclass(frozen=True, slots=True)
class Stack:
    """An array of the kernel, of `rows` by `columns` elements for each problem; where it comes from, and goes."""

    source: Memory | None
    target: Memory | None
    rows: int
    columns: int
    dtype: DType | None = None

    @property
    def scalars(self) -> tuple[DType, int]:
        """The scalar dtype of an element, and how many there are. `dtype`: of arrays that only the kernel sees."""
        memory = self.source or self.target
        if memory is None:
            assert self.dtype is not None
            return dtypes.real_dtype(self.dtype), 1 + dtypes.is_complex(self.dtype)
        return components(memory.type)


@dataclass(frozen=True, slots=True)
class Sweeps:
    """An algorithm that repeats a step until no lane of a block needs it, or `most` times.

    start, finish: run once, before and after. sweep: the step, which returns 1 where its lane needs another, else 0. It
    must leave a finished lane unchanged, so that results do not depend on the lanes beside it.
    """

    start: Callable[..., None]
    sweep: Callable[..., Operand]
    finish: Callable[..., None]
    most: int


def write_lanes(
    writer: BlockWriter, stacks: Sequence[Stack], count: int, largest: int, kernel: Callable[..., None] | Sweeps
) -> None:
    """Run kernel(lanes, *cells) for `count` problems, none of them with more than `largest` rows or columns."""
    f = FunctionWriter(writer)
    widest = max(dtype.itemsize for dtype, _ in (stack.scalars for stack in stacks))
    vector = writer.module.target.machine.vector_bytes
    width = vector // widest if count > 1 else 1
    lanes = Lanes(f.builder, width, written_out=largest <= (_SWEPT_OUT if isinstance(kernel, Sweeps) else _WRITTEN_OUT))
    sources = [None if s.source is None else f.memory(s.source) for s in stacks]
    targets = [None if s.target is None else f.memory(s.target, written=True) for s in stacks]
    with f.loops((-(-count // width),), LoopKind.PARALLEL) as (block,):
        buffers = [f.builder.alloc(_scratch(n, s, width, vector)) for n, s in enumerate(stacks)]
        first = scaled(block, width)
        live = _live(f.builder, first, width, count)
        for stack, source, buffer in zip(stacks, sources, buffers, strict=True):
            if source is not None:
                _turn_in(f.builder, buffer, source, stack, first, width, live)
        if isinstance(kernel, Sweeps):
            _repeat(lanes, stacks, buffers, kernel)
        else:
            _run(lanes, stacks, buffers, kernel)
        for stack, target, buffer in zip(stacks, targets, buffers, strict=True):
            if target is not None:
                _turn_out(f.builder, buffer, target, stack, first, width, live)
    f.invoke()


def _scratch(number: int, stack: Stack, width: int, alignment: int) -> Buffer:
    dtype, parts = stack.scalars
    size = stack.rows * stack.columns * parts * width
    return Buffer(f"lanes{number}", dtype, size, Space.LOCAL, alignment=alignment, written=True)


def _live(b: Builder, first: Affine, width: int, count: int) -> Operand:
    """Return the number of lanes of a block that hold a problem."""
    if count % width == 0:
        return index_constant(width)
    return b.compute(ScalarOp.MIN, b.compute(ScalarOp.SUB, count, operand_of(b, first)), width)


def _repeat(lanes: Lanes, stacks: Sequence[Stack], buffers: Sequence[Buffer], kernel: Sweeps) -> None:
    """Run the start of the kernel, its sweeps while any lane needs one, and its finish."""
    b = lanes.b
    _run(lanes, stacks, buffers, kernel.start)
    carries = (Carry(Register(dtypes.I64, "needs"), index_constant(1)), Carry(Register(dtypes.I64, "sweep"), _NONE))
    loop = b.while_(*carries)
    needs, sweep = loop.carries
    with loop.condition:
        first, second = b.apply(ScalarOp.GT, needs, _NONE), b.compute(ScalarOp.LT, sweep, kernel.most)
        loop.condition.yields(b.apply(ScalarOp.AND, first, second))
    with loop.body:
        needed = _run(lanes, stacks, buffers, kernel.sweep, counted=True)
        loop.body.yields(needed, b.compute(ScalarOp.ADD, sweep, 1))
    _run(lanes, stacks, buffers, kernel.finish)


def _run(
    lanes: Lanes, stacks: Sequence[Stack], buffers: Sequence[Buffer], kernel: Callable[..., Operand | None],
    *, counted: bool = False,
) -> Operand:  # fmt: skip
    """Run the kernel for the lanes of a block. If `counted`, return the largest integer that it returns."""
    if lanes.width == 1:
        return _in_lane(lanes, stacks, buffers, kernel)
    least = Constant(identity(ScalarOp.MAX, dtypes.I64), dtypes.I64)
    carries = [Carry(Register(dtypes.I64, "needed"), _NONE, ScalarOp.MAX, least)] if counted else []
    loop = lanes.b.for_("lane", 0, lanes.width, kind=LoopKind.VECTOR, lanes=lanes.width, carries=carries)
    with loop:
        lanes.lane = of_register(loop.index)
        mine = _in_lane(lanes, stacks, buffers, kernel)
        if counted:
            loop.yields(lanes.b.apply(ScalarOp.MAX, loop.carries[0], mine))
    return loop.results[0] if counted else _NONE


def _in_lane(
    lanes: Lanes, stacks: Sequence[Stack], buffers: Sequence[Buffer], kernel: Callable[..., Operand | None]
) -> Operand:
    cells = [lanes.cells(x, s.columns, s.scalars[1]) for s, x in zip(stacks, buffers, strict=True)]
    found = kernel(lanes, *cells)
    for array in cells:
        array.flush()
    return _NONE if found is None else found


def _turn_in(
    b: Builder, buffer: Buffer, source: Memory, stack: Stack, first: Affine, width: int, live: Operand
) -> None:
    size = stack.rows * stack.columns * stack.scalars[1]
    view = View(source.buffer, plus(source.start, scaled(first, size)))
    if width == 1:
        b.copy(buffer, view, size)
        return
    if not isinstance(live, Constant):
        zeros = b.for_("n", 0, size * width, kind=LoopKind.VECTOR, lanes=width)
        with b.if_(b.compute(ScalarOp.LT, live, width)), zeros:  # lanes without a problem work on zeros
            b.store(buffer, zeros.index, 0)
    b.add(Transpose(View(buffer), width, view, size, index_constant(size), live))


def _turn_out(
    b: Builder, buffer: Buffer, target: Memory, stack: Stack, first: Affine, width: int, live: Operand
) -> None:
    size = stack.rows * stack.columns * stack.scalars[1]
    view = View(target.buffer, plus(target.start, scaled(first, size)))
    if width == 1:
        b.copy(view, buffer, size)
    else:
        b.add(Transpose(view, size, View(buffer), width, live, index_constant(size)))
