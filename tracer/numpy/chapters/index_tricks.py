"""Index tricks: grids and rows by slices, indices of triangles, conversion of flat indices and coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes, shape
from tracer.numpy.core.conversion import array_of, shape_argument
from tracer.numpy.shapes.creation import asarray, ones
from tracer.numpy.shapes.joining import concatenate, stack
from tracer.numpy.shapes.manipulation import atleast_1d, broadcast_arrays, reshape
from tracer.numpy.shapes.ranges import arange, linspace
from tracer.numpy.shapes.where import nonzero, where
from tracer.primitives.arrays.indexing.checked_indices import checked_indices
from tracer.primitives.arrays.indexing.dimension_numbers import Bound
from tracer.runtime.values.fresh_handles import makes_new
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here


@makes_new
def ix_(*args: Any) -> tuple[Array, ...]:
    """Return vectors reshaped to index a product: `x[ix_(rows, columns)]` is the submatrix of these rows and columns.

    args: k vectors [n], [m], ..., or masks, which are converted to indices. Returns k arrays [n, 1, ...], [1, m, ...],
    ..., in their dtypes. Raises ShapeError for other shapes.

    >>> [v.shape for v in tnp.ix_([0, 1], [2, 3, 4])]
    [(2, 1), (1, 3)]
    """
    vectors = [array_of("ix_", np.zeros(0, np.int64) if isinstance(a, list | tuple) and not a else a) for a in args]
    if any(v.ndim != 1 for v in vectors):
        raise ShapeError(message(f"ix_{here()} takes vectors", f"got {', '.join(str(v.type) for v in vectors)}"))
    vectors = [nonzero(v)[0] if v.dtype == dtypes.BOOL else v for v in vectors]
    return tuple(reshape(v, [-1 if d == i else 1 for d in range(len(vectors))]) for i, v in enumerate(vectors))


def _counted(part: slice) -> Array:
    """Return the values of start:stop:step; an imaginary step gives their number."""
    start = 0 if part.start is None else part.start
    if isinstance(part.step, complex):
        return linspace(start, part.stop, int(abs(part.step)))
    return arange(start, part.stop, 1 if part.step is None else part.step)


class _Grid:
    """Grids by slices: `mgrid[0:2, 0:3]` is one array of coordinates, `ogrid[0:2, 0:3]` arrays that broadcast to it.

    An imaginary step gives the number of values, the last of which is the end.

    >>> tnp.mgrid[0:2, 0:3].shape, [x.shape for x in tnp.ogrid[0:2, 0:3]]
    ((2, 2, 3), [(2, 1), (1, 3)])
    >>> tnp.mgrid[0:1:3j]
    Array([0. , 0.5, 1. ], f64)
    """

    def __init__(self, *, is_open: bool) -> None:
        self._is_open = is_open

    def __getitem__(self, item: Any) -> Any:
        parts = item if isinstance(item, tuple) else (item,)
        axes = [_counted(part) for part in parts]
        if not isinstance(item, tuple):
            return axes[0]
        columns = [reshape(x, [-1 if d == i else 1 for d in range(len(axes))]) for i, x in enumerate(axes)]
        return tuple(columns) if self._is_open else stack(broadcast_arrays(*columns))


class _Joined:
    """Joining by index: `r_[1:4, 0, x]` joins slices, numbers and arrays along the first axis, `c_` as columns.

    Text in front changes that. `r_["1,2,0", x]` gives the axis, the minimal number of axes, and the position of an
    array's own axes among them; "r" and "c" make a row or a column of a vector.

    >>> tnp.r_[1:4, 0, tnp.asarray([7, 8])]
    Array([1, 2, 3, 0, 7, 8], i64)
    >>> tnp.c_[tnp.asarray([1, 2]), tnp.asarray([3, 4])]
    Array([[1, 3],
           [2, 4]], i64)
    """

    def __init__(self, *, axis: int = 0, ndmin: int = 1, place: int = -1) -> None:
        self._directions = axis, ndmin, place

    def __getitem__(self, item: Any) -> Array:
        parts = item if isinstance(item, tuple) else (item,)
        axis, ndmin, place = self._directions
        directions = ""
        if parts and isinstance(parts[0], str):
            directions, parts = parts[0], parts[1:]
            if directions not in ("r", "c"):
                axis, ndmin, place = _directions(directions, self._directions)
        if any(isinstance(part, str) for part in parts):
            raise ArgumentError(message(f"r_{here()}: directions as text come first, and only once", f"got {item}"))
        joined = concatenate([_at_least(p, ndmin, place) for p in parts], axis)
        if joined.ndim == 1 and directions in ("r", "c"):
            return joined[None, :] if directions == "r" else joined[:, None]
        return joined


def _directions(text: str, usual: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the axis to join along, the minimal number of axes, and the position of own axes among them."""
    try:
        given = [int(number) for number in text.split(",")]
    except ValueError:
        given = []
    if not 0 < len(given) <= 3:
        raise ArgumentError(
            message(f"r_{here()}: directions are up to three integers, or r or c", f"got {text!r}", help="r_['0,2', x]")
        )
    axis, ndmin, place = (*given, *usual[len(given) :])
    return axis, ndmin, place


