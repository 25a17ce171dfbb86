"""Insertion, deletion, resizing and piecewise definition, and functions applied to coordinates or axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, TracerArrayError, message
from tracer.ir import dtypes, shape
from tracer.numpy.core.conversion import array_of, broadcast, cast, shape_argument, unified
from tracer.numpy.core.dtypes import astype
from tracer.numpy.core.promotion import fitted, promoted_inexact
from tracer.numpy.elementwise.logic import truth
from tracer.numpy.reduce.cumulative import cumsum
from tracer.numpy.reduce.sorting import argsort, searchsorted, sort
from tracer.numpy.shapes.creation import asarray, full, zeros, zeros_like
from tracer.numpy.shapes.index_parts import checked_places, known_places
from tracer.numpy.shapes.joining import concatenate
from tracer.numpy.shapes.manipulation import expand_dims, moveaxis, ravel, reshape
from tracer.numpy.shapes.matrices import indices
from tracer.numpy.shapes.take import take
from tracer.numpy.shapes.where import where
from tracer.primitives.arrays.indexing.checked_indices import checked_indices
from tracer.primitives.arrays.indexing.dimension_numbers import Bound
from tracer.primitives.base.broadcasting import axis_of
from tracer.runtime.values.fresh_handles import makes_new
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here


@makes_new
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Return a copy of arr [*s] with values inserted before indices along an axis, by default of the flattened array.

    obj: an integer, a slice, integers, or a concrete mask; values: broadcast to the inserted slices, one for each
    index; several may precede one index; axis: None to flatten. Returns arr's dtype. Raises OutOfBoundsError, from
    compiled code too.

    >>> tnp.insert([1, 2, 3], 1, 9)
    Array([1, 9, 2, 3], i64)
    """
    x = array_of("insert", arr)
    if axis is None:
        x, axis = ravel(x), 0
    along = axis_of("insert", axis, x.ndim)
    n = x.shape[along]
    added = astype(fitted("insert", values, x.dtype) if type(values) is int else array_of("insert", values), x.dtype)
    added = reshape(added, (1,) * (x.ndim - added.ndim) + added.shape[_surplus(added.shape, x.ndim) :])
    if added.ndim > x.ndim:
        raise ShapeError(
            message(
                f"insert{here()}: the values must broadcast to the inserted slices",
                f"got {added.type} for {x.type}",
                help="values.ravel(), or axis=",
            )
        )
    if np.ndim(obj) == 0 and not isinstance(obj, slice):
        added = moveaxis(added, 0, along)
    traced = traced_indices("insert", obj, along, n, last=n)
    gaps = _known_gaps(obj, along, n) if traced is None else traced
    count = added.shape[along] if gaps.size == 1 and added.ndim == x.ndim else gaps.size
    added = broadcast(added, tuple(count if d == along else m for d, m in enumerate(x.shape)))
    source = _filled_up(np.broadcast_to(gaps, count), n) if traced is None else _sources(broadcast(traced, (count,)), n)
    return take(concatenate([x, added], along), source, along, mode=None if traced is None else "promise_in_bounds")


def _surplus(sizes: tuple[int, ...], rank: int) -> int:
    """Return the number of surplus leading axes of size 1, which assignments drop."""
    extra = max(len(sizes) - rank, 0)
    return extra if sizes[:extra] == (1,) * extra else 0


def _known_gaps(obj: Any, axis: int, n: int) -> np.ndarray[Any, Any]:
    """Return concrete insertion indices, counted from the front; n inserts at the end."""
    given = np.arange(n)[obj] if isinstance(obj, slice) else known_places("insert", obj)
    if given.dtype == np.bool_:
        given = np.nonzero(given)[0]
    checked_places(given[given != n], axis, n)
    return np.where(given < 0, given + n, given).reshape(-1).astype(np.int64)


