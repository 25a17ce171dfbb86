"""Entries of a `BCOO` in another order: transposes, sorting, layouts, other shapes, joins and reversals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ArgumentError, AxisError, ShapeError, message
from tracer.experimental.sparse import entries
from tracer.experimental.sparse.coordinates import Coordinates, M, flat, rebuilt, widened
from tracer.experimental.sparse.entries import Entries, stack_columns
from tracer.trace.integers import integer
from tracer.trace.source import here


def bcoo_transpose(mat: M, *, permutation: Sequence[int]) -> M:
    """Permute the axes. Batch, sparse and dense axes stay among themselves; else make all axes sparse first.

    >>> from tracer.experimental import sparse
    >>> sparse.bcoo_transpose(sparse.eye(2, 3), permutation=(1, 0)).shape
    (3, 2)
    """
    order = [int(axis) % max(mat.ndim, 1) for axis in permutation]
    if sorted(order) != list(range(mat.ndim)):
        text = f"bcoo_transpose{here()}: the permutation names each of {mat.ndim} axes once"
        raise AxisError(message(text, f"got {tuple(permutation)}"))
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, inner, outer = order[:first], order[first:last], order[last:]
    if sorted(batch) != list(range(first)) or sorted(inner) != list(range(first, last)):
        mat = bcoo_update_layout(mat, n_batch=0, n_dense=0)
        return bcoo_transpose(mat, permutation=order)
    indices = tnp.transpose(mat.indices, (*batch, first, first + 1))[..., [axis - first for axis in inner]]
    data = tnp.transpose(mat.data, (*batch, first, *(axis - last + first + 1 for axis in outer)))
    same = inner == list(range(first, last))
    shape = tuple(mat.shape[axis] for axis in order)
    return mat.tree_unflatten((shape, mat.indices_sorted and same, mat.unique_indices), (data, indices))


def bcoo_sort_indices(mat: M) -> M:
    """Return the entries in row-major order, padding last."""
    return rebuilt(entries.in_order, mat, ordered=True, unique=mat.unique_indices)


def bcoo_sum_duplicates(mat: M, nse: int | None = None) -> M:
    """Return sorted entries with distinct indices: values at equal indices are added up, and zeros left out.

    nse: the number of entries, required under jit. Raises ArgumentError without it.
    """
    return merged(mat, nse, True)


def merged(mat: M, nse: int | None, remove_zeros: bool) -> M:
    """Return sorted entries with distinct indices, whose values are added up."""
    if nse is None and mat.n_batch:
        counts = [entries.merged(e, None, remove_zeros=remove_zeros).data.shape[0] for e in _lanes(mat)]
        nse = max(counts, default=0)
    return rebuilt(lambda e: entries.merged(e, nse, remove_zeros=remove_zeros), mat, ordered=True, unique=True)


def _lanes(mat: Coordinates) -> list[Entries]:
    batch = mat.shape[: mat.n_batch]
    data, indices = widened(mat.data, batch), widened(mat.indices, batch)
    return [Entries(data[lane], indices[lane], mat.shape[mat.n_batch :]) for lane in np.ndindex(*batch)]


def bcoo_update_layout(
    mat: M, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: Any = "error"
) -> M:
    """Return the array with fewer batch and dense axes, which become sparse ones.

    on_inefficient: accepted for JAX. Raises ArgumentError for more axes: `bcoo_fromdense` of the dense array has them.
    """
    batch, dense_axes = mat.n_batch if n_batch is None else n_batch, mat.n_dense if n_dense is None else n_dense
    if (batch, dense_axes) == (mat.n_batch, mat.n_dense):
        return mat
    if batch or dense_axes:
        raise ArgumentError(
            message(
                f"bcoo_update_layout{here()}: all batch and dense axes become sparse, n_batch=0 and n_dense=0",
                f"got n_batch={batch}, n_dense={dense_axes} for {mat!r} with {mat.n_batch} and {mat.n_dense}",
                help="bcoo_fromdense(m.todense(), nse=..., n_batch=..., n_dense=...)",
            )
        )
    return mat._of(flat(mat))


def bcoo_reshape(mat: M, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> M:
    """Return the array in another shape, with sparse axes alone. dimensions: None, as axes are read in order."""
    if dimensions is not None and list(dimensions) != list(range(mat.ndim)):
        raise ArgumentError(message(f"bcoo_reshape{here()}: dimensions is None", help="transpose the array first"))
    shape = tuple(integer("bcoo_reshape", "new_sizes", n) for n in new_sizes)
    if math.prod(shape) != mat.size:
        text = f"bcoo_reshape{here()}: the new shape has as many elements"
        raise ShapeError(message(text, f"got {shape} for {mat.shape}"))
    e = flat(mat)
    target = Entries(e.data, tnp.zeros((e.data.shape[0], len(shape)), e.indices.dtype), shape)
    return mat._of(Entries(e.data, entries.indices_of(entries.keys(e), target), shape), unique=mat.unique_indices)


def bcoo_concatenate(operands: Sequence[M], *, dimension: int) -> M:
    """Join arrays along an axis. All axes become sparse.

    >>> from tracer.experimental import sparse
    >>> sparse.bcoo_concatenate([sparse.eye(1), sparse.eye(1)], dimension=1).todense()
    Array([[1., 1.]], f64)
    """
    if not operands:
        raise ArgumentError(message(f"bcoo_concatenate{here()}: at least one array"))
    axis = int(dimension) % operands[0].ndim
    rests = {(*m.shape[:axis], *m.shape[axis + 1 :]) for m in operands}
    if len(rests) > 1:
        text = f"bcoo_concatenate{here()}: other axes have equal sizes"
        raise ShapeError(message(text, f"got shapes {[m.shape for m in operands]}"))
    start, data, indices = 0, [], []
    total = sum(m.shape[axis] for m in operands)
    for m in operands:
        e = flat(m)
        # padding stays padding: it may not move into the next array
        column = tnp.where(entries.inside(e), e.indices[:, axis] + start, total)
        indices.append(e.indices.at[:, axis].set(column))
        data.append(e.data)
        start += m.shape[axis]
    shape = (*operands[0].shape[:axis], total, *operands[0].shape[axis + 1 :])
    return operands[0]._of(Entries(tnp.concatenate(data), tnp.concatenate(indices), shape))


def bcoo_rev(operand: M, dimensions: Sequence[int]) -> M:
    """Reverse the order along axes. All axes become sparse."""
    e = flat(operand)
    axes = [int(axis) % operand.ndim for axis in dimensions]
    columns = [
        tnp.where(entries.inside(e), e.shape[k] - 1 - column, e.shape[k]) if k in axes else column
        for k, column in enumerate(e.columns)
    ]
    return operand._of(Entries(e.data, stack_columns(columns, e.data.shape[0], e.indices.dtype), e.shape))
