"""Entries of a sparse array: values at index vectors, which every format has in common.

An index out of bounds, negative ones included, is padding: its entry stands for no element. Index vectors may repeat,
and the values of one element add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.shapes.indexing import get
from tracer.numpy.shapes.updates import ADD, updated
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here


class Entries(NamedTuple):
    """Entries of one sparse array. data: [nse, *dense]; indices: integers [nse, k], of the first k axes of `shape`."""

    data: Array
    indices: Array
    shape: tuple[int, ...]

    @property
    def sparse_shape(self) -> tuple[int, ...]:
        return self.shape[: self.indices.shape[1]]

    @property
    def columns(self) -> list[Array]:
        """The indices along each sparse axis, [nse] each."""
        return [self.indices[:, k] for k in range(self.indices.shape[1])]


def stack_columns(columns: Sequence[Any], count: int, dtype: Any) -> Array:
    """Return indices [count, k] of k columns, in a dtype."""
    if not columns:
        return tnp.zeros((count, 0), dtype)
    return tnp.stack([column.astype(dtype) for column in columns], axis=1)


def inside(e: Entries) -> Any:
    """Return which entries are in bounds: bool [nse]."""
    good: Any = tnp.ones(e.data.shape[:1], bool)
    for column, size in zip(e.columns, e.sparse_shape, strict=True):
        good = good & (column >= 0) & (column < size)
    return good


def where_rows(mask: Any, x: Any, other: Any = 0) -> Any:
    """Return x [nse, ...] in the rows where the mask [nse] holds."""
    return tnp.where(mask.reshape(mask.shape + (1,) * (x.ndim - 1)), x, other)


def summed_at(shape: Sequence[int], columns: Sequence[Array], values: Any) -> Any:
    """Add up values [nse, *rest] at their places among the first axes: zeros of the shape elsewhere."""
    shape = tuple(shape)
    if not columns:
        return values.sum(0).astype(values.dtype)
    if dtypes.is_bool(values.dtype):
        return summed_at(shape, columns, values.astype("int32")) > 0
    return updated(tnp.zeros(shape, values.dtype), tuple(columns), values, ADD, mode="drop", wrap=False)


def taken_at(x: Any, columns: Sequence[Array]) -> Any:
    """Return the elements of a dense array at index vectors along its first axes: [nse, *rest], 0 out of bounds."""
    if not columns:
        return x[None]
    return get(x, tuple(columns), mode="fill", fill_value=0, wrap=False)


def dense(e: Entries) -> Any:
    """Return the dense array."""
    return summed_at(e.shape, e.columns, e.data)


def fully_sparse(e: Entries) -> Entries:
    """Return the entries without dense axes: each value has an index vector of its own."""
    inner = e.data.shape[1:]
    if not inner:
        return e
    count = math.prod(inner)
    each = np.stack([axis.ravel() for axis in np.indices(inner)], axis=1)
    outer = tnp.repeat(e.indices, count, axis=0)
    own = tnp.tile(tnp.asarray(each.astype(e.indices.dtype)), (e.data.shape[0], 1))
    return Entries(e.data.reshape(-1), tnp.concatenate([outer, own], axis=1), e.shape)


def dot_dense(e: Entries, x: Any, contracted: tuple[Any, Any], batch: tuple[Any, Any]) -> Any:
    """Return a product with a dense array, [*batch, *free axes of e, *free axes of x]. e has no dense axes."""
    (left, right), (left_batch, right_batch) = contracted, batch
    free = [k for k in range(len(e.shape)) if k not in left and k not in left_batch]
    others = [k for k in range(x.ndim) if k not in right and k not in right_batch]
    columns = e.columns
    ordered = x if _in_order([*right_batch, *right, *others]) else tnp.transpose(x, (*right_batch, *right, *others))
    read = taken_at(ordered, [columns[k] for k in (*left_batch, *left)])
    values = e.data.reshape(e.data.shape[0], *[1] * len(others)) * read
    kept = [*left_batch, *free]
    # rows that are contracted or shared are padding where `x` has no such row: `read` is 0 there
    return summed_at((*(e.shape[k] for k in kept), *(x.shape[k] for k in others)), [columns[k] for k in kept], values)


def _in_order(axes: Sequence[int]) -> bool:
    return list(axes) == list(range(len(axes)))


def dot_sparse(a: Entries, b: Entries, contracted: tuple[Any, Any], batch: tuple[Any, Any]) -> Entries:
    """Return the product of two sparse arrays: every pair of entries; pairs that do not meet are padding."""
    (left, right), (left_batch, right_batch) = contracted, batch
    a_free = [k for k in range(len(a.shape)) if k not in left and k not in left_batch]
    b_free = [k for k in range(len(b.shape)) if k not in right and k not in right_batch]
    many, more = a.data.shape[0], b.data.shape[0]
    meet = inside(a)[:, None] & inside(b)[None, :]
    for i, j in zip((*left_batch, *left), (*right_batch, *right), strict=True):
        meet = meet & (a.columns[i][:, None] == b.columns[j][None, :])
    kept = [(a.shape[k], a.columns[k][:, None]) for k in (*left_batch, *a_free)]
    kept += [(b.shape[k], b.columns[k][None, :]) for k in b_free]
    shape = tuple(size for size, _ in kept)
    columns = [tnp.where(meet, tnp.broadcast_to(column, (many, more)), size).reshape(-1) for size, column in kept]
    values = tnp.where(meet, a.data[:, None] * b.data[None, :], 0).reshape(-1)
    return Entries(values, stack_columns(columns, many * more, a.indices.dtype), shape)


def keys(e: Entries) -> Any:
    """Return each entry's place in the row-major order of the sparse axes, their number for padding: int64 [nse]."""
    total = math.prod(e.sparse_shape)
    if total >= 2**63:
        raise ShapeError(
            message(f"sparse array{here()}: at most 2**63 - 1 elements can be ordered", f"got shape {e.shape}")
        )
    place: Any = tnp.zeros(e.data.shape[:1], "int64")
    for column, size in zip(e.columns, e.sparse_shape, strict=True):
        place = place * size + column.astype("int64")
    return tnp.where(inside(e), place, total)


