"""Sorting and searching. NaN comes last; sorts are stable."""

from __future__ import annotations

from typing import Any

from tracer.errors import ArgumentError, OutOfBoundsError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of, comparable
from tracer.numpy.shapes.manipulation import ravel
from tracer.primitives.arrays import sorting as primitives
from tracer.primitives.arrays.indexing.gather import take_along
from tracer.primitives.base.broadcasting import axis_of, full
from tracer.primitives.base.shapes import broadcasted_iota, reshape, rev
from tracer.primitives.elementwise import arithmetic, bits, comparison
from tracer.primitives.elementwise import complex as parts
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here


def sort(
    a: Any, axis: int | None = -1, kind: None = None, order: None = None, *, stable: bool = True,
    descending: bool = False,
) -> Array:  # fmt: skip
    """Return a new array with the elements in ascending order along an axis; None flattens first.

    a: [*s]; axis: by default the last; kind, order, stable: ignored, every sort is stable; descending: the largest
    first. Returns [*s], in a's dtype, NaN last.

    >>> tnp.sort(tnp.asarray([3.0, tnp.nan, 1.0]))
    Array([ 1.,  3., nan], f64)
    """
    x, along = _along("sort", a, axis, kind, order)
    if descending:
        return take_along(x, _order(x, along, descending=True), along)
    return primitives.sort(x, along)


def argsort(
    a: Any, axis: int | None = -1, kind: None = None, order: None = None, *, stable: bool = True,
    descending: bool = False,
) -> Array:  # fmt: skip
    """Return the indices that sort an array [*s] along an axis, by default the last: int64 [*s].

    a: [*s]; axis: None to flatten; kind, order, stable: ignored; descending: the largest first. Equal elements keep
    their order, NaN comes last; a scalar gives [0].

    >>> tnp.argsort(tnp.asarray([3.0, 1.0, 2.0]))
    Array([1, 2, 0], i64)
    """
    values = array_of("argsort", a)
    at = axis if values.ndim or axis not in (-1, 0) else None
    return _order(*_along("argsort", values, at, kind, order), descending=descending)


def _along(name: str, a: Any, axis: int | None, kind: object, order: object) -> tuple[Array, int]:
    del kind  # every sort is stable
    if order is not None:
        raise ArgumentError(message(f"{name}{here()}: arrays have no fields to order by", f"got order={order!r}"))
    x = array_of(name, a)
    if axis is None:
        return ravel(x), 0
    return x, axis_of(name, axis, x.ndim)


def _order(x: Array, axis: int, *, descending: bool) -> Array:
    """Return the indices that sort along an axis. A stable descending sort is a reversed ascending sort."""
    indices = broadcasted_iota(dtypes.I64, x.shape, axis)
    if not descending:
        return primitives.sort((x, indices), axis)[1]
    return rev(primitives.sort((rev(x, (axis,)), rev(indices, (axis,))), axis)[1], (axis,))


def lexsort(keys: Any, axis: int = -1) -> Array:
    """Return the indices that sort by several keys, the last key being the primary one.

    keys: vectors [n], or arrays [*s] sorted along `axis`, the last by default. Returns int64 of that shape.

    >>> tnp.lexsort((tnp.asarray([1, 0, 1]), tnp.asarray([2, 2, 1])))
    Array([2, 1, 0], i64)
    """
    arrays = [array_of("lexsort", key) for key in keys]
    if not arrays or any(x.shape != arrays[0].shape for x in arrays):
        raise ShapeError(message(f"lexsort{here()} takes at least one key, all of equal shapes"))
    if arrays[0].ndim == 0:
        return full((), 0, dtypes.I64)
    along = axis_of("lexsort", axis, arrays[0].ndim)
    indices = broadcasted_iota(dtypes.I64, arrays[0].shape, along)
    return primitives.sort((*reversed(arrays), indices), along, num_keys=len(arrays))[-1]


def partition(a: Any, kth: Any, axis: int | None = -1) -> Array:
    """Return the elements along an axis with the k-th smallest at index k, smaller ones before it. Sorts fully.

    a: [*s]; kth: an integer, or several; axis: by default the last, None to flatten. Returns [*s], in a's dtype. Raises
    OutOfBoundsError for a kth beyond the axis.

    >>> tnp.partition(tnp.asarray([3, 1, 2]), 1)
    Array([1, 2, 3], i64)
    """
    _check_kth("partition", a, kth, axis)
    return sort(a, axis)


