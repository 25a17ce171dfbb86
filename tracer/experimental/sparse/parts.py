"""Parts of a `BCOO`: boxes, slices by index, and sums along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ArgumentError, AxisError, ShapeError, message
from tracer.experimental.sparse import entries
from tracer.experimental.sparse.coordinates import M, flat, rebuilt
from tracer.experimental.sparse.entries import Entries, stack_columns
from tracer.experimental.sparse.rearranging import bcoo_update_layout
from tracer.trace.array import Array
from tracer.trace.source import here


def bcoo_slice(
    mat: M, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> M:
    """Return a box of the array: elements start, start + stride, ... below limit along each axis.

    >>> from tracer.experimental import sparse
    >>> sparse.bcoo_slice(sparse.eye(3), start_indices=(1, 0), limit_indices=(3, 3)).shape
    (2, 3)
    """
    steps = [1] * mat.ndim if strides is None else strides
    return indexed(mat, tuple(map(slice, start_indices, limit_indices, steps)))


def bcoo_dynamic_slice(mat: M, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> M:
    """Return a box of given sizes, from a start that may be traced and is moved inside. All axes become sparse."""
    e = flat(mat)
    columns, good = [], entries.inside(e)
    for column, start, size, whole in zip(e.columns, start_indices, slice_sizes, mat.shape, strict=True):
        moved = column - tnp.clip(tnp.asarray(start), 0, whole - size).astype(column.dtype)
        good = good & (moved >= 0) & (moved < size)
        columns.append(moved)
    shape = tuple(int(n) for n in slice_sizes)
    kept = [tnp.where(good, column, size) for column, size in zip(columns, shape, strict=True)]
    return mat._of(Entries(e.data, stack_columns(kept, e.data.shape[0], e.indices.dtype), shape))


def bcoo_squeeze(arr: M, *, dimensions: Sequence[int]) -> M:
    """Leave out sparse axes of length 1."""
    axes = [int(axis) % arr.ndim for axis in dimensions]
    if any(arr.shape[axis] != 1 for axis in axes):
        text = f"bcoo_squeeze{here()}: the axes have length 1"
        raise ShapeError(message(text, f"got axes {axes} of {arr.shape}"))
    return indexed(arr, tuple(0 if axis in axes else slice(None) for axis in range(arr.ndim)))


def indexed(mat: M, index: Any) -> M:
    """Return `mat[index]` for integers, slices, new axes and an ellipsis."""
    parts = index if isinstance(index, tuple) else (index,)
    axes = len([p for p in parts if p is not None and p is not Ellipsis])
    if Ellipsis in parts:
        place = parts.index(Ellipsis)
        parts = (*parts[:place], *[slice(None)] * (mat.ndim - axes), *parts[place + 1 :])
    else:
        parts = (*parts, *[slice(None)] * (mat.ndim - axes))
    if axes > mat.ndim or not all(p is None or isinstance(p, slice | int | np.integer) for p in parts):
        raise ArgumentError(
            message(
                f"BCOO[...]{here()} takes integers, slices, None and an ellipsis",
                f"got {index!r} for {mat.ndim} axes",
                help="multiply by a matrix that selects, or index m.todense()",
            )
        )
    if mat.n_batch:
        mat = bcoo_update_layout(mat, n_batch=0, n_dense=0)
    e = Entries(mat.data, mat.indices, mat.shape)
    good, columns, shape = entries.inside(e), [], []
    sparse = list(zip(e.columns, e.sparse_shape, strict=True))
    taken = 0
    for part in parts:
        if part is None:
            columns.append(tnp.zeros_like(e.indices[:, 0]))
            shape.append(1)
        elif not sparse:
            break
        else:
            column, size = sparse.pop(0)
            kept, at, count = _selected(part, column, size, mat.n_sparse - len(sparse) - 1)
            good = good & kept
            if count is not None:
                columns.append(at)
                shape.append(count)
        taken += 1
    dense_parts = parts[taken:]
    data = e.data[(slice(None), *dense_parts)] if dense_parts else e.data
    if columns:
        columns = [tnp.where(good, column, size) for column, size in zip(columns, shape, strict=True)]
    else:
        data = entries.where_rows(good, data)
    indices = stack_columns(columns, data.shape[0], e.indices.dtype)
    return mat._of(Entries(data, indices, (*shape, *data.shape[1:])), unique=mat.unique_indices)


def _selected(part: Any, column: Array, size: int, axis: int) -> tuple[Array, Array, int | None]:
    """Return which indices along an axis an index takes, where to, and the new length; None for an integer."""
    if not isinstance(part, slice):
        number = int(part) + (size if part < 0 else 0)
        if not 0 <= number < size:
            text = f"BCOO[...]{here()}: index {part} is out of bounds for axis {axis} with size {size}"
            raise ArgumentError(message(text))
        return column == number, column, None
    start, stop, step = part.indices(size)
    count, width = len(range(start, stop, step)), abs(step)
    moved = column - start if step > 0 else start - column
    return (moved >= 0) & (moved < count * width) & (moved % width == 0), moved // width, count


def bcoo_reduce_sum(mat: M, *, axes: Sequence[int]) -> M:
    """Return the sum along axes, as an array whose indices may repeat.

    >>> from tracer.experimental import sparse
    >>> sparse.bcoo_reduce_sum(sparse.eye(3), axes=[0]).todense()
    Array([1., 1., 1.], f64)
    """
    gone = {int(axis) % max(mat.ndim, 1) for axis in axes}
    if any(not -mat.ndim <= axis < mat.ndim for axis in axes):
        raise AxisError(message(f"bcoo_reduce_sum{here()}: axes are below {mat.ndim}", f"got {tuple(axes)}"))
    if any(axis < mat.n_batch for axis in gone):
        return bcoo_reduce_sum(bcoo_update_layout(mat, n_batch=0, n_dense=0), axes=sorted(gone))
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse

    def one(e: Entries) -> Entries:
        data = e.data.sum(axis=tuple(1 + axis - last for axis in gone if axis >= last))
        data = data.astype(e.data.dtype)
        kept = [k for k in range(mat.n_sparse) if k + first not in gone]
        if len(kept) == mat.n_sparse:
            indices = e.indices
        elif kept:
            good = entries.inside(e)
            columns = [tnp.where(good, e.columns[k], e.shape[k]) for k in kept]
            indices = stack_columns(columns, e.data.shape[0], e.indices.dtype)
        else:
            data = entries.where_rows(entries.inside(e), data)
            indices = tnp.zeros((e.data.shape[0], 0), e.indices.dtype)
        return Entries(data, indices, tuple(n for k, n in enumerate(e.shape) if k + first not in gone))

    return rebuilt(one, mat)
