"""Matrices by their diagonals and triangles, and coordinate grids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracer.errors import ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of, broadcast, cast, dtype_of_argument, shape_argument
from tracer.primitives.arrays.reductions.reductions import reduce_or
from tracer.primitives.arrays.slice_pad_concatenate import pad, slice_in_dim
from tracer.primitives.base.broadcasting import axis_of, broadcast_in_dim, full_like, reduce_sum
from tracer.primitives.base.rules import kind_of
from tracer.primitives.base.shapes import broadcasted_iota, iota, moveaxis, reshape
from tracer.primitives.elementwise import arithmetic, comparison
from tracer.primitives.elementwise.arithmetic import add
from tracer.runtime.system.devices import made, made_on
from tracer.runtime.values.fresh_handles import makes_new
from tracer.settings import config
from tracer.trace.array import Array, concrete_value
from tracer.trace.integers import integer
from tracer.trace.source import here


def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = None, *, device: Any = None) -> Array:
    """Return an N×M matrix with ones on a diagonal and zeros elsewhere.

    N, M: rows and columns, M by default N; k: the diagonal, above the main one if positive, may be traced; dtype: by
    default `tracer.config.default_float`. Returns shape [N, M].

    >>> tnp.eye(2, 3, 1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], f64)
    """
    if device is not None:
        return made_on("eye", device, eye, N, M, k, dtype)
    rows, columns = shape_argument("eye", (N, N if M is None else M))
    return made(_in_dtype("eye", _below("eye", rows, columns, k, comparison.eq), dtype), None, "eye")


def identity(n: Any, dtype: Any = None) -> Array:
    """Return the n×n identity matrix.

    n: a concrete integer; dtype: by default `tracer.config.default_float`. Returns shape [n, n].

    >>> tnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], f64)
    """
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Array:
    """Return an N×M matrix with ones on and below a diagonal and zeros above.

    N, M: rows and columns, M by default N; k: the diagonal, above the main one if positive, may be traced; dtype: by
    default `tracer.config.default_float`. Returns shape [N, M].

    >>> tnp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], f64)
    """
    rows, columns = shape_argument("tri", (N, N if M is None else M))
    return _in_dtype("tri", _below("tri", rows, columns, k, comparison.ge), dtype)


def _below(name: str, rows: int, columns: int, k: Any, compare: Any) -> Array:
    """Return the comparison of row + k with column: bool [rows, columns]."""
    row = broadcasted_iota(dtypes.I64, (rows, columns), 0)
    return compare(add(row, _within(name, k, rows, columns)), broadcasted_iota(dtypes.I64, (rows, columns), 1))


def _within(name: str, k: Any, rows: int, columns: int) -> Any:
    """Return the index of a diagonal, clamped to the first diagonal beyond a corner."""
    if isinstance(k, Array) and concrete_value(k) is None and not k.shape and dtypes.is_integer(k.dtype):
        inside = arithmetic.min(arithmetic.max(cast(k, dtypes.I64), -rows - 1), columns + 1)
        return broadcast_in_dim(inside, (rows, columns), ())
    return max(-rows - 1, min(integer(name, "k", k), columns + 1))


def _in_dtype(name: str, mask: Array, dtype: Any) -> Array:
    return cast(mask, config.default_float if dtype is None else dtype_of_argument(name, dtype))


def tril(m: Any, k: int = 0) -> Array:
    """Return the lower triangle of matrices [..., r, c]: zeros above the k-th diagonal.

    m: [*s, r, c]; k: a concrete integer, above the main diagonal if positive. Returns m's shape and dtype. Raises
    ShapeError for vectors.

    >>> tnp.tril(tnp.asarray([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], i64)
    """
    return _triangle("tril", m, k, lower=True)


def triu(m: Any, k: int = 0) -> Array:
    """Return the upper triangle of matrices [..., r, c]: zeros below the k-th diagonal.

    m: [*s, r, c]; k: a concrete integer, above the main diagonal if positive. Returns m's shape and dtype. Raises
    ShapeError for vectors.

    >>> tnp.triu(tnp.asarray([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]], i64)
    """
    return _triangle("triu", m, k, lower=False)


def _triangle(name: str, m: Any, k: int, *, lower: bool) -> Array:
    x = array_of(name, m)
    if x.ndim < 2:
        raise ShapeError(message(f"{name}{here()} takes matrices", f"got {x.type}"))
    rows, columns = x.shape[-2:]
    mask = broadcast(_below(name, rows, columns, integer(name, "k", k) - (not lower), comparison.ge), x.shape)
    zeros = full_like(x, 0)
    return comparison.select(mask, x, zeros) if lower else comparison.select(mask, zeros, x)


def diag(v: Any, k: int = 0) -> Array:
    """Return the k-th diagonal of a matrix, or the matrix with a vector on its k-th diagonal.

    v: [r, c], or [n]; k: 0 for the main diagonal, positive above it. Returns [count], or [n + |k|, n + |k|], in v's
    dtype. Raises ShapeError for other shapes.

    >>> tnp.diag(tnp.asarray([[1, 2], [3, 4]])), tnp.diag(tnp.asarray([1, 2]))
    (Array([1, 4], i64), Array([[1, 0],
           [0, 2]], i64))
    """
    x = array_of("diag", v)
    if x.ndim == 1:
        return _with_diagonal(x, integer("diag", "k", k))
    if x.ndim == 2:
        return diagonal(x, k)
    raise ShapeError(message(f"diag{here()} takes a vector or a matrix", f"got {x.type}", help="see diagonal"))


def diagflat(v: Any, k: int = 0) -> Array:
    """Return the matrix with all elements of an array on its k-th diagonal.

    v: any shape, n elements; k: above the main diagonal if positive. Returns [n + |k|, n + |k|], in v's dtype.

    >>> tnp.diagflat(tnp.asarray([[1], [2]]))
    Array([[1, 0],
           [0, 2]], i64)
    """
    x = array_of("diagflat", v)
    return _with_diagonal(reshape(x, (x.size,)), integer("diagflat", "k", k))


def _with_diagonal(x: Array, k: int) -> Array:
    """Return the matrix with a vector on its k-th diagonal. The elements are padded n + 1 apart, then cut into rows."""
    n = x.shape[0] + (k if k > 0 else -k)
    if x.shape[0] == 0:
        return broadcast_in_dim(cast(array_of("diag", 0), x.dtype), (n, n), ())
    first = k if k > 0 else -k * n
    apart = pad(x, cast(array_of("diag", 0), x.dtype), [(first, 0, n)])
    return reshape(pad(apart, cast(array_of("diag", 0), x.dtype), [(0, n * n - apart.shape[0], 0)]), (n, n))


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return the diagonal along two axes, as a new last axis.

    a: [*s]; offset: above the main diagonal if positive; axis1, axis2: by default the first two. Returns
    [*s minus both, n], in a's dtype. Raises AxisError for an axis out of range.

    >>> tnp.diagonal(tnp.asarray([[1, 2], [3, 4]]), 1)
    Array([2], i64)
    """
    x = array_of("diagonal", a)
    if x.ndim < 2:
        raise ShapeError(message(f"diagonal{here()} takes at least two axes", f"got {x.type}"))
    first, second = (axis_of("diagonal", axis, x.ndim) for axis in (axis1, axis2))
    if first == second:
        raise ShapeError(message(f"diagonal{here()}: axis1 and axis2 must differ", f"got {axis1} and {axis2}"))
    others = [axis for axis in range(x.ndim) if axis not in (first, second)]
    rows, columns = x.shape[first], x.shape[second]
    offset = max(-rows, min(integer("diagonal", "offset", offset), columns))
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    x = moveaxis(moveaxis(x, first, -1), second - (second > first), -1) if others or first > second else x
    x = slice_in_dim(x, max(0, -offset), max(0, -offset) + count, axis=-2)
    x = slice_in_dim(x, max(0, offset), max(0, offset) + count, axis=-1)
    flat = reshape(x, (*x.shape[:-2], count * count))
    return slice_in_dim(flat, 0, count * count, count + 1, axis=-1)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array of `ndim` axes of size n.

    n: the size; ndim: the number of axes. Returns ndim vectors int64 [n].

    >>> tnp.diag_indices(2)
    (Array([0, 1], i64), Array([0, 1], i64))
    """
    return (iota(dtypes.I64, integer("diag_indices", "n", n)),) * integer("diag_indices", "ndim", ndim)


def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array whose axes have equal sizes.

    arr: [n, n, ...]. Returns one vector int64 [n] for each axis. Raises ShapeError for unequal sizes.

    >>> tnp.diag_indices_from(tnp.zeros((2, 2)))
    (Array([0, 1], i64), Array([0, 1], i64))
    """
    x = array_of("diag_indices_from", arr)
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ShapeError(message(f"diag_indices_from{here()} takes two or more axes of equal sizes", f"got {x.type}"))
    return diag_indices(x.shape[0], x.ndim)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
    """Return the sum over the diagonal along two axes; small integers are summed in 64 bits.

    a: [*s]; offset: above the main diagonal if positive; axis1, axis2: by default the first two; dtype: of the sum.
    Returns [*s minus both].

    >>> tnp.trace(tnp.asarray([[1, 2], [3, 4]]))
    Array(5, i64)
    """
    x = diagonal(a, offset, axis1, axis2)
    wanted = sum_dtype(x) if dtype is None else dtype_of_argument("trace", dtype)
    return (reduce_or if wanted == dtypes.BOOL else reduce_sum)(cast(x, wanted), (-1,))


def sum_dtype(x: Array) -> Any:
    """Return the dtype of sums and products: 64 bits for integers, int64 for bool, else the operand's."""
    if dtypes.is_unsigned(x.dtype):
        return dtypes.U64
    return dtypes.I64 if kind_of(x.dtype) in "bi" else x.dtype


@makes_new
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Return coordinate arrays of a grid from vectors: one array of the grid's shape for each vector.

    xi: k vectors. indexing: "xy" gives the grid [len(y), len(x), ...], "ij" gives [len(x), len(y), ...]. sparse: keep
    axes of size 1. copy: ignored. Returns k arrays in the vectors' dtypes. Raises ShapeError for another indexing.

    >>> [x.shape for x in tnp.meshgrid(tnp.arange(2), tnp.arange(3))]
    [(3, 2), (3, 2)]
    """
    del copy
    if indexing not in ("xy", "ij"):
        raise ShapeError(message(f'meshgrid{here()}: indexing is "xy" or "ij"', f"got {indexing!r}"))
    vectors = [reshape(x, (x.size,)) for x in (array_of("meshgrid", v) for v in xi)]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        order[:2] = [1, 0]
    full = [0] * len(vectors)
    for x, axis in zip(vectors, order, strict=True):
        full[axis] = x.shape[0]
    sizes = [[n if a == axis or not sparse else 1 for a, n in enumerate(full)] for axis in order]
    return tuple(broadcast_in_dim(x, s, (axis,)) for x, s, axis in zip(vectors, sizes, order, strict=True))


def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """Return the coordinates of every element of a shape: [axes, *dimensions]; a tuple of arrays if `sparse`.

    dimensions: the shape; dtype: by default int64; sparse: return arrays that broadcast to the shape.

    >>> tnp.indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], i64)
    """
    sizes = shape_argument("indices", tuple(dimensions) if isinstance(dimensions, Iterator) else dimensions)
    wanted = dtypes.I64 if dtype is None else dtype_of_argument("indices", dtype)
    if sparse:
        shapes = [[n if a == axis else 1 for a, n in enumerate(sizes)] for axis in range(len(sizes))]
        return tuple(broadcasted_iota(wanted, s, axis) for axis, s in enumerate(shapes))
    if not sizes:
        return broadcast_in_dim(cast(array_of("indices", 0), wanted), (0,), ())
    return array_of("indices", [broadcasted_iota(wanted, sizes, axis) for axis in range(len(sizes))])