def argpartition(a: Any, kth: Any, axis: int | None = -1) -> Array:
    """Return the indices that `partition` an array. Sorts fully.

    a: [*s]; kth: an integer, or several; axis: None to flatten. Returns int64 [*s], or [n] without an axis. Raises
    OutOfBoundsError for a kth beyond the axis.

    >>> tnp.argpartition(tnp.asarray([3, 1, 2]), 1)
    Array([1, 2, 0], i64)
    """
    _check_kth("argpartition", a, kth, axis)
    return argsort(a, axis)


def _check_kth(name: str, a: Any, kth: Any, axis: int | None) -> None:
    x = array_of(name, a)
    n = x.size if axis is None else x.shape[axis_of(name, axis, x.ndim)]
    for k in kth if isinstance(kth, list | tuple) or getattr(kth, "ndim", None) else (kth,):
        if not -n <= integer(name, "kth", k) < n and x.size:
            raise OutOfBoundsError(message(f"{name}{here()}: kth={k} is out of range for {n} elements"))


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan") -> Array:
    """Return the indices at which values would be inserted into a sorted vector, as int64.

    a: [n], ascending; v: [*t]; side: "left" to insert before equal elements, "right" after them; sorter: [n] integers,
    a permutation that sorts a; method: ignored. Returns [*t]. Raises ShapeError for an a of other shapes, ArgumentError
    for another side.

    >>> tnp.searchsorted(tnp.asarray([1.0, 2.0, 2.0, 3.0]), 2.0)
    Array(1, i64)
    """
    del method
    if side not in ("left", "right"):
        raise ArgumentError(message(f'searchsorted{here()}: side is "left" or "right"', f"got {side!r}"))
    x, values = comparable("searchsorted", a, v)
    if x.ndim != 1:
        raise ShapeError(message(f"searchsorted{here()} searches a vector", f"got {x.type}"))
    if sorter is not None:
        x = take_along(x, array_of("searchsorted", sorter), 0)
    return _bisected(x, values, right=side == "right")


def _bisected(x: Array, values: Array, *, right: bool) -> Array:
    """Bisect: halve the interval [low, high) until it is empty, in as many steps as the size has bits."""
    n = x.shape[0]
    low = full(values.shape, 0, dtypes.I64)
    if n == 0:
        return low
    high = full(values.shape, n, dtypes.I64)
    flat = (values.size,)
    for _ in range(n.bit_length()):
        middle = bits.shift_right_logical(arithmetic.add(low, high), 1)
        probe = reshape(take_along(x, reshape(arithmetic.min(middle, n - 1), flat), 0), values.shape)
        before = _before(values, probe) if right else bits.not_(_before(probe, values))  # insert at or before it
        searching = comparison.lt(low, high)
        low, high = (
            comparison.select(bits.and_(searching, bits.not_(before)), arithmetic.add(middle, 1), low),
            comparison.select(bits.and_(searching, before), middle, high),
        )
    return low


def _before(a: Array, b: Array) -> Array:
    """Return a < b with NaN as the maximum. Complex numbers are ordered as by `sort`, numbers with NaN parts last."""
    if not dtypes.is_inexact(a.dtype):
        return _less(a, b)
    if not dtypes.is_complex(a.dtype):
        return bits.or_(comparison.lt(a, b), bits.and_(comparison.ne(b, b), comparison.eq(a, a)))
    (x, y), (u, v) = (parts.real(a), parts.imag(a)), (parts.real(b), parts.imag(b))
    found = _less(y, v)
    for p, q in ((x, u), (comparison.ne(y, y), comparison.ne(v, v)), (comparison.ne(x, x), comparison.ne(u, u))):
        found = bits.or_(_less(p, q), bits.and_(bits.not_(_less(q, p)), found))
    return found


def _less(a: Array, b: Array) -> Array:
    return bits.and_(bits.not_(a), b) if a.dtype == dtypes.BOOL else comparison.lt(a, b)


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Array:
    """Return whether each element is one of the test elements, as bool.

    element: [*s]; test_elements: any shape; invert: return whether it is none of them; assume_unique: ignored. Returns
    bool [*s].

    >>> tnp.isin(tnp.asarray([1, 2, 3]), [2, 5])
    Array([False,  True, False], bool)
    """
    del assume_unique
    x, tests = comparable("isin", element, test_elements)
    tests = ravel(tests)
    if not tests.size:
        found = full(x.shape, False, dtypes.BOOL)
    else:
        ordered = sort(tests)
        place = arithmetic.min(searchsorted(ordered, x), tests.shape[0] - 1)
        near = reshape(take_along(ordered, reshape(place, (x.size,)), 0), x.shape)
        found = comparison.eq(near, x)
    return bits.not_(found) if invert else found