def _filled_up(gaps: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """Return the sources of the result's elements: indices of n old elements, followed by the new ones."""
    order = np.argsort(gaps, kind="stable")
    target = gaps[order] + np.arange(len(gaps))
    kept = np.delete(np.arange(n + len(gaps)), target)
    source = np.empty(n + len(gaps), np.int64)
    source[kept], source[target] = np.arange(n), n + order
    return source


def _sources(gaps: Array, n: int) -> Array:
    """Return the sources of the result's elements as `_filled_up`, for traced indices."""
    order = argsort(gaps)
    target = gaps[order] + np.arange(gaps.size)
    source = full(n + gaps.size, -1).at[target].set(n + order, mode="promise_in_bounds")
    return where(source < 0, cumsum(source < 0) - 1, source)


@makes_new
def resize(a: Any, new_shape: Any) -> Array:
    """Return the elements in another shape, repeated from the start as needed; zeros if there are none.

    a: any shape; new_shape: a size, or several. Returns that shape, in a's dtype.

    >>> tnp.resize([1, 2, 3], (2, 2))
    Array([[1, 2],
           [3, 1]], i64)
    """
    x = ravel(array_of("resize", a))
    sizes = shape_argument("resize", new_shape)
    total = shape.size(sizes)
    if not x.shape[0]:
        return zeros(sizes, x.dtype)
    return reshape(take(x, np.arange(total) % x.shape[0]), sizes)


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """Apply to each element the function, or constant, of the last condition that holds, else the default.

    x: [*s]; condlist: bools [*s], or one; funclist: a function of arrays or a number for each condition, and optionally
    a default (else 0); args, kw: passed to the functions. All are computed everywhere. Returns x's shape and dtype.

    >>> x = tnp.asarray([-1.0, 2.0])
    >>> tnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, 10.0])
    Array([ 1., 10.], f64)
    """
    values = asarray(x)
    conditions = [condlist] if not isinstance(condlist, list | tuple) else list(condlist)
    conditions = [truth("piecewise", c) for c in conditions]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ArgumentError(
            message(
                f"piecewise{here()} takes a function for each condition, and optionally a default",
                f"got {len(conditions)} conditions and {len(funclist)} functions",
            )
        )
    results = [f(values, *args, **kw) if callable(f) else f for f in funclist]
    result = zeros_like(values) if len(results) == len(conditions) else _like(results.pop(), values)
    for condition, found in zip(conditions, results, strict=True):
        result = where(condition, _like(found, values), result)
    return result


def _like(found: Any, values: Array) -> Array:
    return broadcast(cast(array_of("piecewise", found), values.dtype), values.shape)


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Array:
    """Apply a reduction over one axis after another, keeping each with size 1.

    func: takes an array and an axis; a: [*s]; axes: one or several. Returns [*s], 1 along the axes, in func's dtype.

    >>> tnp.apply_over_axes(tnp.sum, tnp.ones((2, 3)), [0, 1])
    Array([[6.]], f64)
    """
    x = array_of("apply_over_axes", a)
    rank = x.ndim
    for axis in axes if isinstance(axes, list | tuple) else (axes,):
        along = axis_of("apply_over_axes", axis, rank)
        found = func(x, along)
        x = found if found.ndim == rank else expand_dims(found, along)
    return x


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """Apply a function to the coordinates of every element, each an array of the shape.

    function: of as many arrays of the shape as it has axes; dtype: of the coordinates; kwargs: passed to the function.
    Returns the function's result.

    >>> tnp.fromfunction(lambda i, j: i + j, (2, 2), dtype=int)
    Array([[0, 1],
           [1, 2]], i64)
    """
    return function(*indices(shape_argument("fromfunction", shape), dtype=dtype), **kwargs)


@makes_new
def sort_complex(a: Any) -> Array:
    """Return the elements as complex numbers, sorted by real, then by imaginary part.

    a: [*s], sorted along the last axis. Returns complex numbers [*s]: complex64 of 32 bits and fewer, else complex128.

    >>> tnp.sort_complex([3.0, 1.0])
    Array([1.+0.j, 3.+0.j], c128)
    """
    (given,) = promoted_inexact("sort_complex", a)
    x, _ = unified("sort_complex", [given, asarray(np.complex64(0))])
    return x.sort(0 if x.ndim == 1 else -1)


@makes_new
def delete(arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """Return a copy of arr [*s] without the slices at some indices of an axis, or without flat elements.

    obj: an integer, a slice, integers, or a mask; axis: None to flatten. Returns arr's dtype. A mask must be concrete,
    and so must several integers, unless `assume_unique_indices` promises that they are distinct. Raises
    OutOfBoundsError, from compiled code too.

    >>> tnp.delete(tnp.asarray([1, 2, 3]), 1)
    Array([1, 3], i64)
    """
    x = array_of("delete", arr)
    if axis is None:
        x, axis = ravel(x), 0
    along = axis_of("delete", axis, x.ndim)
    n = x.shape[along]
    traced = traced_indices("delete", obj, along, n, last=n - 1)
    if traced is not None:
        if traced.size > 1 and not assume_unique_indices:
            raise TracerArrayError(
                message(
                    f"delete{here()}: the size of the result depends on traced indices",
                    f"got {traced.type}",
                    help="assume_unique_indices=True, if they are distinct",
                )
            )
        kept = np.arange(max(n - traced.size, 0))
        skipped = searchsorted(sort(traced) - np.arange(traced.size), kept, side="right")
        return take(x, kept + skipped, along, mode="promise_in_bounds")
    removed = obj if isinstance(obj, slice) else known_places("delete", obj)
    if isinstance(removed, np.ndarray) and removed.dtype != np.bool_:
        removed = checked_places(removed, along, n)
    elif isinstance(removed, np.ndarray) and removed.shape != (n,):
        raise ShapeError(
            message(
                f"delete{here()}: a mask has one element for each slice along the axis",
                f"got {shape.show(removed.shape)} for {n} along axis {along}",
                help="False keeps a slice; an index is an integer",
            )
        )
    return take(x, np.delete(np.arange(n), removed), along)


def traced_indices(name: str, given: Any, axis: int, size: int, *, last: int) -> Array | None:
    """Return traced integers as a vector of checked nonnegative indices up to `last`; None for concrete ones."""
    if not isinstance(given, Array) or concrete_value(given) is not None:
        return None
    if not dtypes.is_integer(given.dtype):
        raise TracerArrayError(
            message(f"{name}{here()}: traced indices are integers", f"got {given.type}", help="masks must be concrete")
        )
    wide = ravel(given).astype(dtypes.I64)
    wide = where(wide < 0, wide + size, wide)
    return checked_indices(wide[:, None], array_of(name, True), (Bound(last, axis, size),))[:, 0]
