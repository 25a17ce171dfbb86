"""Shape manipulation: reshaping, reordering, adding and removing axes, broadcasting and flipping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import shape as shapes
from tracer.numpy.core.conversion import array_of, shape_argument, sizes_argument
from tracer.numpy.core.conversion import broadcast as _broadcast
from tracer.primitives.base import shapes as primitives
from tracer.primitives.base.broadcasting import axes_of, axis_of
from tracer.runtime.values.fresh_handles import makes_new
from tracer.trace.array import Array, concrete_value
from tracer.trace.integers import integer
from tracer.trace.source import here


def shape(a: Any) -> tuple[int, ...]:
    """Return the sizes of the axes.

    a: an array, a number, or nested lists. Returns the shape, a tuple of integers, concrete for traced arrays too.

    >>> tnp.shape([[1, 2, 3]])
    (1, 3)
    """
    return a.shape if isinstance(a, Array) else array_of("shape", a).shape


def ndim(a: Any) -> int:
    """Return the number of axes.

    a: an array of any shape, a number, or nested lists. Returns an integer.

    >>> tnp.ndim([[1, 2, 3]])
    2
    """
    return len(shape(a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """Return the number of elements, in all or along axes.

    a: [*s]; axis: one or several. Returns a Python integer.

    >>> tnp.size([[1, 2, 3]], 1)
    3
    """
    sizes = shape(a)
    if axis is None:
        return shapes.size(sizes)
    along = shapes.axes_tuple(axis, len(sizes), f"size{here()}")
    return shapes.size([sizes[i] for i in along])


def reshape(a: Any, shape: Any = None, order: str = "C", *, copy: bool | None = None) -> Array:
    """Return the elements in another shape of the same size. One size may be -1 and is inferred.

    a: [*s]; shape: a size, or several; copy: ignored, arrays are immutable. order: "C" for row-major order, "F" for
    column-major. Returns that shape, in a's dtype. Raises ShapeError where the sizes do not fit.

    >>> tnp.reshape(tnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], i64)
    """
    del copy
    x = array_of("reshape", a)
    sizes = _inferred(x, shape)
    if order == "F":
        backwards = primitives.reshape(transpose(x), tuple(reversed(sizes)))
        return transpose(backwards)
    if order not in ("C", "A", None):
        raise ArgumentError(message(f'reshape{here()}: the order is "C" or "F"', f"got {order!r}"))
    return primitives.reshape(x, sizes)


def _inferred(x: Array, shape: Any) -> tuple[int, ...]:
    given = sizes_argument("reshape", shape)
    unknown = [i for i, n in enumerate(given) if n == -1]
    known = shape_argument("reshape", [n for n in given if n != -1])
    if not unknown:
        return known
    rest = shapes.size(known)
    if len(unknown) > 1 or rest == 0 or x.size % rest:
        raise ShapeError(
            message(
                f"reshape{here()}: only one size may be -1, and the others must determine it",
                f"got {x.type}, {x.size} elements, to {given}",
                help="give sizes whose product divides the number of elements, and one -1",
            )
        )
    return (*known[: unknown[0]], x.size // rest, *known[unknown[0] :])


def ravel(a: Any, order: str = "C") -> Array:
    """Return all elements along one axis.

    a: [*s]; order: as in `reshape`. Returns [n], in a's dtype.

    >>> tnp.ravel(tnp.asarray([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], i64)
    """
    order = "C" if order in ("A", "K") else order  # the order in memory is C
    return reshape(a, (-1,), order) if size(a) else reshape(a, (0,))


def transpose(a: Any, axes: Sequence[int] | None = None) -> Array:
    """Return the array with its axes permuted, by default reversed.

    a: [*s]; axes: a permutation of its axes. Returns [s[axes[0]], s[axes[1]], ...], in a's dtype. Raises AxisError for
    axes out of range or repeated, ShapeError for too few.

    >>> tnp.transpose(tnp.zeros((2, 3))).shape
    (3, 2)
    """
    x = array_of("transpose", a)
    if axes is None:
        order: Sequence[int] = range(x.ndim)[::-1]
    else:
        order = axes_of("transpose", _several(axes), x.ndim)
        if len(order) != x.ndim:
            raise ShapeError(message(f"transpose{here()}: name every axis once", f"got axes={axes} for {x.type}"))
    return primitives.transpose(x, order)


permute_dims = transpose


def matrix_transpose(x: Any, /) -> Array:
    """Return the array with its last two axes swapped.

    x: [*s, m, n]. Returns [*s, n, m], in x's dtype. Raises ShapeError for fewer than two axes.

    >>> tnp.matrix_transpose(tnp.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    value = array_of("matrix_transpose", x)
    if value.ndim < 2:
        raise ShapeError(message(f"matrix_transpose{here()} takes matrices", f"got {value.type}"))
    return swapaxes(value, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """Return the array with two axes exchanged.

    a: [*s]; axis1, axis2: the two axes. Returns these sizes swapped, in a's dtype. Raises AxisError for an axis out of
    range.

    >>> tnp.swapaxes(tnp.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = array_of("swapaxes", a)
    order = list(range(x.ndim))
    first, second = axis_of("swapaxes", axis1, x.ndim), axis_of("swapaxes", axis2, x.ndim)
    order[first], order[second] = second, first
    return primitives.transpose(x, order)


def moveaxis(a: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Move axes to other positions; the remaining axes keep their order.

    a: [*s]; source, destination: axes, equally many. Returns a's dtype. Raises AxisError for axes out of range or
    repeated.

    >>> tnp.moveaxis(tnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = array_of("moveaxis", a)
    sources = axes_of("moveaxis", _several(source), x.ndim)
    targets = axes_of("moveaxis", _several(destination), x.ndim)
    if len(sources) != len(targets):
        raise ShapeError(
            message(f"moveaxis{here()}: as many destinations as sources", f"got {source} to {destination}")
        )
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(place, axis)
    return primitives.transpose(x, order)


def _several(axis: Any) -> Sequence[int]:
    if isinstance(axis, np.ndarray | Array) and axis.ndim:
        known = concrete_value(axis) if isinstance(axis, Array) else axis
        return tuple(axis if known is None else known)
    return tuple(axis) if isinstance(axis, Sequence) else (axis,)


@makes_new
def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """Move one axis before another; `moveaxis` is easier to read.

    a: [*s]; axis: the axis to move; start: the axis before which it goes, or the number of axes for the end. Returns
    a's dtype. Raises AxisError for an axis out of range.

    >>> tnp.rollaxis(tnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = array_of("rollaxis", a)
    source = axis_of("rollaxis", axis, x.ndim)
    start = integer("rollaxis", "start", start)
    place = x.ndim if start == x.ndim else axis_of("rollaxis", start, x.ndim)
    return moveaxis(x, source, place - (source < place))


def squeeze(a: Any, axis: int | Sequence[int] | None = None) -> Array:
    """Remove axes of size 1: all of them, or the given ones.

    a: [*s]; axis: one or several, by default all of size 1. Returns [*s minus axes], in a's dtype. Raises ShapeError
    for another size.

    >>> tnp.squeeze(tnp.zeros((1, 3, 1)), 0).shape
    (3, 1)
    """
    x = array_of("squeeze", a)
    axes = [i for i, n in enumerate(x.shape) if n == 1] if axis is None else _several(axis)
    return primitives.squeeze(x, axes)


def expand_dims(a: Any, axis: int | Sequence[int]) -> Array:
    """Insert axes of size 1 at the given positions of the result.

    a: [*s]; axis: one or several, counted in the result. Returns a's dtype. Raises AxisError for axes out of range or
    repeated.

    >>> tnp.expand_dims(tnp.zeros(3), (0, 2)).shape
    (1, 3, 1)
    """
    x = array_of("expand_dims", a)
    axes = _several(axis)
    return primitives.expand_dims(x, axes) if axes else x


def broadcast_to(array: Any, shape: Any) -> Array:
    """Return the array repeated to a shape to which it broadcasts.

    array: [*s]; shape: a size, or several. Returns that shape, in the array's dtype. Raises ShapeError if [*s] does not
    broadcast to it.

    >>> tnp.broadcast_to(tnp.asarray([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], i64)
    """
    x, sizes = array_of("broadcast_to", array), shape_argument("broadcast_to", shape)
    pairs = zip(reversed(x.shape), reversed(sizes), strict=False)
    if x.ndim > len(sizes) or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(
            message(
                f"broadcast_to{here()}: each size must be 1 or equal to the shape's",
                f"got {x.type} for {shapes.show(sizes)}",
                help="expand_dims inserts axes",
            )
        )
    return _broadcast(x, sizes)


@makes_new
def broadcast_arrays(*args: Any) -> tuple[Array, ...]:
    """Return the arrays, each repeated to the shape to which all broadcast.

    args: arrays whose shapes broadcast to [*s]. Returns as many of shape [*s], in their own dtypes. Raises ShapeError
    if they do not broadcast.

    >>> [x.shape for x in tnp.broadcast_arrays(tnp.zeros((2, 1)), tnp.zeros(3))]
    [(2, 3), (2, 3)]
    """
    arrays = [array_of("broadcast_arrays", x) for x in args]
    if not arrays:
        return ()
    sizes = shapes.broadcast(*(x.shape for x in arrays), operation=f"broadcast_arrays{here()}")
    return tuple(_broadcast(x, sizes) for x in arrays)


def broadcast_shapes(*shapes_: Any) -> tuple[int, ...]:
    """Return the shape to which shapes broadcast.

    shapes_: tuples of integers, or integers. Returns a tuple. Raises ShapeError if they do not broadcast.

    >>> tnp.broadcast_shapes((2, 1), 3)
    (2, 3)
    """
    given = [shape_argument("broadcast_shapes", s) for s in shapes_]
    return shapes.broadcast(*given, operation=f"broadcast_shapes{here()}") if given else ()


def flip(m: Any, axis: int | Sequence[int] | None = None) -> Array:
    """Return the elements in reverse order along the given axes, by default all.

    m: [*s]; axis: one or several, by default all. Returns [*s], in m's dtype.

    >>> tnp.flip(tnp.asarray([1, 2, 3]))
    Array([3, 2, 1], i64)
    """
    x = array_of("flip", m)
    return primitives.rev(x, range(x.ndim) if axis is None else _several(axis))


def fliplr(m: Any) -> Array:
    """Return the elements in reverse order along axis 1.

    m: [r, c, *s]. Returns its shape and dtype. Raises AxisError for vectors.

    >>> tnp.fliplr(tnp.asarray([[1, 2]]))
    Array([[2, 1]], i64)
    """
    return flip(m, 1)


def flipud(m: Any) -> Array:
    """Return the elements in reverse order along axis 0.

    m: [r, *s]. Returns its shape and dtype.

    >>> tnp.flipud(tnp.asarray([1, 2]))
    Array([2, 1], i64)
    """
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate by k right angles in the plane of two axes, from the first towards the second.

    m: [*s] of at least two axes; k: the number of turns, negative to turn back; axes: by default the first two. Returns
    m's dtype, the two sizes swapped for odd k. Raises AxisError for an axis out of range.

    >>> tnp.rot90(tnp.asarray([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], i64)
    """
    x = array_of("rot90", m)
    first, second = axes_of("rot90", axes, x.ndim)
    match integer("rot90", "k", k) % 4:
        case 0:
            return x
        case 1:
            return swapaxes(flip(x, second), first, second)
        case 2:
            return flip(x, (first, second))
        case _:
            return flip(swapaxes(x, first, second), second)


def atleast_1d(*arys: Any) -> Any:
    """Return arrays with at least one axis; a list for several arrays.

    arys: any shapes and dtypes. Returns [*s] for each, and [1] for [].

    >>> tnp.atleast_1d(1.0).shape
    (1,)
    """
    return _at_least("atleast_1d", arys, lambda x: primitives.reshape(x, (1,)) if x.ndim == 0 else x)


def atleast_2d(*arys: Any) -> Any:
    """Return arrays with at least two axes, new ones in front; a list for several arrays.

    arys: any shapes and dtypes. Returns [*s] for each, [1, n] for [n] and [1, 1] for [].

    >>> tnp.atleast_2d(tnp.zeros(3)).shape
    (1, 3)
    """

    def grown(x: Array) -> Array:
        return primitives.reshape(x, (1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x

    return _at_least("atleast_2d", arys, grown)


@makes_new
def atleast_3d(*arys: Any) -> Any:
    """Return arrays with at least three axes: [n] becomes [1, n, 1], [m, n] becomes [m, n, 1].

    arys: any shapes and dtypes. Returns [*s] for each of three axes and more; a list for several arrays.

    >>> tnp.atleast_3d(tnp.zeros(3)).shape
    (1, 3, 1)
    """

    def grown(x: Array) -> Array:
        sizes = {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}.get(x.ndim)
        return x if sizes is None else primitives.reshape(x, sizes)

    return _at_least("atleast_3d", arys, grown)


def _at_least(name: str, arrays: tuple[Any, ...], grown: Any) -> Any:
    results = [grown(array_of(name, x)) for x in arrays]
    return results[0] if len(results) == 1 else results
