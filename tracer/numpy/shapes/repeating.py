"""Repetition and rotation of elements: tile, repeat, roll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of, cast, shape_argument
from tracer.numpy.elementwise.arithmetic import remainder
from tracer.numpy.shapes.manipulation import ravel
from tracer.primitives.arrays.indexing.dimension_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from tracer.primitives.arrays.indexing.gather import gather, scatter_add
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.base.broadcasting import axis_of, broadcast_in_dim, full
from tracer.primitives.base.shapes import iota, reshape
from tracer.primitives.control.cumulative import cumsum
from tracer.primitives.elementwise import arithmetic
from tracer.trace.array import Array, concrete_value
from tracer.trace.integers import integer
from tracer.trace.source import here


def tile(A: Any, reps: Any) -> Array:
    """Return the whole array repeated along each axis.

    A: [*s]; reps: a count for each axis, or for the last axes. Returns A's dtype, each size multiplied by its count.

    >>> tnp.tile(tnp.asarray([1, 2]), 2)
    Array([1, 2, 1, 2], i64)
    """
    x = array_of("tile", A)
    times = shape_argument("tile", reps)
    rank = max(x.ndim, len(times))
    times = (1,) * (rank - len(times)) + times
    sizes = (1,) * (rank - x.ndim) + x.shape
    spread = [n for pair in zip(times, sizes, strict=True) for n in pair]
    repeated = broadcast_in_dim(reshape(x, sizes), spread, range(1, 2 * rank, 2))
    return reshape(repeated, [t * n for t, n in zip(times, sizes, strict=True)])


def repeat(a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None) -> Array:
    """Return every element repeated, by one count or by a count for each index along the axis.

    a: [*s]; repeats: an integer, or [n] for an axis of size n; axis: None to flatten. Returns [..., total, ...], in a's
    dtype.

    Under `jit`, traced counts need `total_repeat_length`: the last element pads the result, or the excess is truncated.

    >>> tnp.repeat(tnp.asarray([1, 2]), 2)
    Array([1, 1, 2, 2], i64)
    """
    x = array_of("repeat", a)
    if axis is None:
        x, axis = ravel(x), 0
    if x.ndim == 0:
        x = reshape(x, (1,))
    along = axis_of("repeat", axis, x.ndim)
    if isinstance(repeats, int | np.integer):
        count = integer("repeat", "repeats", repeats)
        wide = (*x.shape[: along + 1], count, *x.shape[along + 1 :])
        kept = [d for d in range(len(wide)) if d != along + 1]
        joined = (*x.shape[:along], x.shape[along] * count, *x.shape[along + 1 :])
        return reshape(broadcast_in_dim(x, wide, kept), joined)
    return _repeat_each(x, array_of("repeat", repeats), along, total_repeat_length)


def _repeat_each(x: Array, repeats: Array, axis: int, total: int | None) -> Array:
    n = x.shape[axis]
    if dtypes.is_inexact(repeats.dtype):
        raise DTypeError(
            message(f"repeat{here()}: counts are integers", f"got {repeats.type}", help="cast them, n.astype(int)")
        )
    if repeats.ndim > 1 or (repeats.ndim == 1 and repeats.shape[0] not in (1, n)):
        raise ShapeError(
            message(f"repeat{here()} takes one count, or one for each of the {n} indices", f"got {repeats.type}")
        )
    known = concrete_value(repeats)
    if repeats.ndim == 0 or repeats.shape == (1,):
        repeats = broadcast_in_dim(reshape(repeats, ()), (n,), ())
    if known is not None and total is None:
        index = np.repeat(np.arange(n), np.broadcast_to(known.reshape(-1), (n,)) if known.size == 1 else known)
        return take_slices(x, array_of("repeat", index.astype(np.int64)), axis)
    if not n:
        if total:
            raise ShapeError(message(f"repeat{here()}: there are no elements to repeat", f"got {x.type}, axis={axis}"))
        return x
    if total is None:
        raise ArgumentError(
            message(
                f"repeat{here()}: the length of the result depends on the values of traced counts",
                f"got repeats {repeats.type}",
                help="give total_repeat_length",
            )
        )
    total = integer("repeat", "total_repeat_length", total)
    ends = cumsum(cast(repeats, dtypes.I64))
    marks = scatter_add(
        full((total,), 0, dtypes.I64), reshape(ends, (n, 1)), full((n,), 1, dtypes.I64),
        ScatterDimensionNumbers((), (0,), (0,)), mode="drop",
    )  # fmt: skip
    return take_slices(x, arithmetic.min(cumsum(marks), n - 1), axis)


def take_slices(x: Array, index: Array, axis: int) -> Array:
    """Return the slices of an axis at a vector of indices, all within bounds."""
    others = tuple(d for d in range(x.ndim) if d != axis)
    sizes = tuple(1 if d == axis else n for d, n in enumerate(x.shape))
    numbers = GatherDimensionNumbers(others, (axis,), (axis,))
    return gather(x, reshape(index, (*index.shape, 1)), numbers, sizes, mode="clip")


def roll(a: Any, shift: Any, axis: int | Sequence[int] | None = None) -> Array:
    """Shift the elements by `shift` positions, which may be traced; the ones shifted out reappear at the other end.

    a: [*s]; shift: an integer, or one for each axis; axis: one or several, None to flatten. Returns [*s], in a's dtype.
    Raises AxisError for an axis out of range.

    >>> tnp.roll(tnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], i64)
    """
    x = array_of("roll", a)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    axes = tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    if isinstance(shift, Array | np.ndarray) and shift.ndim == 1:
        shift = [shift[i] for i in range(shift.shape[0])]
    shifts = tuple(shift) if isinstance(shift, list | tuple) else (shift,) * len(axes)
    if len(axes) == 1 and len(shifts) > 1:
        axes = axes * len(shifts)
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    if not (shifts and axes):
        return x
    if len(axes) != len(shifts):
        raise ShapeError(
            message(f"roll{here()} takes one shift, or one for each axis", f"got {shifts} for axis={axis}")
        )
    for by, one in zip(shifts, axes, strict=True):
        x = _rolled(x, by, axis_of("roll", one, x.ndim))
    return x


def _rolled(x: Array, shift: Any, axis: int) -> Array:
    """Return the elements shifted along one axis: by a gather if the shift is traced, else by two slices."""
    n = x.shape[axis]
    if not n:
        return x
    if isinstance(shift, Array) and concrete_value(shift) is None:
        moved = arithmetic.sub(iota(dtypes.I64, n), broadcast_in_dim(cast(shift, dtypes.I64), (n,), ()))
        return take_slices(x, remainder(moved, n), axis)
    start = (-integer("roll", "shift", shift)) % n
    if not start:
        return x
    return concatenate([slice_in_dim(x, start, n, axis=axis), slice_in_dim(x, 0, start, axis=axis)], axis)
