"""Sets as sorted vectors of distinct elements. Their size depends on concrete values, or is given as `size=`."""

from __future__ import annotations

from functools import partial
from typing import Any

from tracer.numpy.core.conversion import array_of, cast, unified
from tracer.numpy.elementwise.logic import isnan
from tracer.numpy.reduce.sorting import argsort, isin, searchsorted
from tracer.numpy.reduce.unique import distinct_from_before, unique
from tracer.numpy.shapes.creation import asarray, full, zeros
from tracer.numpy.shapes.joining import concatenate
from tracer.numpy.shapes.manipulation import ravel
from tracer.numpy.shapes.where import nonzero, where
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array

_isin = cached(isin, named=False)


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Return the distinct elements of either array, sorted.

    ar1, ar2: any shapes, flattened; size: of the result, truncated or padded with `fill_value` (by default the
    minimum), required under `jit`. Returns [n], in the promoted dtype.

    >>> tnp.union1d([3, 1], [2, 3])
    Array([1, 2, 3], i64)
    """
    parts = unified("union1d", [ravel(array_of("union1d", a)) for a in (ar1, ar2)])
    return unique(concatenate(parts), size=size, fill_value=fill_value)


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False, *, size: int | None = None,
    fill_value: Any = None,
) -> Any:  # fmt: skip
    """Return the distinct elements that are in both arrays, sorted, and optionally their first indices.

    ar1, ar2: any shapes, flattened; assume_unique: ignored; return_indices: return (values, indices in ar1, indices in
    ar2); size, fill_value: as in `union1d`; indices are padded with the sizes of the arrays. Returns [n], in the
    promoted dtype; indices are int64 [n].

    >>> tnp.intersect1d([3, 1, 2], [2, 3, 5])
    Array([2, 3], i64)
    >>> tnp.intersect1d([3, 1, 2], [2, 3, 5], return_indices=True)[1:]
    (Array([2, 0], i64), Array([0, 1], i64))
    """
    del assume_unique
    x, y = unified("intersect1d", [ravel(array_of("intersect1d", a)) for a in (ar1, ar2)])
    found, in_x = _selected(x, _isin(x, y), size, fill_value)
    if not return_indices:
        return found
    if not y.shape[0]:
        return found, in_x, zeros(in_x.shape, in_x.dtype)
    order = argsort(y)
    in_y = order[searchsorted(y[order], found).clip(0, y.shape[0] - 1)]
    return found, in_x, where(in_x < x.shape[0], in_y, y.shape[0])


def setdiff1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """Return the distinct elements of the first array that are not in the second, sorted.

    ar1, ar2: any shapes, flattened; assume_unique: keep the order of ar1; size, fill_value: as in `union1d`. Returns
    [n], in ar1's dtype.

    >>> tnp.setdiff1d([3, 1, 2], [2])
    Array([1, 3], i64)
    """
    x = ravel(array_of("setdiff1d", ar1))
    absent = _isin(x, ar2, invert=True)
    if assume_unique and size is None:
        return x[nonzero(absent)]
    return _selected(x, absent, size, fill_value)[0]


def setxor1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """Return the distinct elements that are in exactly one array, sorted. NaN, which equals nothing, is kept from each.

    ar1, ar2: any shapes, flattened; assume_unique: ignored; size, fill_value: as in `union1d`. Returns [n], in the
    promoted dtype.

    >>> tnp.setxor1d([3, 1, 2], [2, 5])
    Array([1, 3, 5], i64)
    """
    del assume_unique
    x, y = unified("setxor1d", [ravel(array_of("setxor1d", a)) for a in (ar1, ar2)])
    both, alone = _alone(x, y)
    return _selected(both, alone, size, fill_value, joint=x.shape[0])[0]


@partial(cached, named=False)
def _alone(x: Array, y: Array) -> tuple[Array, Array]:
    """Return both vectors concatenated, and a mask of the elements that are in one of them only."""
    return concatenate([x, y]), concatenate([isin(x, y, invert=True), isin(y, x, invert=True)])


def _selected(
    x: Array, wanted: Array, size: int | None, fill_value: Any, *, joint: int | None = None
) -> tuple[Array, Array]:
    """Return the distinct wanted elements of a vector, sorted, and their first indices; padded to `size`.

    joint: the index at which a second vector begins; its NaN is distinct from the first's.
    """
    n = x.shape[0]
    if not n:
        filled = cast(asarray(0 if fill_value is None else fill_value), x.dtype)
        return full(size or 0, filled), full(size or 0, 0)
    ordered, order, chosen = _ordered(x, wanted, joint)
    (indices,) = nonzero(chosen, size=size, fill_value=n)
    if size is None:
        return _at(ordered, order, indices)
    inside = indices < n
    at = where(inside, indices, 0)
    values, index = ordered[at], where(inside, order[at], n)
    if size:
        least = where(inside[0], values[0], ordered[0])
        values = where(inside, values, least if fill_value is None else cast(asarray(fill_value), x.dtype))
    return values, index


@partial(cached, named=False)
def _ordered(x: Array, wanted: Array, joint: int | None) -> tuple[Array, Array, Array]:
    """Return a vector sorted, the order that sorts it, and a mask of the elements that are distinct and wanted."""
    order = argsort(x)
    ordered = x[order]
    distinct = distinct_from_before(ordered)
    if joint is not None:
        distinct = distinct | (isnan(ordered) & distinct_from_before(order >= joint))
    return ordered, order, distinct & wanted[order]


@partial(cached, named=False)
def _at(ordered: Array, order: Array, indices: Array) -> tuple[Array, Array]:
    return ordered[indices], order[indices]
