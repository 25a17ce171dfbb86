"""Pooling layers whose windows follow from the input: a given number of parts of each axis, or all of it."""

# mypy: disable-error-code="no-any-return"
# (inputs are `Any`, and so are their methods' results)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ShapeError, message
from tracer.ir import dtypes
from tracer.nn.layers.pooling import Window, check_rank, max_of_windows, mean_of_windows, real_input
from tracer.nn.layers.windows import per_axis
from tracer.nn.module import Module, place
from tracer.trace.array import Array
from tracer.trace.source import here

_FEW_PARTS: Final = 32  # of an axis, each with a loop of its own: more take longer to compile


class _Adaptive(Module):
    """Pooling over a given number of parts of each axis."""

    rank: ClassVar[int]

    def __init__(self, output: int | Sequence[int | None] | None) -> None:
        given = tuple(output) if isinstance(output, Sequence) else (output,) * self.rank
        caller = type(self).__name__
        per_axis(caller, "output", [1 if n is None else n for n in given], self.rank)
        self.output = given

    def __call__(self, x: Any) -> Array:
        x = check_rank(self, x, self.rank)
        sizes = x.shape[x.ndim - self.rank :]
        if not all(sizes):
            raise ShapeError(message(f"{place(self)}: there are no positions to pool", f"got {x.type}{here()}"))
        output = tuple(n if wanted is None else wanted for n, wanted in zip(sizes, self.output, strict=True))
        if all(count and n % count == 0 for n, count in zip(sizes, output, strict=True)):
            return self._windows(x, tuple(n // count for n, count in zip(sizes, output, strict=True)))
        return self._uneven(x, output)

    def _windows(self, x: Array, size: tuple[int, ...]) -> Array:
        """Pool windows of equal size that lie side by side."""
        return self._pool(x, Window(type(self).__name__, self.rank, size, None, 0, 1, False))

    def _pool(self, x: Array, window: Window) -> Array:
        raise NotImplementedError

    def _uneven(self, x: Array, output: tuple[int, ...]) -> Array:
        raise NotImplementedError


def _parts(n: int, count: int) -> tuple[Any, Any]:
    """Return the indices [count, k] of `count` parts of n elements, and which of them count.

    Part i is from floor(i n / count) up to ceil((i + 1) n / count): PyTorch's AdaptiveAvgPool2d.
    """
    starts = np.arange(count) * n // count
    ends = -(-np.arange(1, count + 1) * n // count)
    places = starts[:, None] + np.arange((ends - starts).max())
    return np.minimum(places, ends[:, None] - 1), places < ends[:, None]


def _slices(x: Array, axis: int, count: int) -> list[Array]:
    """Return the parts of an axis as slices: loops over them read neighbours, where a gather takes every element."""
    n = x.shape[axis]
    ends = [-(-(part + 1) * n // count) for part in range(count)]
    return [x[(slice(None),) * axis + (slice(part * n // count, end),)] for part, end in enumerate(ends)]


class _AdaptiveAvg(_Adaptive):
    def _pool(self, x: Array, window: Window) -> Array:
        return mean_of_windows(place(self), x, window, True)

    def _uneven(self, x: Array, output: tuple[int, ...]) -> Array:
        dtype = x.dtype if dtypes.is_float(x.dtype) else tnp.asarray(0.0).dtype
        y = x.astype(tnp.promote_types(dtype, "float32"))
        for axis, count in enumerate(output, x.ndim - self.rank):
            if count <= _FEW_PARTS:
                y = tnp.concatenate([part.mean(axis, keepdims=True) for part in _slices(y, axis, count)], axis)
                continue
            indices, counted = _parts(x.shape[axis], count)
            parts = tnp.where(counted, tnp.moveaxis(y, axis, -1)[..., indices], 0.0)
            y = tnp.moveaxis(parts.sum(-1) / tnp.asarray(counted.sum(-1), y.dtype), -1, axis)
        return y.astype(dtype)


class _AdaptiveMax(_Adaptive):
    def _pool(self, x: Array, window: Window) -> Array:
        return max_of_windows(place(self), x, window)

    def _uneven(self, x: Array, output: tuple[int, ...]) -> Array:
        # The last axis first, so that of equal maxima the first one in the order of rows is chosen
        for axis, count in reversed(list(enumerate(output, x.ndim - self.rank))):
            if count <= _FEW_PARTS:
                x = tnp.concatenate([self.max_of_windows(part, axis) for part in _slices(x, axis, count)], axis)
                continue
            indices, _ = _parts(x.shape[axis], count)  # an index may come twice: the maximum does not change
            parts = tnp.moveaxis(x, axis, -1)[..., indices]
            chosen = tnp.take_along_axis(parts, tnp.argmax(parts, -1, keepdims=True), -1)[..., 0]
            x = tnp.moveaxis(chosen, -1, axis)
        return x

    def max_of_windows(self, x: Array, axis: int) -> Array:
        """Return the maximum over one axis, which is kept. Of equal elements the first has the derivative."""
        size = [1] * self.rank
        size[axis - x.ndim] = x.shape[axis]
        return self._windows(x, tuple(size))


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """Means of `output` parts of the last axis, [b, c, t] or [c, t]. Sizes of the parts differ by two at most.

    output: an integer, or None to keep the axis. Computed in float32 at least.

    >>> nn.AdaptiveAvgPool1d(2)(tnp.asarray([[1.0, 2.0, 6.0]]))
    Array([[1.5, 4. ]], f64)
    """

    rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvg):
    """Means of parts of the last two axes, [b, c, h, w] or [c, h, w].

    output: an integer, or one for each axis; None keeps an axis. Part i of n is from floor(i size / n) up to
    ceil((i + 1) size / n), as in PyTorch. Computed in float32 at least.

    >>> nn.AdaptiveAvgPool2d((3, None))(tnp.ones((5, 2, 7, 7))).shape
    (5, 2, 3, 7)
    """

    rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvg):
    """Means of parts of the last three axes, [b, c, d, h, w] or [c, d, h, w]; see `AdaptiveAvgPool2d`.

    >>> nn.AdaptiveAvgPool3d(1)(tnp.ones((5, 2, 4, 4, 4))).shape
    (5, 2, 1, 1, 1)
    """

    rank = 3


class AdaptiveMaxPool1d(_AdaptiveMax):
    """Maxima of `output` parts of the last axis, [b, c, t] or [c, t]. Of equal elements the first has the derivative.

    output: an integer, or None to keep the axis.

    >>> nn.AdaptiveMaxPool1d(2)(tnp.asarray([[1.0, 2.0, 6.0]]))
    Array([[2., 6.]], f64)
    """

    rank = 1


class AdaptiveMaxPool2d(_AdaptiveMax):
    """Maxima of parts of the last two axes, [b, c, h, w] or [c, h, w], as `AdaptiveAvgPool2d` divides them.

    >>> nn.AdaptiveMaxPool2d(3)(tnp.ones((5, 2, 7, 7))).shape
    (5, 2, 3, 3)
    """

    rank = 2


class AdaptiveMaxPool3d(_AdaptiveMax):
    """Maxima of parts of the last three axes, [b, c, d, h, w] or [c, d, h, w], as `AdaptiveAvgPool2d` divides them.

    >>> nn.AdaptiveMaxPool3d(2)(tnp.ones((5, 2, 4, 4, 4))).shape
    (5, 2, 2, 2, 2)
    """

    rank = 3


class GlobalAvgPool(Module):
    """Mean over all positions, [b, c, *s] -> [b, c], computed in float32 at least.

    >>> nn.GlobalAvgPool()(tnp.ones((5, 3, 8, 8))).shape
    (5, 3)
    """

    def __call__(self, x: Any) -> Array:
        x = _with_positions(self, x)
        dtype = x.dtype if dtypes.is_float(x.dtype) else tnp.asarray(0.0).dtype
        means: Array = x.astype(tnp.promote_types(dtype, "float32")).mean(tuple(range(2, x.ndim))).astype(dtype)
        return means


class GlobalMaxPool(Module):
    """Maximum over all positions, [b, c, *s] -> [b, c]. Equal maxima share the derivative.

    >>> nn.GlobalMaxPool()(tnp.ones((5, 3, 8, 8))).shape
    (5, 3)
    """

    def __call__(self, x: Any) -> Array:
        x = _with_positions(self, x)
        largest: Array = x.max(tuple(range(2, x.ndim)))
        return largest


def _with_positions(layer: Module, x: Any) -> Array:
    x = real_input(place(layer), x)
    if x.ndim < 3:
        raise ShapeError(message(f"{place(layer)} takes [b, c, *s] with one size or more", f"got {x.type}{here()}"))
    return x
