"""Pooling: maxima and means over windows of a given size. See `adaptive_pooling` for windows that follow the input."""

# mypy: disable-error-code="no-any-return"
# (inputs are `Any`, and so are their methods' results)

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tracer import lax
from tracer import numpy as tnp
from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.nn.layers.windows import Pads, check_windows, pads, per_axis
from tracer.nn.module import Module, place
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries


def max_pool(
    x: Any, size: int | Sequence[int], *, stride: int | Sequence[int] | None = None, padding: Any = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
) -> Array:  # fmt: skip
    """Return the maximum of every window over the last axes.

    x: real numbers [b, c, *s], or any [..., *s] if `size` is one integer for each axis; stride: by default the size;
    padding: an integer, or an integer or a pair (before, after) for each axis; at most half the window, and never a
    maximum; dilation: the distance of elements in a window; ceil_mode: whether windows may reach over the end. Returns
    [..., *windows] of x's dtype. Of equal elements the first one has the derivative, as in PyTorch. Raises
    ArgumentError for settings that do not fit, ShapeError for windows longer than their axis.

    >>> nn.max_pool(tnp.arange(16.0).reshape(1, 1, 4, 4), 2)[0, 0]
    Array([[ 5.,  7.],
           [13., 15.]], f64)
    """
    x = real_input("max_pool", x)
    window = Window("max_pool", _rank("max_pool", x, size), size, stride, padding, dilation, ceil_mode)
    return max_of_windows(f"max_pool{here()}", x, window)


def avg_pool(
    x: Any, size: int | Sequence[int], *, stride: int | Sequence[int] | None = None, padding: Any = 0,
    ceil_mode: bool = False, count_include_pad: bool = True,
) -> Array:  # fmt: skip
    """Return the mean of every window over the last axes.

    x: real numbers [b, c, *s], or any [..., *s] if `size` is one integer for each axis; stride: by default the size;
    padding: zeros, an integer, or an integer or a pair (before, after) for each axis, of at most half the window;
    ceil_mode: whether windows may reach over the end; count_include_pad: whether padding counts as elements. Returns
    [..., *windows] of x's dtype, floats for integers, computed in float32 at least. Raises ArgumentError for settings
    that do not fit, ShapeError for windows longer than their axis.

    >>> nn.avg_pool(tnp.arange(16.0).reshape(1, 1, 4, 4), 2)[0, 0]
    Array([[ 2.5,  4.5],
           [10.5, 12.5]], f64)
    """
    x = real_input("avg_pool", x)
    window = Window("avg_pool", _rank("avg_pool", x, size), size, stride, padding, 1, ceil_mode)
    return mean_of_windows(f"avg_pool{here()}", x, window, count_include_pad)


