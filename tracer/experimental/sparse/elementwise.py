"""A `BCOO` element by element with a number, a dense array, or another `BCOO`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer import numpy as tnp
from tracer.errors import ShapeError, message
from tracer.experimental.sparse import entries
from tracer.experimental.sparse.base import dense_operand, is_sparse
from tracer.experimental.sparse.coordinates import Coordinates, M, rebuilt, widened
from tracer.experimental.sparse.entries import Entries
from tracer.experimental.sparse.rearranging import bcoo_update_layout, merged
from tracer.numpy.core.conversion import array_of
from tracer.trace.source import here
from tracer.transforms.vectorize import vmap


def _require_same_shape(caller: str, mat: Coordinates, other: Any) -> None:
    if tuple(mat.shape) != tuple(other.shape):
        text = f"{caller}{here()}: arrays have equal shapes"
        raise ShapeError(message(text, f"got {tuple(mat.shape)} and {tuple(other.shape)}"))


def by_element(mat: M, x: Any, operation: Callable[[Any, Any], Any], neutral: int) -> M:
    """Combine values with the elements of a dense array at their indices; padding meets `neutral`."""
    if not x.ndim:
        return mat._like(operation(mat.data, x))
    try:
        wide = tnp.broadcast_to(x, mat.shape)
    except ShapeError:
        text = f"BCOO{here()}: the dense operand broadcasts to the sparse one's shape"
        raise ShapeError(message(text, f"got {x.shape} for {mat.shape}")) from None
    if x.shape != mat.shape:
        x = wide
    n_batch = mat.n_batch

    def one(data: Any, indices: Any, example: Any) -> Any:
        e = Entries(data, indices, mat.shape[n_batch:])
        taken = entries.taken_at(example, e.columns)
        if neutral:
            taken = entries.where_rows(entries.inside(e), taken, neutral)
        return operation(data, taken)

    batch = mat.shape[:n_batch]
    for _ in range(n_batch):
        one = vmap(one)
    data, indices = widened(mat.data, batch), widened(mat.indices, batch)
    made = one(data, indices, x)
    return mat.tree_unflatten((mat.shape, mat.indices_sorted, mat.unique_indices), (made, indices))


def bcoo_extract(sparr: M, arr: Any, *, assume_unique: bool | None = None) -> M:
    """Return a dense array's elements at the indices of a sparse one. Where indices repeat, the first has the value.

    assume_unique: whether indices are distinct; by default the array's promise.
    """
    x = array_of("bcoo_extract", arr)
    _require_same_shape("bcoo_extract", sparr, x)
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    m = sparr if unique else merged(sparr, sparr.nse, False)
    return by_element(m._like(tnp.ones_like(m.data, x.dtype)), x, lambda a, b: a * b, 0)


def bcoo_multiply_dense(sp_mat: M, v: Any) -> M:
    """Multiply by a dense array that broadcasts to the shape, element by element.

    >>> from tracer.experimental import sparse
    >>> sparse.bcoo_multiply_dense(sparse.eye(2), tnp.asarray([2.0, 3.0])).todense()
    Array([[2., 0.],
           [0., 3.]], f64)
    """
    return by_element(sp_mat, array_of("bcoo_multiply_dense", v), lambda a, b: a * b, 0)


def bcoo_multiply_sparse(lhs: M, rhs: M) -> M:
    """Multiply arrays of equal shapes, element by element. The result has the indices of `lhs`."""
    _require_same_shape("bcoo_multiply_sparse", lhs, rhs)
    if lhs.n_dense or rhs.n_dense or lhs.n_batch != rhs.n_batch:
        lhs, rhs = (bcoo_update_layout(m, n_batch=0, n_dense=0) for m in (lhs, rhs))
    return rebuilt(
        lambda a, b: Entries(a.data * entries.matched(a, b), a.indices, a.shape), lhs, rhs,
        ordered=lhs.indices_sorted, unique=lhs.unique_indices,
    )  # fmt: skip


def multiplied(mat: M, other: Any) -> Any:
    """Return `mat * other`, element by element; NotImplemented where the operand is no array."""
    if isinstance(other, Coordinates):
        return bcoo_multiply_sparse(mat, other)
    x = dense_operand(other)
    return NotImplemented if x is None else bcoo_multiply_dense(mat, x)


def added(mat: Coordinates, other: Any) -> Any:
    """Return `mat + other`, sparse for two sparse arrays; NotImplemented where the operand is no array."""
    if not is_sparse(other):
        x = dense_operand(other)
        if x is None:
            return NotImplemented
        if type(other) is int and other == 0:  # as `sum` of a list starts
            return mat
        return mat.todense() + x
    if not isinstance(other, Coordinates):
        return NotImplemented
    _require_same_shape("BCOO + BCOO", mat, other)
    dtype = tnp.promote_types(mat.dtype, other.dtype)
    if mat.indices is other.indices and mat.data.shape == other.data.shape:
        return mat._like(mat.data + other.data)
    if mat.n_batch != other.n_batch or mat.n_dense != other.n_dense:
        mat, other = (bcoo_update_layout(m, n_batch=0, n_dense=0) for m in (mat, other))
    return rebuilt(
        lambda a, b: Entries(
            tnp.concatenate([a.data.astype(dtype), b.data.astype(dtype)]),
            tnp.concatenate([a.indices, b.indices.astype(a.indices.dtype)]),
            a.shape,
        ),
        mat, other,
    )  # fmt: skip
