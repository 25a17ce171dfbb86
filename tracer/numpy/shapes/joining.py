"""Joining and splitting of arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.numpy.core.conversion import array_of, cast, dtype_of_argument, unified
from tracer.numpy.shapes.manipulation import atleast_1d, atleast_2d, atleast_3d, expand_dims, moveaxis, ravel, transpose
from tracer.primitives.arrays import slice_pad_concatenate
from tracer.primitives.base.broadcasting import axis_of
from tracer.primitives.base.shapes import reshape
from tracer.runtime.values.fresh_handles import makes_new
from tracer.trace.array import Array
from tracer.trace.integers import integer, integers, repetitions
from tracer.trace.source import here


def _arrays(name: str, arrays: Any) -> list[Array]:
    if isinstance(arrays, Array | np.ndarray):
        x = array_of(name, arrays)
        if x.ndim == 0:
            raise ShapeError(message(f"{name}{here()} takes a sequence of arrays", f"got {x.type}"))
        return [reshape(part, x.shape[1:]) for part in slice_pad_concatenate.split(x, (1,) * x.shape[0])]
    if not isinstance(arrays, Iterable):
        raise ArgumentError(
            message(
                f"{name}{here()} takes a sequence of arrays",
                f"got {type(arrays).__name__}",
                help=f"put them in a list, as in {name}([x, y])",
            )
        )
    return [array_of(name, x) for x in arrays]


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """Join arrays along an existing axis; None flattens them first.

    arrays: equal in all sizes except along `axis`, by default the first; dtype: of the result, by default the promoted
    dtype. Returns [..., sum of the sizes, ...]. Raises ShapeError if other axes differ in size.

    >>> tnp.concatenate([tnp.asarray([1, 2]), [3.0]])
    Array([1., 2., 3.], f64)
    """
    xs = _arrays("concatenate", arrays)
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    if not xs:
        raise ArgumentError(message(f"concatenate{here()} takes at least one array"))
    xs = unified("concatenate", xs) if dtype is None else [cast(x, dtype_of_argument("concatenate", dtype)) for x in xs]
    if any(x.ndim == 0 for x in xs):
        raise ShapeError(
            message(
                f"concatenate{here()}: an array without axes cannot be joined",
                f"got {', '.join(str(x.type) for x in xs)}",
                help="the arrays go together in a list, concatenate([a, b]); stack joins along a new axis",
            )
        )
    return slice_pad_concatenate.concatenate(xs, axis)


concat = concatenate


def stack(arrays: Any, axis: int = 0, dtype: Any = None) -> Array:
    """Join arrays of one shape along a new axis.

    arrays: of shape [*s]; axis: position of the new axis; dtype: of the result, by default the promoted dtype. Returns
    [*s] with n at `axis`. Raises ShapeError for several shapes.

    >>> tnp.stack([tnp.asarray([1, 2]), tnp.asarray([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], i64)
    """
    xs = _arrays("stack", arrays)
    if not xs:
        raise ArgumentError(message(f"stack{here()} takes at least one array"))
    if any(x.shape != xs[0].shape for x in xs):
        shown = ", ".join(str(x.type) for x in xs)
        raise ShapeError(message(f"stack{here()}: the arrays must have equal shapes", f"got {shown}"))
    place = axis_of("stack", axis, xs[0].ndim + 1)
    return concatenate([expand_dims(x, place) for x in xs], place, dtype)


def vstack(tup: Any, dtype: Any = None) -> Array:
    """Join arrays along axis 0; vectors are rows.

    tup: arrays that are equal except along axis 0, or vectors of one size; dtype: by default the promoted dtype.
    Returns shape [sum, ...]. Raises ShapeError for other shapes.

    >>> tnp.vstack([tnp.asarray([1, 2]), tnp.asarray([3, 4])])
    Array([[1, 2],
           [3, 4]], i64)
    """
    return concatenate([atleast_2d(x) for x in _arrays("vstack", tup)], 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Array:
    """Join arrays along axis 1, vectors along axis 0.

    tup: arrays that are equal except along that axis; dtype: by default the promoted dtype. Returns shape [n, sum, ...]
    or [sum]. Raises ShapeError for other shapes.

    >>> tnp.hstack([tnp.asarray([1, 2]), tnp.asarray([3])])
    Array([1, 2, 3], i64)
    """
    xs = [atleast_1d(x) for x in _arrays("hstack", tup)]
    return concatenate(xs, 0 if xs and xs[0].ndim == 1 else 1, dtype)


def dstack(tup: Any, dtype: Any = None) -> Array:
    """Join arrays along axis 2, after `atleast_3d`.

    tup: arrays that are equal except along axis 2, [m, n, k]; [n] becomes [1, n, 1]. dtype: by default the promoted
    dtype. Returns shape [m, n, sum]. Raises ShapeError for other shapes.

    >>> tnp.dstack([tnp.asarray([1, 2]), tnp.asarray([3, 4])]).shape
    (1, 2, 2)
    """
    return concatenate([atleast_3d(x) for x in _arrays("dstack", tup)], 2, dtype)


def column_stack(tup: Any) -> Array:
    """Join vectors as the columns of a matrix, and matrices side by side.

    tup: vectors [n] and matrices [n, k]. Returns [n, sum of the columns], in the promoted dtype.

    >>> tnp.column_stack([tnp.asarray([1, 2]), tnp.asarray([3, 4])])
    Array([[1, 3],
           [2, 4]], i64)
    """
    xs = _arrays("column_stack", tup)
    return concatenate([transpose(atleast_2d(x)) if x.ndim < 2 else x for x in xs], 1)


@makes_new
def block(arrays: Any) -> Array:
    """Assemble an array from nested lists of blocks; the innermost lists run along the last axis.

    arrays: lists of arrays, nested to one depth; axes of size 1 are prepended to blocks with fewer. Returns the shape
    that they fill, in the promoted dtype. Raises ShapeError for blocks that do not fit.

    >>> tnp.block([[tnp.ones((1, 1)), tnp.zeros((1, 1))], [tnp.zeros((1, 2))]])
    Array([[1., 0.],
           [0., 0.]], f64)
    """
    depth = _depth(arrays)
    rank = max(depth, _rank(arrays))
    return _block(arrays, depth, rank)


def _depth(x: Any) -> int:
    return 1 + max(map(_depth, x)) if isinstance(x, list) and x else 0


def _rank(x: Any) -> int:
    if isinstance(x, list) and not x:
        raise ShapeError(message(f"block{here()}: an empty list of blocks has no shape", help="remove it"))
    return max(map(_rank, x)) if isinstance(x, list) else array_of("block", x).ndim


def _block(x: Any, depth: int, rank: int) -> Array:
    if not isinstance(x, list):
        array = array_of("block", x)
        return reshape(array, (1,) * (rank - array.ndim) + array.shape)
    return concatenate([_block(e, depth - 1, rank) for e in x], -depth)


@makes_new
def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """Append values to an array along an axis; without one, both are flattened.

    arr: [*s]; values: [*t], equal to s except along `axis`, or any shape without one. Returns the promoted dtype.

    >>> tnp.append(tnp.asarray([1, 2]), 3)
    Array([1, 2, 3], i64)
    """
    return concatenate([array_of("append", arr), array_of("append", values)], axis)


# Splitting


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split an array into equal parts, or before each of the given indices.

    ary: [*s]; indices_or_sections: the number of parts, or the indices at which to split; axis: by default the first.
    Returns a list. Raises ShapeError if the parts would not be equal.

    >>> tnp.split(tnp.arange(4), 2)
    [Array([0, 1], i64), Array([2, 3], i64)]
    """
    return _split("split", ary, indices_or_sections, axis, equal=True)


@makes_new
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split as `split` does, where the first parts may be longer by one.

    ary: [*s]; indices_or_sections: the number of parts, or the indices at which to split; axis: by default the first.
    Returns a list of arrays in ary's dtype, [*s] except along the axis.

    >>> tnp.array_split(tnp.arange(3), 2)
    [Array([0, 1], i64), Array([2], i64)]
    """
    return _split("array_split", ary, indices_or_sections, axis, equal=False)


@makes_new
def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Split along axis 1, or along the only axis, as `split` does.

    ary: [m, n, *s], or [n]; indices_or_sections: the number of parts, or the indices at which to split. Returns a list.

    >>> tnp.hsplit(tnp.arange(4), 2)
    [Array([0, 1], i64), Array([2, 3], i64)]
    """
    return split(ary, indices_or_sections, 0 if array_of("hsplit", ary).ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Split along axis 0, as `split` does.

    ary: [m, n, *s]; indices_or_sections: the number of parts, or the indices at which to split. Returns a list.

    >>> [x.shape for x in tnp.vsplit(tnp.zeros((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    x = array_of("vsplit", ary)
    if x.ndim < 2:
        raise ShapeError(
            message(f"vsplit{here()} takes at least two axes", f"got {x.type}", help="split, along axis 0")
        )
    return split(x, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Split along axis 2, as `split` does.

    ary: [m, n, k, *s]; indices_or_sections: the number of parts, or the indices at which to split. Returns a list.

    >>> [x.shape for x in tnp.dsplit(tnp.zeros((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return split(ary, indices_or_sections, 2)


def _split(name: str, ary: Any, parts: Any, axis: int, *, equal: bool) -> list[Array]:
    x = array_of(name, ary)
    along = axis_of(name, axis, x.ndim)
    n = x.shape[along]
    if isinstance(parts, list | tuple | np.ndarray | Array) and not (hasattr(parts, "ndim") and parts.ndim == 0):
        ends = [min(max(i + n if i < 0 else i, 0), n) for i in integers("split", "indices_or_sections", parts)] + [n]
        starts = [0, *ends[:-1]]
        return [
            slice_pad_concatenate.slice_in_dim(x, a, max(a, b), axis=along) for a, b in zip(starts, ends, strict=True)
        ]
    count = integer("split", "indices_or_sections", parts)
    if count < 1 or (equal and n % count):
        raise ShapeError(
            message(
                f"{name}{here()}: axis {along} of size {n} does not split into {count} equal parts",
                help="array_split makes unequal parts",
            )
        )
    repetitions(name, "indices_or_sections", count, n)
    short, longer = divmod(n, count)
    return slice_pad_concatenate.split(x, [short + (i < longer) for i in range(count)], along)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the slices along an axis, without that axis.

    x: [n, *s] for axis 0; axis: by default the first. Returns n arrays [*s], in x's dtype. Raises AxisError for an axis
    out of range.

    >>> tnp.unstack(tnp.asarray([1, 2]))
    (Array(1, i64), Array(2, i64))
    """
    return tuple(_arrays("unstack", moveaxis(array_of("unstack", x), axis, 0)))
