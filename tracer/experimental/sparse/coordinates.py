"""Values at index vectors, with batch and dense axes: the arrays that a `BCOO` holds, batch by batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ShapeError, message
from tracer.experimental.sparse import entries
from tracer.experimental.sparse.base import JAXSparse
from tracer.experimental.sparse.entries import Entries
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.transforms.vectorize import vmap

M = TypeVar("M", bound="Coordinates")


class Coordinates(JAXSparse):
    """Sparse array of values at index vectors, without operations.

    data: [*batch, nse, *dense]; indices: integers [*batch, nse, n_sparse]; shape: [*batch, *sparse, *dense]. Batch axes
    of length 1 are repeated.
    """

    indices: Array
    indices_sorted: bool
    unique_indices: bool

    def tree_flatten(self) -> tuple[tuple[Any, Any], Any]:
        return (self.data, self.indices), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Self:
        made = object.__new__(cls)
        made.data, made.indices = children
        made.shape, made.indices_sorted, made.unique_indices = aux
        return made

    @property
    def nse(self) -> int:
        """Number of specified elements for each batch, padding included."""
        return int(self.indices.shape[-2])

    @property
    def n_batch(self) -> int:
        """Number of batch axes."""
        return int(self.indices.ndim) - 2

    @property
    def n_sparse(self) -> int:
        """Number of sparse axes."""
        return int(self.indices.shape[-1])

    @property
    def n_dense(self) -> int:
        """Number of dense axes."""
        return self.ndim - self.n_batch - self.n_sparse

    def _like(self, data: Any) -> Self:
        return self.tree_unflatten((self.shape, self.indices_sorted, self.unique_indices), (data, self.indices))

    @classmethod
    def _of(cls, e: Entries, batch: tuple[int, ...] = (), *, ordered: bool = False, unique: bool = False) -> Self:
        return cls.tree_unflatten(((*batch, *e.shape), ordered, unique), (e.data, e.indices))


def check(m: Coordinates) -> None:
    """Raise ShapeError where data, indices and shape do not fit."""
    n_batch, data, indices = m.indices.ndim - 2, m.data, m.indices
    good = n_batch >= 0 and data.ndim > n_batch and len(m.shape) >= n_batch + indices.shape[-1]
    if good:
        dense_axes = len(m.shape) - n_batch - indices.shape[-1]
        good = data.ndim == n_batch + 1 + dense_axes and data.shape[n_batch] == indices.shape[-2]
        good = good and data.shape[n_batch + 1 :] == m.shape[len(m.shape) - dense_axes :]
        batches = (
            *zip(data.shape[:n_batch], m.shape, strict=False),
            *zip(indices.shape[:n_batch], m.shape, strict=False),
        )
        good = good and all(size in (1, whole) for size, whole in batches)
    if not good:
        raise ShapeError(
            message(
                f"BCOO{here()}: data is [*batch, nse, *dense] and indices [*batch, nse, n_sparse]",
                f"got data {data.type} and indices {indices.type} for shape {m.shape}",
                help="the shape has the batch axes, then n_sparse axes, then the dense axes",
            )
        )


def mapped(function: Callable[[Entries], Any], *arrays: Coordinates) -> Any:
    """Apply a function of entries to arrays with equal batch axes, batch by batch."""
    first = arrays[0]
    batch, n_batch = first.shape[: first.n_batch], first.n_batch
    shapes = [m.shape[m.n_batch :] for m in arrays]

    def run(*parts: Any) -> Any:
        return function(*(Entries(part[0], part[1], shape) for part, shape in zip(parts, shapes, strict=True)))

    leaves = [tuple(widened(x, batch) for x in (m.data, m.indices)) if n_batch else (m.data, m.indices) for m in arrays]
    for _ in range(n_batch):
        run = vmap(run)
    return run(*leaves)


def widened(x: Any, batch: tuple[int, ...]) -> Any:
    """Return the array with its batch axes repeated to their full length."""
    return x if x.shape[: len(batch)] == batch else tnp.broadcast_to(x, (*batch, *x.shape[len(batch) :]))


def flat(m: Coordinates) -> Entries:
    """Return the entries with neither batch nor dense axes."""
    if m.n_batch:
        batch, n_batch = m.shape[: m.n_batch], m.n_batch
        data, indices = widened(m.data, batch), widened(m.indices, batch)
        count = math.prod(batch)
        lanes = np.stack([axis.ravel() for axis in np.indices(batch)], 1).astype(indices.dtype)
        own = tnp.repeat(tnp.asarray(lanes), m.nse, axis=0, total_repeat_length=count * m.nse)
        rest = indices.reshape(count * m.nse, m.n_sparse)
        values = data.reshape(count * m.nse, *data.shape[n_batch + 1 :])
        e = Entries(values, tnp.concatenate([own, rest], axis=1), m.shape)
    else:
        e = Entries(m.data, m.indices, m.shape)
    return entries.fully_sparse(e)


def rebuilt(function: Callable[..., Entries], *arrays: M, ordered: bool = False, unique: bool = False) -> M:
    """Apply a function from entries to entries, batch by batch."""
    shape: list[tuple[int, ...]] = []

    def run(*parts: Entries) -> tuple[Any, Any]:
        found = function(*parts)
        shape.append(found.shape)
        return found.data, found.indices

    data, indices = mapped(run, *arrays)
    batch = arrays[0].shape[: arrays[0].n_batch]
    return arrays[0]._of(Entries(data, indices, shape[-1]), batch, ordered=ordered, unique=unique)