def indices_of(place: Any, e: Entries) -> Array:
    """Return the indices of places; the shape itself, which is out of bounds, for padding."""
    total, left, columns = math.prod(e.sparse_shape), place, []
    for size in reversed(e.sparse_shape):
        columns.append(tnp.where(place < total, left % max(size, 1), size))
        left = left // max(size, 1)
    return stack_columns(columns[::-1], place.shape[0], e.indices.dtype)


def in_order(e: Entries) -> Entries:
    """Return the entries in row-major order of their indices, padding last."""
    order = tnp.argsort(keys(e), stable=True)
    return Entries(e.data[order], e.indices[order], e.shape)


def merged(e: Entries, nse: int | None, *, remove_zeros: bool = True) -> Entries:
    """Return sorted entries whose indices are distinct: values at equal indices are added up.

    nse: the number of entries, known by default from indices (and values, if remove_zeros) that are concrete. Entries
    beyond it are dropped, missing ones are padding. Raises ArgumentError where nse is None and they are traced.
    """
    place = keys(e)
    total = math.prod(e.sparse_shape)
    if remove_zeros:
        is_zero = (e.data == 0).all(axis=tuple(range(1, e.data.ndim)))
        place = tnp.where(is_zero, total, place)
    if nse is None:
        known = concrete_value(place)
        if known is None:
            raise ArgumentError(
                message(
                    f"sum_duplicates{here()}: the number of entries depends on traced values",
                    help="give nse, as in m.sum_duplicates(nse=m.nse)",
                )
            )
        nse = len(np.unique(known[known < total]))
    order = tnp.argsort(place, stable=True)
    place, data = place[order], e.data[order]
    first = tnp.concatenate([tnp.ones(min(1, place.shape[0]), bool), place[1:] != place[:-1]])
    group = tnp.cumsum(first) - 1
    values = summed_at((nse, *data.shape[1:]), [tnp.where(place < total, group, nse)], data)
    # one place is written for each group, so the order of the writes does not matter
    groups = tnp.where(first, group, nse)
    places = tnp.full(nse, total, "int64").at[groups].set(place, mode="drop", unique_indices=False)
    return Entries(values, indices_of(places, e), e.shape)


def matched(e: Entries, other: Entries) -> Any:
    """Return for each entry of `e` the element of `other` at its index: [nse], 0 where there is none."""
    theirs = merged(other, other.data.shape[0], remove_zeros=False)
    if not other.data.shape[0]:
        return tnp.zeros(e.data.shape, other.data.dtype)
    mine, places = keys(e), keys(theirs)
    found = tnp.searchsorted(places, mine)
    found = tnp.minimum(found, places.shape[0] - 1)
    hit = (places[found] == mine) & (mine < math.prod(e.sparse_shape))
    return where_rows(hit, theirs.data[found])