def _at_least(part: Any, ndmin: int, place: int) -> Array:
    """Return a slice, a number or an array with axes of size 1 added in front, or at `place`."""
    x = atleast_1d(_counted(part)) if isinstance(part, slice) else asarray(part)
    missing = max(ndmin, 1) - x.ndim
    if missing <= 0:
        return x
    if place < 0:
        place += missing + 1
    before = min(max(place, 0), missing)
    return reshape(x, (*(1,) * before, *x.shape, *(1,) * (missing - before)))


s_, index_exp = np.s_, np.index_exp
mgrid, ogrid = _Grid(is_open=False), _Grid(is_open=True)
r_, c_ = _Joined(), _Joined(axis=-1, ndmin=2, place=0)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the indices of the lower triangle of an n×m matrix, up to the k-th diagonal.

    n, m: rows and columns, m by default n; k: 0 for the main diagonal, positive above it. Returns two vectors int64
    [count].

    >>> tnp.tril_indices(2)
    (Array([0, 1, 1], i64), Array([0, 0, 1], i64))
    """
    return _pair(np.tril_indices(*_triangle("tril_indices", n, k, m)))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the indices of the upper triangle of an n×m matrix, from the k-th diagonal on.

    n, m: rows and columns, m by default n; k: 0 for the main diagonal, positive above it. Returns two vectors int64
    [count].

    >>> tnp.triu_indices(2)
    (Array([0, 0, 1], i64), Array([0, 1, 1], i64))
    """
    return _pair(np.triu_indices(*_triangle("triu_indices", n, k, m)))


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """Return `tril_indices` for the shape of a matrix.

    arr: [r, c]; k: 0 for the main diagonal, positive above it. Returns rows and columns, int64 [n].

    >>> tnp.tril_indices_from(tnp.zeros((2, 2)), -1)
    (Array([1], i64), Array([0], i64))
    """
    rows, columns = _matrix("tril_indices_from", arr).shape
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """Return `triu_indices` for the shape of a matrix.

    arr: [r, c]; k: 0 for the main diagonal, positive above it. Returns rows and columns, int64 [n].

    >>> tnp.triu_indices_from(tnp.zeros((2, 2)), 1)
    (Array([0], i64), Array([1], i64))
    """
    rows, columns = _matrix("triu_indices_from", arr).shape
    return triu_indices(rows, k, columns)


def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0, *, size: int | None = None) -> tuple[Array, ...]:
    """Return the indices of the elements of an n×n matrix that a function such as `triu` keeps.

    mask_func: called with a matrix [n, n] and `k`; size: as in `nonzero`. Returns two vectors int64 [count].

    >>> tnp.mask_indices(2, tnp.triu)
    (Array([0, 0, 1], i64), Array([0, 1, 1], i64))
    """
    return nonzero(mask_func(ones(shape_argument("mask_indices", (n, n)), np.int64), k), size=size)


