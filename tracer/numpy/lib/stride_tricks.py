"""Sliding windows over an array. They are copies, because arrays have no strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.numpy.core.conversion import array_of
from tracer.numpy.shapes.manipulation import moveaxis
from tracer.numpy.shapes.take import take
from tracer.primitives.base.broadcasting import axis_of
from tracer.trace.array import Array
from tracer.trace.integers import integers
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    """Return all windows of a shape in an array, as trailing axes. For [n] and size w the result is [n - w + 1, w].

    x: [*s]; window_shape: a size, or one for each axis; axis: the axes of the windows, by default all; subok: ignored.
    Returns x's dtype. Raises ShapeError if the numbers of sizes and axes differ, or a window exceeds its axis;
    ArgumentError for writeable=True.

    >>> tnp.lib.stride_tricks.sliding_window_view(tnp.asarray([1, 2, 3, 4]), 3)
    Array([[1, 2, 3],
           [2, 3, 4]], i64)
    """
    name = "sliding_window_view"
    if writeable:
        raise ArgumentError(message(f"{name}{here()}: windows are copies", help="write to the array itself"))
    array = array_of(name, x)
    sizes = integers(
        "sliding_window_view", "window_shape",
        window_shape if isinstance(window_shape, list | tuple) else (window_shape,),
    )  # fmt: skip
    axes = range(array.ndim) if axis is None else axis if isinstance(axis, list | tuple) else (axis,)
    if len(sizes) != len(axes):
        raise ShapeError(message(f"{name}{here()}: one size for each axis", f"got {sizes} for axes {list(axes)}"))
    for size, given in zip(sizes, axes, strict=True):
        at = axis_of(name, given, len(np.shape(x)))
        n = array.shape[at]
        if not 0 <= size <= n:
            raise ShapeError(message(f"{name}{here()}: a window of {size} does not fit an axis of {n}"))
        windows = np.arange(n - size + 1)[:, None] + np.arange(size)
        array = moveaxis(take(array, windows, at), at + 1, -1)
    return array


def __getattr__(name: str) -> object:
    reason = "arrays have no strides; see sliding_window_view and broadcast_to" if name == "as_strided" else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{f' ({reason})' if reason else ''}")


__all__ = ["sliding_window_view"]

set_boundaries(globals(), __all__)
