"""Convolutions in their own nests: lanes along the last axis, a tile of sums in registers, lhs padded in a buffer.

Where the positions are many, a tile is some output features by a vector or two of positions. Where the window is large
(the gradient by a window), a tile is some features by a few positions. Its sums run in lanes along the window. Every
sum adds its terms in an order that follows from the shapes alone. Threads share images, groups and bands of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from tracer.errors import InternalError
from tracer.ir.loop import Buffer, Carry, LoopKind, Operand, Register, Space
from tracer.ir.loop.build import constant, reduction
from tracer.ir.primitive import Composite
from tracer.ir.program import Atom, Equation, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType
from tracer.primitives.linalg.convolution_strategy import LOCAL_BYTES, extents, padded_bytes, runs_along_window
from tracer.schedule.elements.maps import permuted_array
from tracer.schedule.terms.affine import ZERO, Affine, flatten, of_register, operand_of, plus, scaled, shifted
from tracer.schedule.terms.cost import convolution_cost
from tracer.schedule.terms.schedules import CHEAP, Schedule, Values, always
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter

_VECTOR_BYTES: Final = 64  # of sums' lanes, on every machine
_SUMS: Final = {1: 16, 2: 8}  # most features of a tile, by its vectors of positions
_TAPS: Final = 3  # positions of a tile whose lanes run along the window
_TILE_BYTES: Final = 1 << 15  # of rhs that such tiles reread; no machine's size, since sums are rounded tile by tile
_PARTS: Final = 8  # for threads to share, where there are so many

Body = Callable[[list[Affine], Sequence[Operand]], Sequence[Operand]]


def write_convolution(writer: BlockWriter, equation: Equation) -> None:
    """Write one nest for a convolution that `has_nest`."""
    nest = _Nest(writer, equation)
    if runs_along_window(nest.outs, nest.window):
        nest.along_window()
    else:
        nest.along_positions()


def _divisor(n: int, most: int) -> int:
    """Return the largest divisor that is at most `most`, at least 1."""
    return next(d for d in range(max(1, min(n, most)), 0, -1) if n % d == 0)


def _blocks(n: int, most: int) -> list[tuple[int, int, int]]:
    """Return blocks of n as (first, size, count): of equal size where that wastes little, else with a remainder."""
    size = _divisor(n, most)
    if 2 * size < min(n, most):
        size = -(-n // -(-n // most))
    full, rest = divmod(n, size)
    return [(0, size, full), *([(full * size, rest, 1)] if rest else [])]


class _Nest:
    """One convolution being written."""

    def __init__(self, writer: BlockWriter, equation: Equation) -> None:
        params = equation.params
        self.lhs, self.rhs = equation.inputs
        self.out = writer.target_of(equation.outputs[0])
        self.f = FunctionWriter(writer)
        self.b = self.f.builder
        self.target = self.f.memory(self.out, written=True)
        type = equation.outputs[0].type
        if not isinstance(type, ArrayType):
            raise InternalError(f"conv gives {type}")
        self.dtype = type.dtype
        self.unit = _VECTOR_BYTES // type.dtype.itemsize
        self.part_bytes = writer.module.target.machine.second_cache // 4
        self.batch, self.features, *outs = type.shape
        self.outs, self.window = tuple(outs), self.rhs.type.shape[2:]
        self.into = self.rhs.type.shape[1]
        self.strides, self.dilations = params["strides"], params["rhs_dilation"]
        self.low = [low for low, _ in params["padding"]]
        self.sizes = self.lhs.type.shape[2:]
        self.of_batch = params["batch_groups"] > 1
        self.groups = params["feature_groups"] * params["batch_groups"]
        self.group = self.features // self.groups  # output features of one
        self.step = 1  # of lanes along padded lhs; elements so far apart lie beside each other in the buffer
        self.reach: tuple[int, ...] = ()

    # -- padded lhs ----------------------------------------------------------------------------------------------

    def _local(self, planes: int, reach: tuple[int, ...], step: int) -> Buffer:
        """Allocate a buffer of planes, each [*leading axes, phase, column]."""
        self.step, self.reach = step, reach
        columns = -(-reach[-1] // step)
        self.shape = (planes, *reach[:-1], step, columns)
        return self.b.alloc(Buffer("padded", self.dtype, prod(self.shape), Space.LOCAL, written=True))

    def _place(self, plane: Affine, leading: Sequence[Affine], last: int, lane: Affine = ZERO) -> Affine:
        """Return the index of element `last` of padded lhs in its buffer, from the start of a lane along an axis."""
        column, phase = divmod(last, self.step)
        return flatten((plane, *leading, Affine(phase), shifted(lane, column)), self.shape)

    def _fill(self, buffer: Buffer, planes: int, first: Affine, n: Affine, g: Affine, start: Affine) -> None:
        """Fill planes with lhs from feature `first` of group g on, the leading axis from padded row `start` on."""
        b = self.b
        with b.for_("z", 0, buffer.size, kind=LoopKind.VECTOR, lanes=self.unit) as zeros:
            b.store(buffer, zeros.index, 0)
        with b.for_("c", 0, planes) as plane:
            self.f.extents[plane.index] = planes
            c = of_register(plane.index)
            feature = plus(first, c)
            if self.of_batch:
                outer = (plus(scaled(g, self.batch), n), feature)
            else:
                outer = (n, plus(scaled(g, self.into), feature))
            self._rows(buffer, c, outer, [], [], start)

    def _rows(
        self, buffer: Buffer, c: Affine, outer: tuple[Affine, Affine], to: list[Affine], of: list[Affine], start: Affine
    ) -> None:
        """Copy the elements within bounds along the axes from len(to) on."""
        b, axis = self.b, len(to)
        if axis + 1 == len(self.sizes):
            self._row(buffer, c, outer, to, of)
            return
        low, size, reach = self.low[axis], self.sizes[axis], self.reach[axis]
        if axis == 0 and start.terms:
            with b.for_("r", 0, reach) as row:
                self.f.extents[row.index] = reach
                source = shifted(plus(start, of_register(row.index)), -low)
                at = operand_of(b, source)
                within = b.compute(ScalarOp.AND, b.compute(ScalarOp.GE, at, 0), b.compute(ScalarOp.LT, at, size))
                with b.if_(within):
                    self._rows(buffer, c, outer, [of_register(row.index)], [source], start)
            return
        begin, end = max(0, low), min(reach, low + size)
        if begin < end:
            with b.for_("r", 0, end - begin) as row:
                self.f.extents[row.index] = end - begin
                at_row = of_register(row.index)
                place, source = shifted(at_row, begin), shifted(at_row, begin - low)
                self._rows(buffer, c, outer, [*to, place], [*of, source], start)

    def _row(self, buffer: Buffer, c: Affine, outer: tuple[Affine, Affine], to: list[Affine], of: list[Affine]) -> None:
        """Copy one row; elements that are `step` apart become neighbours."""
        low, size, reach, step = self.low[-1], self.sizes[-1], self.reach[-1], self.step
        for residue in range(step):
            first = residue
            while first + low < 0:
                first += step
            count = len(range(first, min(size, reach - low), step))
            if not count:
                continue
            with self.b.for_("w", 0, count, kind=LoopKind.VECTOR, lanes=self.unit) as lane:
                self.f.extents[lane.index] = count
                j = of_register(lane.index)
                (value,) = self.f.element(self.lhs, (*outer, *of, shifted(scaled(j, step), first)))
                self.b.store(buffer, self._place(c, to, first + low, j), value)

    # -- loops ---------------------------------------------------------------------------------------------------

    def _sums(self, counts: Sequence[int], values: Sequence[Operand], body: Body) -> Sequence[Operand]:
        """Write nested serial loops that carry the sums."""
        if not counts:
            return body([], values)
        if counts[0] == 1:
            return self._sums(counts[1:], values, lambda index, held: body([ZERO, *index], held))
        loop = self.b.for_("k", 0, counts[0], carries=[Carry(Register(self.dtype, "sum"), v) for v in values])
        with loop:
            self.f.extents[loop.index] = counts[0]
            at = of_register(loop.index)
            loop.yields(*self._sums(counts[1:], loop.carries, lambda index, inner: body([at, *index], inner)))
        return loop.results

    def _store_place(self, index: Sequence[Affine]) -> Affine:
        return plus(self.target.start, flatten(index, self.target.type.shape))

    # -- lanes are positions -------------------------------------------------------------------------------------

    def along_positions(self) -> None:
        """Write tiles of features by positions along the last axis."""
        rows = self._band()
        bands = self.outs[0] // rows
        counts = (self.batch, self.groups, bands)
        reach = self._reach(rows)
        with self.f.loops(counts, LoopKind.PARALLEL) as (n, g, band):
            buffer = self._local(self.into, reach, self.strides[-1])
            start = scaled(band, rows * self.strides[0])
            self._fill(buffer, self.into, ZERO, n, g, start)
            lanes = self._lanes()
            for first, size, count in _blocks(self.group, _SUMS[lanes // self.unit]):
                with self.f.loops((count,), LoopKind.SERIAL) as (block,):
                    o = plus(scaled(g, self.group), shifted(scaled(block, size), first))
                    leading = (rows, *self.outs[1:])[:-1]
                    with self.f.loops(leading, LoopKind.SERIAL) as at:
                        self._positions(buffer, n, o, size, at, scaled(band, rows), lanes)
        self.f.invoke()

    def _band(self) -> int:
        """Return how many rows of the result one part computes."""
        if len(self.outs) == 1:
            return self.outs[0]
        least = max(1, -(-self.outs[0] * self.batch * self.groups // _PARTS))
        for rows in range(min(least, self.outs[0]), 1, -1):
            if self.outs[0] % rows == 0 and padded_bytes(self.dtype, self._reach(rows), self.into) <= LOCAL_BYTES:
                return rows
        return 1

    def _reach(self, rows: int) -> tuple[int, ...]:
        """Return the extent of padded lhs along each axis that a band of rows needs."""
        return extents((rows, *self.outs[1:]), self.window, self.strides, self.dilations)

    def _lanes(self) -> int:
        """Return the lanes of one vector of positions or of two, whichever wastes fewer."""
        one, two = (-(-self.outs[-1] // (self.unit * v)) * v for v in (1, 2))
        return self.unit * (2 if two <= one else 1)

    def _positions(
        self, buffer: Buffer, n: Affine, o: Affine, rows: int, at: Sequence[Affine], begin: Affine, lanes: int
    ) -> None:
        """Compute some features at one row of positions."""
        b, zero = self.b, constant(0, self.dtype)
        with b.for_("x", 0, self.outs[-1], kind=LoopKind.VECTOR, lanes=lanes) as lane:
            x = of_register(lane.index)

            def terms(index: list[Affine], sums: Sequence[Operand]) -> Sequence[Operand]:
                i, *taps = index
                axes = zip(at, taps, self.strides, self.dilations, strict=False)
                leading = [plus(scaled(p, s), scaled(t, d)) for p, t, s, d in axes]
                pull = self.f.puller()
                for last in range(self.window[-1]):
                    place = self._place(i, leading, last * self.dilations[-1], x)
                    value = b.load(buffer, place)
                    weights = [pull.element(self.rhs, (shifted(o, r), i, *taps, Affine(last)))[0] for r in range(rows)]
                    sums = [b.compute(ScalarOp.FMA, w, value, s) for w, s in zip(weights, sums, strict=True)]
                return sums

            sums = self._sums((self.into, *self.window[:-1]), [zero] * rows, terms)
            first, *others = at if at else (None,)
            index = [plus(begin, first), *others] if first is not None else []
            for r, value in enumerate(sums):
                b.store(self.target.buffer, self._store_place((n, shifted(o, r), *index, x)), value)

    # -- lanes are elements of the window ------------------------------------------------------------------------

    def along_window(self) -> None:
        """Write tiles of features by positions, each sum in lanes along the last axis of the window.

        Consecutive images of lhs use one part of rhs, which stays in a core's second cache.
        """
        reach = extents(self.outs, self.window, self.strides, self.dilations)
        planes = self._planes(reach)
        bands = self._bands(planes)
        share = _divisor(self.group, max(8, self.part_bytes // (planes * padded_bytes(self.dtype, self.window, 1))))
        parts = self.group // share
        chunk = self.batch // _divisor(self.batch, max(1, _PARTS // (parts * self.groups)))
        with self.f.loops((self.groups, parts, self.batch // chunk), LoopKind.PARALLEL) as (g, part, images):
            buffer = self._local(planes, reach, self.dilations[-1])
            o, start = plus(scaled(g, self.group), scaled(part, share)), scaled(images, chunk)
            with self.f.loops((chunk,), LoopKind.SERIAL) as (image,):
                self._clear(plus(start, image), o, share)
            with self.f.loops((self.into // planes, chunk), LoopKind.SERIAL) as (block, image):
                n, first = plus(start, image), scaled(block, planes)
                self._fill(buffer, planes, first, n, g, ZERO)
                for begin, size, count in _blocks(share, 8):
                    with self.f.loops((count,), LoopKind.SERIAL) as (tile,):
                        row = plus(o, shifted(scaled(tile, size), begin))
                        with self.f.loops((bands, *self.outs[:-1]), LoopKind.SERIAL) as (band, *at):
                            for tap in range(0, self.outs[-1], _TAPS):
                                taps = range(tap, min(tap + _TAPS, self.outs[-1]))
                                self._taps(buffer, n, row, size, at, taps, planes, first, band, bands)
        self.f.invoke()

    def _planes(self, reach: tuple[int, ...]) -> int:
        """Return how many input features are padded at once."""
        most = LOCAL_BYTES // padded_bytes(self.dtype, reach, 1)
        return _divisor(self.into, min(most, _TILE_BYTES // (8 * padded_bytes(self.dtype, self.window, 1))))

    def _bands(self, planes: int) -> int:
        """Return the number of bands of rows in which the window is read.

        A tile's part of a band stays in a first cache.
        """
        if len(self.window) == 1:
            return 1
        row = 8 * planes * padded_bytes(self.dtype, self.window[1:], 1)
        return self.window[0] // _divisor(self.window[0], max(1, _TILE_BYTES // row))

    def _clear(self, n: Affine, o: Affine, share: int) -> None:
        """Store zeros in this part's results."""
        start = self._store_place((n, o, *[ZERO] * len(self.outs)))
        with self.b.for_("z", 0, share * prod(self.outs), kind=LoopKind.VECTOR, lanes=self.unit) as zeros:
            self.b.store(self.target.buffer, plus(start, of_register(zeros.index)), 0)

    def _taps(
        self, buffer: Buffer, n: Affine, o: Affine, rows: int, at: Sequence[Affine], taps: range, planes: int,
        first: Affine, band: Affine, bands: int,
    ) -> None:  # fmt: skip
        """Add to some features at a few positions the products of some input features with a band of the window."""
        b = self.b
        counts = (self.window[0] // bands, *self.window[1:-1]) if len(self.window) > 1 else ()
        carries = [reduction(ScalarOp.ADD, constant(0, self.dtype)) for _ in range(rows * len(taps))]
        lanes = b.for_("x", 0, self.window[-1], kind=LoopKind.VECTOR, lanes=self.unit, carries=carries)
        with lanes:
            x = of_register(lanes.index)
            self.f.extents[lanes.index] = self.window[-1]

            def terms(index: list[Affine], sums: Sequence[Operand]) -> Sequence[Operand]:
                i, *within = index
                if within:
                    within[0] = plus(within[0], scaled(band, counts[0]))
                axes = zip(at, within, self.strides, self.dilations, strict=False)
                leading = [plus(scaled(p, s), scaled(w, d)) for p, w, s, d in axes]
                pull = self.f.puller()
                values = [b.load(buffer, self._place(i, leading, t * self.strides[-1], x)) for t in taps]
                weights = [pull.element(self.rhs, (shifted(o, r), plus(first, i), *within, x))[0] for r in range(rows)]
                pairs = [(w, v) for w in weights for v in values]
                return [b.compute(ScalarOp.FMA, w, v, s) for (w, v), s in zip(pairs, sums, strict=True)]

            lanes.yields(*self._sums((planes, *counts), lanes.carries, terms))
        results = iter(lanes.results)
        for r in range(rows):
            for t in taps:
                place = self._store_place((n, shifted(o, r), *at, Affine(t)))
                b.update(self.target.buffer, place, ScalarOp.ADD, next(results))


# -- record ------------------------------------------------------------------------------------------------------


def _operands_in_memory(equation: Equation, values: Values) -> list[Atom]:
    """Return rhs, which the nest reads again and again, and lhs where its elements are expensive."""
    lhs, rhs = equation.inputs
    is_expensive = isinstance(lhs, Var) and values.costs.get(lhs, 0) > CHEAP
    stored = permuted_array(rhs, values)
    return [lhs, stored] if is_expensive else [stored]


CONVOLUTION: Final = Schedule(Composite, "conv", convolution_cost, write_convolution, _operands_in_memory, always)
