"""Distinct elements of an array. Their number depends on concrete values, or is given as `size=`."""

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
    """Result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, sorted: bool = True, size: int | None = None,
    fill_value: Any = None,
) -> Any:  # fmt: skip
    """Return the distinct elements in ascending order, and optionally their first indices, an inverse and their counts.

    ar: any shape; axis: compare the slices along it, by default the elements. return_index, return_inverse,
    return_counts: also return these, in a tuple. equal_nan: whether all NaN are equal. sorted: ignored. Returns [n], in
    ar's dtype, or [..., n, ...] along an axis; indices and counts are int64 [n], the inverse is int64 of ar's shape.

    The number of results depends on the values: under `jit`, `size` must be given. Results are truncated to it, or
    padded with `fill_value` (by default the smallest element), the index of the first, and counts of 0.

    >>> tnp.unique(tnp.asarray([3, 1, 3]), return_counts=True)
    (Array([1, 3], i64), Array([1, 2], i64))
    """
    del sorted  # results are always sorted
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
                    f"got {x.type}, whose values are concrete only when the compiled program runs",
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
    """Return whether each sorted element, or row, differs from the one before it; True for the first."""
    later, earlier = ordered[1:], ordered[:-1]
    differs = later != earlier
    if equal_nan and dtypes.is_inexact(ordered.dtype):
        differs = differs & ~(isnan(later) & isnan(earlier))
    if ordered.ndim > 1:
        differs = any(differs, tuple(np.arange(1, ordered.ndim)))
    return concatenate([ones(min(ordered.shape[0], 1), bool), differs])


def _sized(x: Array, axis: int | None, size: int, fill_value: Any, *, equal_nan: bool) -> tuple[Array, ...]:
    """Return `size` distinct elements, or slices along an axis, with index, inverse and counts."""
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
    (starts_at,) = nonzero(starts, size=size, fill_value=n)
    inside = starts_at < n
    at = where(inside, starts_at, 0)
    values = ordered[at]
    if fill_value is not None:
        lanes = reshape(inside, (size,) + (1,) * (values.ndim - 1))
        values = where(lanes, values, cast(asarray(fill_value), x.dtype))
    rank = cumsum(starts) - 1
    inverse = zeros(n, dtypes.I64).at[order].set(rank)
    counts = zeros(size, dtypes.I64).at[rank].add(1, mode="drop")
    values = values if axis is None else moveaxis(values, 0, axis)
    return values, order[at], reshape(inverse, x.shape) if axis is None else inverse, counts


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Return the distinct elements in ascending order; `size` as in `unique`.

    x: any shape; fill_value: the padding. Returns [n], in x's dtype.

    >>> tnp.unique_values(tnp.asarray([3, 1, 3]))
    Array([1, 3], i64)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Unique:
    """Return the distinct elements, their first indices, the inverse and the counts; `size` as in `unique`.

    x: any shape [*s]; fill_value: the padding of the values. Returns a tuple of values [n], indices [n],
    inverse_indices [*s], counts [n], in x's dtype and int64. No two NaN are equal.

    >>> tnp.unique_all(tnp.asarray([3, 1, 3])).counts
    Array([1, 2], i64)
    """
    array = array_of("unique_all", x)
    values, index, inverse, counts = unique(array, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return Unique(values, index, reshape(inverse, array.shape), counts)


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """Return the distinct elements in ascending order, and how often each occurs; `size` as in `unique`.

    x: any shape; fill_value: the padding of the values. Returns a tuple of values [n], in x's dtype, and counts int64
    [n]. No two NaN are equal.

    >>> tnp.unique_counts(tnp.asarray([3, 1, 3])).counts
    Array([1, 2], i64)
    """
    values, counts = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCounts(values, counts)


def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueInverse:
    """Return the distinct elements in ascending order, and for each element its index among them.

    x: any shape [*s]; size: as in `unique`; fill_value: the padding of the values. Returns a tuple of values [n], in
    x's dtype, and inverse_indices int64 [*s]. No two NaN are equal.

    >>> tnp.unique_inverse(tnp.asarray([3, 1, 3])).inverse_indices
    Array([1, 0, 1], i64)
    """
    array = array_of("unique_inverse", x)
    values, inverse = unique(array, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverse(values, reshape(inverse, array.shape))