def _triangle(name: str, n: int, k: int, m: int | None) -> tuple[int, int, int]:
    rows, columns = shape_argument(name, (n, n if m is None else m))
    return rows, integer(name, "k", k), columns


def _pair(found: Any) -> tuple[Array, Array]:
    first, second = (array_of("indices", f.astype(np.int64)) for f in found)
    return first, second


def _matrix(name: str, arr: Any) -> Array:
    x = array_of(name, arr)
    if x.ndim != 2:
        raise ShapeError(message(f"{name}{here()} takes a matrix", f"got {x.type}"))
    return x


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Array, ...]:
    """Return the coordinates of flat indices in an array of a shape.

    indices: integers [*s], negative ones counted from the end; shape: concrete; order: "C" for row-major order, "F" for
    column-major. Returns int64 [*s] for each axis of the shape. Raises OutOfBoundsError, from compiled code, too.

    >>> tnp.unravel_index(5, (2, 3))
    (Array(1, i64), Array(2, i64))
    """
    flat = array_of("unravel_index", indices)
    if not dtypes.is_integer(flat.dtype):
        raise DTypeError(message(f"unravel_index{here()} takes integers", f"got {flat.type}"))
    sizes = shape_argument("unravel_index", shape)
    total = math.prod(sizes)
    flat = flat.astype(dtypes.I64)
    flat = _inside(where(flat < 0, flat + total, flat), 0, total)
    if order not in ("C", "F"):
        raise ArgumentError(message(f"unravel_index{here()}: order is 'C' or 'F'", f"got {order!r}"))
    coordinates = []
    for n in reversed(sizes) if order == "C" else sizes:
        coordinates.append(flat % n)
        flat = flat // n
    return tuple(reversed(coordinates) if order == "C" else coordinates)


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Array:
    """Return the flat indices of coordinates in an array of a shape.

    multi_index: integers, one array for each axis of `dims`, which broadcast to [*s]; mode: "raise", "clip" or "wrap",
    for all axes or for each; order: "C" for row-major order, "F" for column-major. Returns int64 [*s]. "raise" raises
    OutOfBoundsError, from compiled code too.

    >>> tnp.ravel_multi_index((1, 2), (2, 3))
    Array(5, i64)
    """
    sizes = shape_argument("ravel_multi_index", dims)
    columns = [_coordinates("ravel_multi_index", i) for i in multi_index]
    modes = mode if isinstance(mode, tuple) else (mode,) * len(sizes)
    if not len(columns) == len(sizes) == len(modes):
        raise ShapeError(
            message(
                f"ravel_multi_index{here()} takes a coordinate and a mode for each axis",
                f"got {len(columns)} coordinates and mode={mode!r} for {shape.show(sizes)}",
            )
        )
    shape.broadcast(*(c.shape for c in columns), operation=f"ravel_multi_index{here()}")
    result: Any = 0
    name = "ravel_multi_index"
    pairs = list(zip(columns, sizes, modes, strict=True))
    for axis, (column, n, how) in list(enumerate(pairs))[:: 1 if order == "C" else -1]:
        inside = (
            column.clip(0, n - 1) if how == "clip" else column % n if how == "wrap" else _inside(column, axis, n, name)
        )
        result = result * n + inside
    return array_of("ravel_multi_index", result)


def _coordinates(name: str, given: Any) -> Array:
    found = array_of(name, given)
    if found.size and not (dtypes.is_integer(found.dtype) or found.dtype == dtypes.BOOL):
        raise DTypeError(
            message(f"{name}{here()} takes integers", f"got {found.type}", help="round and cast them, .astype(int)")
        )
    return found.astype(dtypes.I64)


def _inside(indices: Array, axis: int, size: int, operation: str = "") -> Array:
    """Return indices along an axis, checked to be in bounds. operation: for errors, if it takes coordinates."""
    return checked_indices(indices[..., None], asarray(True), (Bound(size - 1, axis, size, operation),))[..., 0]
