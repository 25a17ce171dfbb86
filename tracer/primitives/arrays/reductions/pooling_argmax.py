"""Argmax of sliding windows, and the gather of tangents from it.

The lattice is the padded operand that windows slide over. Its elements are numbered in row-major order along the axes
of windows. Indices are found beside the extremes, in one pass. Pairs of an extreme and its index are combined axis by
axis, the last first. So of equal elements the first one of the window stays. In a window with NaN it is the first NaN.
In long windows that do not overlap it is the first element.

Tangents are gathered at these indices and, transposed, scattered to them. This runs in parallel along axes without
windows, and along all axes if no two windows overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import Shape
from tracer.primitives.arrays.indexing.dimension_numbers import GatherDimensionNumbers
from tracer.primitives.arrays.indexing.gather import gather
from tracer.primitives.arrays.reductions.reductions import argmax, argmin, reduce_min
from tracer.primitives.arrays.slice_pad_concatenate import pad, slice_in_dim
from tracer.primitives.arrays.sliding_windows import Padding, dilated, padding_config, positions, sliding_windows
from tracer.primitives.base.broadcasting import broadcast_in_dim, full_like
from tracer.primitives.base.shapes import expand_dims, iota, reshape
from tracer.primitives.elementwise.arithmetic import add, div, max, min, mul
from tracer.primitives.elementwise.bits import and_, or_
from tracer.primitives.elementwise.comparison import eq, gt, lt, ne, select
from tracer.primitives.elementwise.rounding import rem
from tracer.trace.trace import as_literal

_MAX_PAIRS: Final = 64  # combined in unrolled code
_MAX_I32: Final = 2**31 - 1


@dataclass(frozen=True)
class Lattice:
    """Padded operand that windows slide over.

    config: its padding. counts: the number of windows along each axis. apart: the distance of windows, if no two of
    them overlap; else None.
    """

    config: tuple[tuple[int, int, int], ...]
    shape: Shape
    counts: Shape
    window: Shape
    strides: Shape
    dilations: Shape
    apart: Shape | None

    @classmethod
    def of(
        cls, sizes: Shape, window: Shape, strides: Shape, padding: Padding, base_dilation: Shape,
        window_dilation: Shape,
    ) -> Lattice:  # fmt: skip
        """Return the lattice of a window reduction that has at least one window."""
        config = padding_config(sizes, padding, base_dilation)
        spread = [dilated(n, d) for n, d in zip(sizes, base_dilation, strict=True)]
        shape = tuple(n + low + high for n, (low, high, _) in zip(spread, config, strict=True))
        counts = positions(shape, window, strides, window_dilation)
        extents = [dilated(w, d) for w, d in zip(window, window_dilation, strict=True)]
        apart = tuple(e if n == 1 else s for e, n, s in zip(extents, counts, strides, strict=True))
        if any(e > step for e, step in zip(extents, apart, strict=True)):
            return cls(config, shape, counts, window, strides, window_dilation, None)
        shape = tuple(n * step for n, step in zip(counts, apart, strict=True))
        rows = zip(spread, shape, config, strict=True)
        config = tuple((low, m - n - low, inner) for n, m, (low, _, inner) in rows)
        return cls(config, shape, counts, window, strides, window_dilation, apart)

    def padded(self, x: Any, value: Any) -> Any:
        """Pad an operand to the lattice."""
        return pad(x, as_literal(x.type.dtype.type(value), x.type.dtype), self.config) if self._pads else x

    @property
    def _pads(self) -> bool:
        return any(map(any, self.config))

    def extremes(self, x: Any, op: ScalarOp, reduce: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Return the max or min of every window, and its index on the lattice.

        reduce: finds values alone, for long windows and for complex elements.
        """
        numbers = self._numbering()
        if dtypes.is_complex(x.type.dtype) or sum(self.window) > len(self.window) + _MAX_PAIRS:
            values = reduce(x)
            return values, self._numbers(x, values, op, numbers)
        combine = max if op is ScalarOp.MAX else min
        for axis in reversed(range(len(self.shape))):
            (value, number), *others = zip(self._shifts(x, axis), self._shifts(numbers, axis), strict=True)
            for other, place in others:
                number = select(_is_behind(value, other, op), place, number)
                value = combine(value, other)
            x, numbers = value, number
        return x, numbers

    @property
    def _numbered(self) -> range:
        """Axes along which elements are numbered: the axes with windows if they are adjacent, else all."""
        axes = [a for a, (w, s) in enumerate(zip(self.window, self.strides, strict=True)) if (w, s) != (1, 1)]
        together = axes and axes[-1] - axes[0] + 1 == len(axes)
        return range(axes[0], axes[-1] + 1) if together else range(len(self.shape))

    def _numbering(self) -> Any:
        """Return the index of every element of the lattice."""
        axes = self._numbered
        sizes = self.shape[axes.start : axes.stop]
        count = shapes.size(sizes)
        numbers = reshape(iota(dtypes.I32 if count <= _MAX_I32 else dtypes.I64, count), sizes)
        return broadcast_in_dim(numbers, self.shape, tuple(axes))

    def _shifts(self, x: Any, axis: int) -> list[Any]:
        """Return, for each element of the window, the slice that all windows read along an axis."""
        step, extent = self.strides[axis], dilated(self.counts[axis], self.strides[axis])
        starts = [w * self.dilations[axis] for w in range(self.window[axis])]
        return [slice_in_dim(x, start, start + extent, step, axis) for start in starts]

    def _numbers(self, x: Any, values: Any, op: ScalarOp, numbers: Any) -> Any:
        """Return the indices of known extremes: the first elements not behind them, or argmax."""
        if self.apart is not None and not dtypes.is_complex(x.type.dtype):
            behind = (lt if op is ScalarOp.MAX else gt)(x, self._spread(values))
            rest = full_like(numbers, np.iinfo(numbers.dtype).max)
            return reduce_min(reshape(select(behind, rest, numbers), self._split), self._within)
        rank, count = len(self.shape), shapes.size(self.window)
        windows = sliding_windows(x, tuple(range(rank)), self.window, self.strides, self.dilations)
        locate = argmax if op is ScalarOp.MAX else argmin
        place = locate(reshape(windows, (*self.counts, count)), rank, numbers.dtype)
        for axis, (n, step) in enumerate(zip(self.counts, self.strides, strict=True)):
            numbers = slice_in_dim(numbers, 0, dilated(n, step), step, axis)
        axes = self._numbered
        strides = shapes.strides(self.shape[axes.start : axes.stop])
        for axis, stride in reversed(list(zip(axes, strides, strict=True))):
            w = self.window[axis]
            if w > 1:
                numbers = add(numbers, mul(rem(place, w), stride * self.dilations[axis]))
                place = div(place, w)
        return numbers

    def at_places(self, x: Any, numbers: Any) -> Any:
        """Gather the elements of a lattice at these indices, one per window. Linear in x."""
        axes, rank = self._numbered, len(self.shape)
        merged = (*self.shape[: axes.start], shapes.size(self.shape[axes.start : axes.stop]), *self.shape[axes.stop :])
        lanes = tuple(axis for axis in range(rank) if axis not in axes)
        operand_lanes = (*range(axes.start), *range(axes.start + 1, len(merged)))
        which = GatherDimensionNumbers((), (axes.start,), (axes.start,), operand_lanes, lanes)
        return gather(
            reshape(x, merged), expand_dims(numbers, (rank,)), which, (1,) * len(merged), mode="promise_in_bounds",
            unique_indices=self.apart is not None,
        )  # fmt: skip

    def _spread(self, values: Any) -> Any:
        """Broadcast each window's value to all elements of the lattice that belong to it."""
        outer = tuple(range(0, 2 * len(self.shape), 2))
        return reshape(broadcast_in_dim(values, self._split, outer), self.shape)

    @property
    def _split(self) -> Shape:
        """Shape with non-overlapping windows, and the elements of each, as separate axes."""
        assert self.apart is not None
        return tuple(n for pair in zip(self.counts, self.apart, strict=True) for n in pair)

    @property
    def _within(self) -> tuple[int, ...]:
        return tuple(range(1, 2 * len(self.shape), 2))

    def from_windows(self, values: Any) -> Any:
        """Return an array of the operand's shape with each window's value at its elements, else zero."""
        assert self.apart is not None
        outer = tuple(range(0, 2 * len(self.shape), 2))
        within = tuple(n for pair in zip(self.counts, self.window, strict=True) for n in pair)
        config: list[tuple[int, int, int]] = []
        for w, d, step in zip(self.window, self.dilations, self.apart, strict=True):
            config += [(0, 0, 0), (0, step - dilated(w, d), d - 1)]
        result = reshape(pad(broadcast_in_dim(values, within, outer), 0, config), self.shape)
        result = pad(result, 0, [(-low, -high, 0) for low, high, _ in self.config])
        for axis, (_, _, inner) in enumerate(self.config):
            result = slice_in_dim(result, 0, result.shape[axis], inner + 1, axis) if inner else result
        return result


def _is_behind(x: Any, y: Any, op: ScalarOp) -> Any:
    """Return whether x is less extreme than y. NaN is the most extreme, as for argmax."""
    behind = (lt if op is ScalarOp.MAX else gt)(x, y)
    return or_(behind, and_(ne(y, y), eq(x, x))) if dtypes.is_float(x.dtype) else behind