class Window:
    """Settings of a window, one entry an axis."""

    def __init__(
        self, caller: str, rank: int, size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> None:
        self.size = per_axis(caller, "size", size, rank)
        self.stride = self.size if stride is None else per_axis(caller, "stride", stride, rank)
        self.padding = pads(caller, padding, rank)
        self.dilation = per_axis(caller, "dilation", dilation, rank)
        self.ceil_mode = ceil_mode
        self.wide = tuple((k - 1) * d + 1 for k, d in zip(self.size, self.dilation, strict=True))
        if any(2 * max(pair) > k for pair, k in zip(self.padding, self.wide, strict=True)):
            raise ArgumentError(
                message(
                    f"nn.{caller}{here()}: padding is at most half the window",
                    f"got padding={padding!r} for windows of {self.wide}",
                    help="more would make windows of padding alone",
                )
            )

    def reach(self, sizes: Sequence[int]) -> Pads:
        """Return the padding of axes, longer at the end where windows reach over it. No window starts beyond it."""
        if not self.ceil_mode:
            return self.padding
        found = []
        for n, wide, step, (before, after) in zip(sizes, self.wide, self.stride, self.padding, strict=True):
            count = -((wide - before - n - after) // step) + 1
            count -= (count - 1) * step >= n + before
            found.append((before, max((count - 1) * step + wide - before - n, after)))
        return tuple(found)


def real_input(caller: str, x: Any) -> Array:
    """Return the input as an array. Raises DTypeError if it is complex. caller: named in the error."""
    x = tnp.asarray(x)
    if dtypes.is_complex(x.dtype):
        raise DTypeError(message(f"{caller}{here()} takes real numbers", f"got {x.type}"))
    return x


def _rank(caller: str, x: Array, size: Any) -> int:
    rank = len(size) if isinstance(size, Sequence) else x.ndim - 2
    if rank < 1 or rank > x.ndim:
        raise ShapeError(
            message(
                f"{caller}{here()}: one size is for inputs [b, c, *s], sizes are for the last axes",
                f"got size={size!r} for {x.type}",
            )
        )
    return rank


def _windows(x: Array, window: Window, start: Any, join: Callable[[Any, Any], Any]) -> Array:
    front = x.ndim - len(window.size)
    result: Array = lax.reduce_window(
        x, start, join, (1,) * front + window.size, (1,) * front + window.stride,
        ((0, 0),) * front + window.reach(x.shape[front:]), window_dilation=(1,) * front + window.dilation,
    )  # fmt: skip
    return result


def max_of_windows(who: str, x: Array, window: Window) -> Array:
    """Return the maximum of every window. who: named in errors."""
    check_windows(who, x, window.wide, window.padding)
    if dtypes.is_float(x.dtype):
        least: Any = -math.inf
    else:
        least = False if x.dtype == np.bool_ else np.iinfo(x.dtype).min
    return _windows(x, window, least, lax.max)


def mean_of_windows(who: str, x: Array, window: Window, count_padding: bool) -> Array:
    """Return the mean of every window. who: named in errors. count_padding: as zeros."""
    check_windows(who, x, window.wide, window.padding)
    dtype = x.dtype if dtypes.is_float(x.dtype) else tnp.asarray(0.0).dtype
    sums = _windows(x.astype(tnp.promote_types(dtype, "float32")), window, 0.0, lax.add)
    counts = np.ones((), "int64")
    sizes = x.shape[x.ndim - len(window.size) :]
    reach = window.reach(sizes)
    for axis, n in enumerate(sizes):
        first, last = window.padding[axis] if count_padding else (0, 0)
        starts = np.arange(sums.shape[x.ndim - len(sizes) + axis]) * window.stride[axis] - reach[axis][0]
        ends = np.minimum(starts + window.size[axis], n + last)
        counts = counts[..., None] * (ends - np.maximum(starts, -first))
    result: Array = (sums / tnp.asarray(counts, sums.dtype)).astype(dtype)
    return result


class _Pool(Module):
    """Pooling over windows, of any rank."""

    rank: ClassVar[int]

    def _set(self, size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> None:
        window = Window(type(self).__name__, self.rank, size, stride, padding, dilation, ceil_mode)
        self.size, self.stride, self.padding = window.size, window.stride, window.padding
        self.ceil_mode = ceil_mode

    def _checked(self, x: Any) -> Array:
        return check_rank(self, x, self.rank)


def check_rank(layer: Module, x: Any, rank: int) -> Array:
    """Return the input as an array. Raises ShapeError unless it is [b, c, *s] or [c, *s] with `rank` sizes."""
    x = real_input(place(layer), x)
    if x.ndim not in (rank + 1, rank + 2):
        sizes = ("t", "h, w", "d, h, w")[rank - 1]
        raise ShapeError(
            message(
                f"{place(layer)} takes [b, c, {sizes}]", f"got {x.type}{here()}", help=f"or one example, [c, {sizes}]"
            )
        )
    return x


class _MaxPool(_Pool):
    def __init__(
        self, size: int | Sequence[int], *, stride: int | Sequence[int] | None = None, padding: Any = 0,
        dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        self._set(size, stride, padding, dilation, ceil_mode)
        self.dilation = per_axis(type(self).__name__, "dilation", dilation, self.rank)

    def __call__(self, x: Any) -> Array:
        window = Window(
            type(self).__name__, self.rank, self.size, self.stride, self.padding, self.dilation, self.ceil_mode
        )
        return max_of_windows(place(self), self._checked(x), window)


class _AvgPool(_Pool):
    def __init__(
        self, size: int | Sequence[int], *, stride: int | Sequence[int] | None = None, padding: Any = 0,
        ceil_mode: bool = False, count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        self._set(size, stride, padding, 1, ceil_mode)
        self.count_include_pad = count_include_pad

    def __call__(self, x: Any) -> Array:
        window = Window(type(self).__name__, self.rank, self.size, self.stride, self.padding, 1, self.ceil_mode)
        return mean_of_windows(place(self), self._checked(x), window, self.count_include_pad)


class MaxPool1d(_MaxPool):
    """Maximum of every window over the last axis, [b, c, t] or [c, t]; see `max_pool`.

    >>> nn.MaxPool1d(2)(tnp.asarray([[1.0, 3.0, 2.0, 0.0]]))
    Array([[3., 2.]], f64)
    """

    rank = 1


class MaxPool2d(_MaxPool):
    """Maximum of every window over the last two axes, [b, c, h, w] or [c, h, w]; see `max_pool`.

    >>> nn.MaxPool2d(3, stride=2, padding=1)(tnp.ones((5, 3, 8, 8))).shape
    (5, 3, 4, 4)
    """

    rank = 2


class MaxPool3d(_MaxPool):
    """Maximum of every window over the last three axes, [b, c, d, h, w] or [c, d, h, w]; see `max_pool`.

    >>> nn.MaxPool3d(2)(tnp.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    rank = 3


class AvgPool1d(_AvgPool):
    """Mean of every window over the last axis, [b, c, t] or [c, t]; see `avg_pool`.

    >>> nn.AvgPool1d(2)(tnp.asarray([[1.0, 3.0, 2.0, 0.0]]))
    Array([[2., 1.]], f64)
    """

    rank = 1


class AvgPool2d(_AvgPool):
    """Mean of every window over the last two axes, [b, c, h, w] or [c, h, w]; see `avg_pool`.

    >>> nn.AvgPool2d(2)(tnp.ones((5, 3, 8, 8))).shape
    (5, 3, 4, 4)
    """

    rank = 2


class AvgPool3d(_AvgPool):
    """Mean of every window over the last three axes, [b, c, d, h, w] or [c, d, h, w]; see `avg_pool`.

    >>> nn.AvgPool3d(2)(tnp.ones((1, 3, 4, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    rank = 3


set_boundaries(globals(), ["avg_pool", "max_pool"])
