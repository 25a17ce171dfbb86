"""Cumulative sums and products, and differences of neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.errors import ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of, cast, dtype_of_argument, no_out, strong
from tracer.numpy.core.promotion import operand
from tracer.numpy.elementwise.logic import not_equal
from tracer.numpy.reduce.statistics import without_nan
from tracer.numpy.shapes.joining import concatenate
from tracer.numpy.shapes.manipulation import broadcast_to, ravel
from tracer.numpy.shapes.matrices import sum_dtype
from tracer.primitives.arrays.slice_pad_concatenate import slice_in_dim
from tracer.primitives.base.broadcasting import axis_of, full
from tracer.primitives.control import cumulative
from tracer.primitives.elementwise import arithmetic
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Return the cumulative sum along an axis, or of the flattened array. Bools are summed in int64.

    a: [*s]; axis: an axis, or None to flatten; dtype: of the sums, by default a's. Returns [*s], or [n] without an
    axis.

    >>> tnp.cumsum(tnp.asarray([1, 2, 3]))
    Array([1, 3, 6], i64)
    """
    no_out("cumsum", out)
    return _running("cumsum", cumulative.cumsum, operand("cumsum", a), axis, dtype)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Return the cumulative product along an axis, or of the flattened array. Bools are multiplied in int64.

    a: [*s]; axis: an axis, or None to flatten; dtype: of the products, by default a's. Returns [*s], or [n] without an
    axis.

    >>> tnp.cumprod(tnp.asarray([1, 2, 3]))
    Array([1, 2, 6], i64)
    """
    no_out("cumprod", out)
    return _running("cumprod", cumulative.cumprod, operand("cumprod", a), axis, dtype)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
    """Return the cumulative sum along an axis, small integers in 64 bits.

    x: [*s] with at least one axis; axis: optional for a vector; dtype: of the sums; include_initial: prepend the empty
    sum, 0. Returns [*s], longer by one along the axis if `include_initial`. Raises ShapeError without an axis.

    >>> tnp.cumulative_sum(tnp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], i64)
    """
    return _cumulative("cumulative_sum", cumulative.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
    """Return the cumulative product along an axis, small integers in 64 bits.

    x: [*s] with at least one axis; axis: optional for a vector; dtype: of the products; include_initial: prepend the
    empty product, 1. Returns [*s], longer by one along the axis if `include_initial`. Raises ShapeError without an
    axis.

    >>> tnp.cumulative_prod(tnp.asarray([1, 2, 3]))
    Array([1, 2, 6], i64)
    """
    return _cumulative("cumulative_prod", cumulative.cumprod, x, axis, dtype, 1 if include_initial else None)


def _cumulative(
    name: str, scan: Callable[..., Any], x: Any, axis: int | None, dtype: Any, initial: int | None
) -> Array:
    array = operand(name, x)
    if array.ndim == 0 or (axis is None and array.ndim != 1):
        raise ShapeError(message(f"{name}{here()} needs an axis", f"got {array.type}, axis={axis}", help="give axis="))
    along = axis_of(name, 0 if axis is None else axis, array.ndim)
    result = _running(name, scan, array, along, sum_dtype(array) if dtype is None else dtype)
    if initial is None:
        return result
    first = full([1 if d == along else n for d, n in enumerate(array.shape)], initial, result.dtype)
    return concatenate([first, result], along)


def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Return `cumsum` with NaN as 0.

    a: [*s]; axis: an axis, or None to flatten; dtype: of the sums, by default a's. Returns [*s], or [n] without an
    axis.

    >>> tnp.nancumsum(tnp.asarray([1.0, tnp.nan, 3.0]))
    Array([1., 1., 4.], f64)
    """
    no_out("nancumsum", out)
    return _running("nancumsum", cumulative.cumsum, without_nan("nancumsum", a, 0)[0], axis, dtype)


def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Return `cumprod` with NaN as 1.

    a: [*s]; axis: an axis, or None to flatten; dtype: of the products, by default a's. Returns [*s], or [n] without an
    axis.

    >>> tnp.nancumprod(tnp.asarray([2.0, tnp.nan, 3.0]))
    Array([2., 2., 6.], f64)
    """
    no_out("nancumprod", out)
    return _running("nancumprod", cumulative.cumprod, without_nan("nancumprod", a, 1)[0], axis, dtype)


def _running(name: str, scan: Callable[..., Any], x: Array, axis: int | None, dtype: Any) -> Array:
    if dtype is not None:
        x = cast(x, dtype_of_argument(name, dtype))
    elif x.dtype == dtypes.BOOL:
        x = cast(x, dtypes.I64)
    if axis is None:
        x, axis = ravel(x), 0
    along = axis_of(name, axis, x.ndim)
    if x.dtype == dtypes.BOOL:  # cumulative any and all
        so_far = cumulative.cummax if scan is cumulative.cumsum else cumulative.cummin
        return strong(cast(so_far(cast(x, dtypes.U8), along), dtypes.BOOL))
    return strong(scan(x, along))


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """Return the differences of neighbours along an axis, n times over; for bools, whether they differ.

    a: [*s]; n: how many times, 0 for the array itself; axis: by default the last; prepend, append: numbers or arrays
    joined to the array first. Returns [*s], shorter by n along the axis, in a's dtype. Raises ShapeError for a negative
    n, and for an array without axes.

    >>> tnp.diff(tnp.asarray([1, 4, 9]))
    Array([3, 5], i64)
    """
    x = array_of("diff", a)
    count = integer("diff", "n", n)
    if not count:
        return x
    if count < 0 or x.ndim == 0:
        raise ShapeError(message(f"diff{here()} takes n >= 0 differences along an axis", f"got n={n} for {x.type}"))
    along = axis_of("diff", axis, x.ndim)
    ends = [None if end is None else _end(array_of("diff", end), x, along) for end in (prepend, append)]
    pieces = [piece for piece in (ends[0], x, ends[1]) if piece is not None]
    x = concatenate(pieces, along) if len(pieces) > 1 else x
    for _ in range(count):
        size = x.shape[along]
        if size < 2:
            return slice_in_dim(x, 0, 0, axis=along)
        later, earlier = slice_in_dim(x, 1, size, axis=along), slice_in_dim(x, 0, size - 1, axis=along)
        x = not_equal(later, earlier) if x.dtype == dtypes.BOOL else arithmetic.sub(later, earlier)
    return x


def _end(end: Array, x: Array, axis: int) -> Array:
    return end if end.ndim else broadcast_to(end, [1 if d == axis else size for d, size in enumerate(x.shape)])
