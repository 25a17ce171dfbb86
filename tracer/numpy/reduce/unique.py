"""The distinct elements of an array: their number depends on values, known or bounded by `size=`."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracer.errors import TracerArrayError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of, cast
from tracer.numpy.core.fast_asarray import known_value, new_array
from tracer.numpy.elementwise.logic import isnan
from tracer.numpy.reduce.cumulative import cumsum
from tracer.numpy.reduce.reductions import any
from tracer.numpy.reduce.sorting import argsort, lexsort
from tracer.numpy.shapes.creation import asarray, full, ones, zeros
from tracer.numpy.shapes.joining import concatenate
from tracer.numpy.shapes.manipulation import moveaxis, ravel, reshape
from tracer.numpy.shapes.where import nonzero, where
from tracer.primitives.base.broadcasting import axis_of
from tracer.trace.array import Array, concrete_value
from tracer.trace.integers import integer
from tracer.trace.source import here


class Unique(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, sorted: bool = True, size: int | None = None,
    fill_value: Any = None,
) -> Any:  # fmt: skip
    """The distinct elements in ascending order; where each first occurs, which one each element is, how often.

    ar: any shape; axis: the slices along it are what is distinct, by default the elements. return_index,
    return_inverse, return_counts: which of these also come, in a tuple. equal_nan: whether all NaN are one. sorted:
    changes nothing. Returns [n], of ar's dtype, or [..., n, ...] along an axis; indices and counts are int64 [n], the
    inverse is int64 of ar's shape.

    Their number depends on the values: under `jit` `size` must say it. It cuts off, or fills up with `fill_value`
    (the smallest element by default), with the index of the first, and counts of 0.

    >>> tnp.unique(tnp.asarray([3, 1, 3]), return_counts=True)
    (Array([1, 3], i64), Array([1, 2], i64))
    """
    del sorted  # they always are, and may be in any order where it is False
    if size is None and axis is None and not (return_index or return_inverse or return_counts):
        value = known_value(ar)
        if value is not None and (result := new_array(np.unique(value, equal_nan=equal_nan))) is not None:
            return result
    x = array_of("unique", ar)
    axis = axis if axis is None else axis_of("unique", axis, x.ndim)
    known = concrete_value(x)
    if size is None:
        if known is None:
            raise TracerArrayError(
                message(
                    f"unique{here()}: the number of results depends on the values",
                    f"got {x.type}, whose values are known only when the compiled program runs",
                    help="call it outside jit, or give size=",
                )
            )
        asked: Any = {"return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts}
        results: Any = np.unique(known, **asked, axis=axis, equal_nan=equal_nan)
        if not isinstance(results, tuple):
            return array_of("unique", results, copy=False)
        return tuple(array_of("unique", np.asarray(found), copy=False) for found in results)
    values, index, inverse, counts = _sized(x, axis, size, fill_value, equal_nan=equal_nan)
    found = ((index, return_index), (inverse, return_inverse), (counts, return_counts))
    wanted = (values, *(part for part, on in found if on))
    return wanted if len(wanted) > 1 else values


def distinct_from_before(ordered: Array, *, equal_nan: bool = True) -> Array:
    """Whether each of sorted elements, or rows, differs from the one before it; the first one does."""
    later, earlier = ordered[1:], ordered[:-1]
    differs = later != earlier
    if equal_nan and dtypes.is_inexact(ordered.dtype):
        differs = differs & ~(isnan(later) & isnan(earlier))
    if ordered.ndim > 1:
        differs = any(differs, tuple(np.arange(1, ordered.ndim)))
    return concatenate([ones(min(ordered.shape[0], 1), bool), differs])


def _sized(x: Array, axis: int | None, size: int, fill_value: Any, *, equal_nan: bool) -> tuple[Array, ...]:
    """As many distinct elements, or slices along an axis, as `size` says, with index, inverse and counts."""
    size = integer("unique", "size", size)
    moved = ravel(x) if axis is None else moveaxis(x, axis, 0)
    n = moved.shape[0]
    rows = reshape(moved, (n, moved.size // n if n else 0))
    if not rows.size:
        filled = full((size, *moved.shape[1:]), cast(asarray(0 if fill_value is None else fill_value), x.dtype))
        return filled, zeros(size, dtypes.I64), zeros(n, dtypes.I64), zeros(size, dtypes.I64)
    order = argsort(rows[:, 0]) if axis is None else lexsort([rows[:, i] for i in reversed(range(rows.shape[1]))])
    ordered = moved[order]
    starts = distinct_from_before(ordered, equal_nan=equal_nan)
    (places,) = nonzero(starts, size=size, fill_value=n)
    inside = places < n
    at = where(inside, places, 0)
    values = ordered[at]
    if fill_value is not None:
        lanes = reshape(inside, (size,) + (1,) * (values.ndim - 1))
        values = where(lanes, values, cast(asarray(fill_value), x.dtype))
    number = cumsum(starts) - 1
    inverse = zeros(n, dtypes.I64).at[order].set(number)
    counts = zeros(size, dtypes.I64).at[number].add(1, mode="drop")
    values = values if axis is None else moveaxis(values, 0, axis)
    return values, order[at], reshape(inverse, x.shape) if axis is None else inverse, counts


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The distinct elements in ascending order; `size` as in `unique`.

    x: any shape; fill_value: of what is beyond them. Returns [n], of x's dtype.

    >>> tnp.unique_values(tnp.asarray([3, 1, 3]))
    Array([1, 3], i64)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Unique:
    """The distinct elements, where each first occurs, which one each element is, how often; `size` as in `unique`.

    x: any shape [*s]. Returns a tuple of values [n], indices [n], inverse_indices [*s], counts [n], of x's dtype and
    int64. Every NaN is one of its own. `fill_value`: what the values are filled up with.

    >>> tnp.unique_all(tnp.asarray([3, 1, 3])).counts
    Array([1, 2], i64)
    """
    array = array_of("unique_all", x)
    values, index, inverse, counts = unique(array, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return Unique(values, index, reshape(inverse, array.shape), counts)


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """The distinct elements in ascending order, and how often each occurs; `size` as in `unique`.

    x: any shape. Returns a tuple of values [n], of x's dtype, and counts [n], int64. Every NaN is one of its own.
    `fill_value`: what the values are filled up with.

    >>> tnp.unique_counts(tnp.asarray([3, 1, 3])).counts
    Array([1, 2], i64)
    """
    values, counts = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCounts(values, counts)


def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueInverse:
    """The distinct elements in ascending order, and which one each element is, in x.shape; `size` as in `unique`.

    x: any shape [*s]. Returns a tuple of values [n], of x's dtype, and inverse_indices [*s], int64. Every NaN is one of
    its own. `fill_value`: what the values are filled up with.

    >>> tnp.unique_inverse(tnp.asarray([3, 1, 3])).inverse_indices
    Array([1, 0, 1], i64)
    """
    array = array_of("unique_inverse", x)
    values, inverse = unique(array, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverse(values, reshape(inverse, array.shape))
