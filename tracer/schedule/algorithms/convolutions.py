"""Convolutions in their own nests: lanes along the last axis, a tile of sums in registers, lhs padded in a buffer.

Where the positions are many, a tile is some output features by a vector or two of positions. Where the window is large
(the gradient by a window), a tile is some features by a few positions. Its sums run in lanes along the window. Every
sum adds its terms in an order that follows from the shapes alone. Threads share images, groups and bands of rows.

Narrow rows adjoin in the buffer, so that lanes run on from one into the next. The buffer then has a copy of lhs for
each element of the other last axis: shifted by it, and without the elements beyond the row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from tracer.errors import InternalError
from tracer.ir.loop import Buffer, Carry, LoopKind, Operand, Register, Space
from tracer.ir.loop.build import constant, reduction
from tracer.ir.primitive import Composite
from tracer.ir.program import Atom, Equation, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType
from tracer.primitives.linalg.convolution_strategy import (
    LOCAL_BYTES,
    VECTOR_BYTES,
    extents,
    joined_sizes,
    joins_rows,
    joins_window,
    padded_bytes,
    runs_along_window,
)
from tracer.schedule.elements.maps import permuted_array
from tracer.schedule.terms.affine import ZERO, Affine, flatten, of_register, operand_of, plus, scaled, shifted
from tracer.schedule.terms.cost import convolution_cost
from tracer.schedule.terms.schedules import CHEAP, Schedule, Values, always
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter

_SUMS: Final = {1: 16, 2: 8}  # most features of a tile, by its vectors of positions
_TAPS: Final = 3  # positions of a tile whose lanes run along the window, by eight features
_FEW: Final = 9  # positions that are one tile, by as many features as make 18 sums
_TILE_BYTES: Final = 1 << 15  # that such tiles reread; no machine's size, since sums are rounded tile by tile
_PARTS: Final = 8  # for threads to share, where there are so many

Body = Callable[[list[Affine], Sequence[Operand]], Sequence[Operand]]


def write_convolution(writer: BlockWriter, equation: Equation) -> None:
    """Write one nest for a convolution that `has_nest`."""
    nest = _Nest(writer, equation)
    if nest.is_along_window:
        nest.along_window()
    else:
        nest.along_positions()


def _divisor(n: int, most: int) -> int:
    """Return the largest divisor that is at most `most`, at least 1."""
    return next(d for d in range(max(1, min(n, most)), 0, -1) if n % d == 0)


def _blocks(n: int, most: int) -> list[tuple[int, int, int]]:
    """Return blocks of n as (first, size, count): of equal size where that wastes little, else with a remainder."""
    size = _divisor(n, most)
    if 2 * size <= min(n, most):
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
        self.unit = VECTOR_BYTES // type.dtype.itemsize
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
        self.is_along_window = runs_along_window(self.outs, self.window)
        lanes, others = (self.outs, self.strides), (self.window, self.dilations)
        (self.along, steps), (other, spaces) = (others, lanes) if self.is_along_window else (lanes, others)
        self.step = steps[-1]  # of lanes along padded lhs; elements so far apart lie beside each other in the buffer
        self.copies, self.space = other[-1], spaces[-1]  # of padded lhs where rows adjoin, and from one to the next
        joins = joins_window(self.dtype, self.outs, self.window, self.strides, self.dilations)
        self.joined = joins if self.is_along_window else joins_rows(self.dtype, self.outs, self.strides)
        self.reach: tuple[int, ...] = ()

    # -- padded lhs ----------------------------------------------------------------------------------------------

    def _plane(self, reach: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a plane in the buffer: [copy, *leading axes, lane] or [*leading axes, phase, column]."""
        if self.joined:
            return joined_sizes(reach, self.along, self.copies)
        return *reach[:-1], self.step, -(-reach[-1] // self.step)

    def _local(self, planes: int, reach: tuple[int, ...]) -> Buffer:
        """Allocate a buffer of planes."""
        self.reach, self.shape = reach, (planes, *self._plane(reach))
        return self.b.alloc(Buffer("padded", self.dtype, prod(self.shape), Space.LOCAL, written=True))

    def _place(self, plane: Affine, leading: Sequence[Affine], other: int, lane: Affine) -> Affine:
        """Return the index of padded lhs in its buffer, from a lane and an element of the other last axis."""
        if self.joined:
            return flatten((plane, Affine(other), *leading, lane), self.shape)
        column, phase = divmod(other * self.space, self.step)
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
        low, size, step = self.low[-1], self.sizes[-1], self.step
        if self.joined:
            rows = [((c, Affine(t), *to), t * self.space) for t in range(self.copies)]
        else:
            rows = [((c, *to, Affine(phase)), phase) for phase in range(step)]
        within = range(max(0, low), min(self.reach[-1], low + size))
        for place, begin in rows:
            inside = [j for j in range(self.shape[-1]) if begin + j * step in within]
            if not inside:
                continue
            first = inside[0]
            with self.b.for_("w", 0, len(inside), kind=LoopKind.VECTOR, lanes=self.unit) as lane:
                self.f.extents[lane.index] = len(inside)
                j = of_register(lane.index)
                source = shifted(scaled(j, step), begin + first * step - low)
                (value,) = self.f.element(self.lhs, (*outer, *of, source))
                self.b.store(buffer, flatten((*place, shifted(j, first)), self.shape), value)

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
            buffer = self._local(self.into, reach)
            start = scaled(band, rows * self.strides[0])
            self._fill(buffer, self.into, ZERO, n, g, start)
            leading, span = self._lane_axes((rows, *self.outs[1:]))
            for first, size, count in _blocks(self.group, _SUMS[self._lanes(span) // self.unit]):
                with self.f.loops((count,), LoopKind.SERIAL) as (block,):
                    o = plus(scaled(g, self.group), shifted(scaled(block, size), first))
                    with self.f.loops(leading, LoopKind.SERIAL) as at:
                        self._positions(buffer, n, o, size, self._row_start(at), scaled(band, rows), span)
        self.f.invoke()

    def _band(self) -> int:
        """Return how many rows of the result one part computes. Rows do not adjoin where no such band has room."""
        if len(self.outs) == 1:
            return self.outs[0]
        most = max(1, min(self.outs[0], -(-self.outs[0] * self.batch * self.groups // _PARTS)))
        fitting = [rows for rows in range(1, self.outs[0] + 1) if self.outs[0] % rows == 0 and self._fits(rows)]
        if not fitting and self.joined:
            self.joined = False
            return self._band()
        return max((rows for rows in fitting if rows <= most), default=min(fitting, default=1))

    def _fits(self, rows: int) -> bool:
        """Return whether padded lhs for a band has room, and whether adjoining rows of the band save vectors."""
        if self.joined and len(self.outs) == 2 and not joins_rows(self.dtype, (rows, self.outs[1]), self.strides):
            return False
        return padded_bytes(self.dtype, self._plane(self._reach(rows)), self.into) <= LOCAL_BYTES

    def _reach(self, rows: int) -> tuple[int, ...]:
        """Return the extent of padded lhs along each axis that a band of rows needs."""
        return extents((rows, *self.outs[1:]), self.window, self.strides, self.dilations)

    def _lane_axes(self, sizes: Sequence[int]) -> tuple[Sequence[int], int]:
        """Return the leading ones of some axes, and the number of positions along the last ones, which lanes follow."""
        axes = 2 if self.joined else 1
        return sizes[:-axes], prod(sizes[-axes:])

    def _row_start(self, leading: Sequence[Affine]) -> list[Affine]:
        """Return the index of the leading axes where lanes begin."""
        return [*leading, ZERO] if self.joined else [*leading]

    def _lanes(self, span: int) -> int:
        """Return the lanes of one vector of positions or of two, whichever wastes fewer."""
        one, two = (-(-span // (self.unit * v)) * v for v in (1, 2))
        return self.unit * (2 if two <= one else 1)

    def _positions(
        self, buffer: Buffer, n: Affine, o: Affine, rows: int, at: Sequence[Affine], begin: Affine, span: int
    ) -> None:
        """Compute some features at one row of positions."""
        b, zero = self.b, constant(0, self.dtype)
        with b.for_("x", 0, span, kind=LoopKind.VECTOR, lanes=self._lanes(span)) as lane:
            x = of_register(lane.index)

            def terms(index: list[Affine], sums: Sequence[Operand]) -> Sequence[Operand]:
                i, *taps = index
                axes = zip(at, taps, self.strides, self.dilations, strict=False)
                leading = [plus(scaled(p, s), scaled(t, d)) for p, t, s, d in axes]
                pull = self.f.puller()
                for last in range(self.window[-1]):
                    value = b.load(buffer, self._place(i, leading, last, x))
                    weights = [pull.element(self.rhs, (shifted(o, r), i, *taps, Affine(last)))[0] for r in range(rows)]
                    sums = [b.compute(ScalarOp.FMA, w, value, s) for w, s in zip(weights, sums, strict=True)]
                return sums

            sums = self._sums((self.into, *self.window[:-1]), [zero] * rows, terms)
            index = [plus(begin, at[0]), *at[1:]] if at else []
            for r, value in enumerate(sums):
                b.store(self.target.buffer, self._store_place((n, shifted(o, r), *index, x)), value)

    # -- lanes are elements of the window ------------------------------------------------------------------------

    def along_window(self) -> None:
        """Write tiles of features by positions, each sum in lanes along the last axis of the window.

        Consecutive images of lhs use one part of rhs, which stays in a core's second cache.
        """
        reach = extents(self.outs, self.window, self.strides, self.dilations)
        planes = self._planes(reach)
        bands = self._bands(planes, reach)
        share = _divisor(self.group, max(8, self.part_bytes // (planes * padded_bytes(self.dtype, self.window, 1))))
        parts = self.group // share
        chunk = self.batch // _divisor(self.batch, max(1, _PARTS // (parts * self.groups)))
        with self.f.loops((self.groups, parts, self.batch // chunk), LoopKind.PARALLEL) as (g, part, images):
            buffer = self._local(planes, reach)
            o, start = plus(scaled(g, self.group), scaled(part, share)), scaled(images, chunk)
            with self.f.loops((chunk,), LoopKind.SERIAL) as (image,):
                self._clear(plus(start, image), o, share)
            with self.f.loops((self.into // planes, chunk), LoopKind.SERIAL) as (block, image):
                n, first = plus(start, image), scaled(block, planes)
                self._fill(buffer, planes, first, n, g, ZERO)
                for begin, size, count in _blocks(share, self._tile_features()):
                    with self.f.loops((count, bands), LoopKind.SERIAL) as (tile, band):
                        row = plus(o, shifted(scaled(tile, size), begin))
                        leading = () if self._is_one_tile() else self.outs[:-1]
                        with self.f.loops(leading, LoopKind.SERIAL) as at:
                            for places in self._places(at):
                                self._taps(buffer, n, row, size, places, planes, first, band, bands)
        self.f.invoke()

    def _places(self, leading: Sequence[Affine]) -> list[list[tuple[Affine, ...]]]:
        """Return the positions of each tile of a row, or of the one tile."""
        if self._is_one_tile():
            return [[tuple(map(Affine, place)) for place in np.ndindex(self.outs)]]
        row = [(*leading, Affine(last)) for last in range(self.outs[-1])]
        return [row[first : first + _TAPS] for first in range(0, len(row), _TAPS)]

    def _is_one_tile(self) -> bool:
        """Return whether a tile has all positions, so that rhs is read once and padded lhs again and again."""
        return _TAPS < prod(self.outs) <= _FEW

    def _tile_features(self) -> int:
        return 18 // prod(self.outs) if self._is_one_tile() else 8

    def _reread_bytes(self, reach: tuple[int, ...]) -> int:
        """Return the bytes that tiles reread of a plane: of padded lhs, or of rhs."""
        if self._is_one_tile():
            return padded_bytes(self.dtype, self._plane(reach), 1)
        return 8 * padded_bytes(self.dtype, self.window, 1)

    def _planes(self, reach: tuple[int, ...]) -> int:
        """Return how many input features are padded at once."""
        most = max(1, LOCAL_BYTES // padded_bytes(self.dtype, self._plane(reach), 1))
        return _divisor(self.into, min(most, _TILE_BYTES // self._reread_bytes(reach)))

    def _bands(self, planes: int, reach: tuple[int, ...]) -> int:
        """Return the number of bands of rows in which the window is read.

        A tile's part of a band stays in a first cache.
        """
        if len(self.window) == 1:
            return 1
        row = planes * self._reread_bytes(reach) // self.window[0]
        return self.window[0] // _divisor(self.window[0], max(1, _TILE_BYTES // row))

    def _clear(self, n: Affine, o: Affine, share: int) -> None:
        """Store zeros in this part's results."""
        start = self._store_place((n, o, *[ZERO] * len(self.outs)))
        with self.b.for_("z", 0, share * prod(self.outs), kind=LoopKind.VECTOR, lanes=self.unit) as zeros:
            self.b.store(self.target.buffer, plus(start, of_register(zeros.index)), 0)

    def _taps(
        self, buffer: Buffer, n: Affine, o: Affine, rows: int, places: Sequence[tuple[Affine, ...]],
        planes: int, first: Affine, band: Affine, bands: int,
    ) -> None:  # fmt: skip
        """Add to some features at a few positions the products of some input features with a band of the window."""
        b = self.b
        height = self.window[0] // bands
        leading, span = self._lane_axes((height, *self.window[1:]) if len(self.window) > 1 else self.window)
        carries = [reduction(ScalarOp.ADD, constant(0, self.dtype)) for _ in range(rows * len(places))]
        lanes = b.for_("x", 0, span, kind=LoopKind.VECTOR, lanes=self.unit, carries=carries)
        with lanes:
            x = of_register(lanes.index)
            self.f.extents[lanes.index] = span

            def terms(index: list[Affine], sums: Sequence[Operand]) -> Sequence[Operand]:
                i, *inner = index
                within = self._row_start(inner)
                if within:
                    within[0] = plus(within[0], scaled(band, height))
                pull = self.f.puller()
                weights = [pull.element(self.rhs, (shifted(o, r), plus(first, i), *within, x))[0] for r in range(rows)]
                values = [self._beside(buffer, i, place, within, x) for place in places]
                pairs = itertools.product(weights, values)
                return [b.compute(ScalarOp.FMA, w, v, s) for (w, v), s in zip(pairs, sums, strict=True)]

            lanes.yields(*self._sums((planes, *leading), lanes.carries, terms))
        results = iter(lanes.results)
        for r, at in itertools.product(range(rows), places):
            b.update(self.target.buffer, self._store_place((n, shifted(o, r), *at)), ScalarOp.ADD, next(results))

    def _beside(self, buffer: Buffer, plane: Affine, at: Sequence[Affine], within: Sequence[Affine], x: Affine) -> Any:
        """Load padded lhs at a position of the result, at an element of the window."""
        axes = zip(at, within, self.strides, self.dilations, strict=False)
        leading = [plus(scaled(p, s), scaled(w, d)) for p, w, s, d in axes]
        return self.b.load(buffer, self._place(plane, leading[: len(at) - 1], at[-1].constant, x))


# -- record ------------------------------------------------------------------------------------------------------


def _operands_in_memory(equation: Equation, values: Values) -> list[Atom]:
    """Return rhs, which the nest reads again and again, and lhs where its elements are expensive.

    Where lanes run on over rows of the window, the rows of rhs adjoin in memory.
    """
    lhs, rhs = equation.inputs
    is_expensive = isinstance(lhs, Var) and values.costs.get(lhs, 0) > CHEAP
    window = rhs.type.shape[2:]
    outs = equation.outputs[0].type.shape[2:]
    along_window = runs_along_window(outs, window)
    steps = equation.params["strides"], equation.params["rhs_dilation"]
    joined = along_window and joins_window(equation.params["preferred_element_type"], outs, window, *steps)
    stored = permuted_array(rhs, values, keeps_rows=joined)
    return [lhs, stored] if is_expensive else [stored]


CONVOLUTION: Final = Schedule(Composite, "conv", convolution_cost, write_convolution, _operands_in_memory, always)
