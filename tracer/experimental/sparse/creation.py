"""Sparse arrays from nothing: `empty`, `eye`, `random_bcoo`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer import numpy as tnp
from tracer import random
from tracer.errors import ArgumentError, message
from tracer.experimental.sparse.base import JAXSparse, matrix_shape
from tracer.experimental.sparse.bcoo import BCOO
from tracer.experimental.sparse.entries import Entries, indices_of
from tracer.experimental.sparse.matrices import COO, CSC, CSR
from tracer.ir import dtypes
from tracer.settings import config
from tracer.trace.integers import integer
from tracer.trace.source import here

_FORMATS = ("bcoo", "coo", "csr", "csc")


def _check_format(caller: str, sparse_format: str) -> None:
    if sparse_format not in _FORMATS:
        text = f"{caller}{here()}: sparse_format is one of {', '.join(map(repr, _FORMATS))}"
        raise ArgumentError(message(text, f"got {sparse_format!r}"))


def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32", sparse_format: str = "bcoo", *,
    n_batch: int = 0, n_dense: int = 0, nse: int = 0,
) -> JAXSparse:  # fmt: skip
    """Return a sparse array without entries: zeros of the shape.

    n_batch, n_dense, nse: of a BCOO, whose entries are padding.

    >>> from tracer.experimental import sparse
    >>> sparse.empty((2, 3))
    BCOO(f64[2, 3], nse=0)
    """
    _check_format("empty", sparse_format)
    kind = config.default_float if dtype is None else dtype
    sizes = tuple(integer("empty", "shape", n) for n in shape)
    if sparse_format == "bcoo":
        batch, last = sizes[:n_batch], len(sizes) - n_dense
        inner = sizes[n_batch:last]
        indices = np.broadcast_to(np.asarray(inner, np.int64).astype(index_dtype), (*batch, nse, len(inner)))
        data = tnp.zeros((*batch, nse, *sizes[last:]), kind)
        return BCOO((data, indices), shape=sizes, indices_sorted=True, unique_indices=True)
    rows, columns = matrix_shape("empty", sizes)
    data, nothing = tnp.zeros(0, kind), tnp.zeros(0, index_dtype)
    if sparse_format == "coo":
        return COO((data, nothing, nothing), shape=sizes, rows_sorted=True, cols_sorted=True)
    lines = rows if sparse_format == "csr" else columns
    made = CSR if sparse_format == "csr" else CSC
    return made((data, nothing, tnp.zeros(lines + 1, index_dtype)), shape=sizes)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
) -> JAXSparse:  # fmt: skip
    """Return ones on a diagonal: [N, M], M = N by default. k: the diagonal, above the main one if positive.

    >>> from tracer.experimental import sparse
    >>> sparse.eye(2, 3, 1).todense()
    Array([[0., 1., 0.],
           [0., 0., 1.]], f64)
    """
    _check_format("eye", sparse_format)
    kind = config.default_float if dtype is None else dtype
    rows, columns = integer("eye", "N", N), integer("eye", "N" if M is None else "M", N if M is None else M)
    offset = integer("eye", "k", k)
    first = np.arange(max(0, -offset), max(0, -offset) + max(0, min(rows + min(offset, 0), columns - max(offset, 0))))
    pair = (first.astype(index_dtype), (first + offset).astype(index_dtype))
    data = tnp.ones(len(first), kind)
    if sparse_format == "bcoo":
        return BCOO((data, np.stack(pair, 1)), shape=(rows, columns), indices_sorted=True, unique_indices=True)
    if sparse_format == "coo":
        return COO((data, *pair), shape=(rows, columns), rows_sorted=True, cols_sorted=True)
    lines, others = pair if sparse_format == "csr" else pair[::-1]
    count = rows if sparse_format == "csr" else columns
    indptr = np.searchsorted(lines, np.arange(count + 1)).astype(index_dtype)
    made = CSR if sparse_format == "csr" else CSC
    return made((data, others, indptr), shape=(rows, columns))


def random_bcoo(
    key: Any, shape: Sequence[int], *, dtype: Any = float, indices_dtype: Any = None, nse: int | float = 0.2,
    n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True, sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform, **kwds: Any,
) -> BCOO:  # fmt: skip
    """Return an array with random values at random places.

    key: a random key; nse: the number of entries of each batch, or their share, below 1, of all elements; generator:
    (key, shape, dtype, **kwds) -> values. unique_indices: whether places are distinct; sorted_indices: whether they are
    in row-major order. Raises ArgumentError for more entries than elements. Its draws are not JAX's.

    >>> from tracer.experimental import sparse
    >>> sparse.random_bcoo(tracer.random.key(0), (4, 5), nse=3)
    BCOO(f64[4, 5], nse=3)
    """
    sizes = tuple(integer("random_bcoo", "shape", n) for n in shape)
    last = len(sizes) - n_dense
    batch, inner, outer = sizes[:n_batch], sizes[n_batch:last], sizes[last:]
    total, lanes = math.prod(inner), math.prod(batch)
    count = math.ceil(nse * total) if 0 < nse < 1 else int(nse)
    if count < 0 or (unique_indices and count > total):
        text = f"random_bcoo{here()}: distinct places are at most as many as the sparse elements"
        raise ArgumentError(message(text, f"got nse={nse} for {total} elements", help="unique_indices=False"))
    by_place, by_value = random.split(key)
    kind = config.default_float if dtype is float else np.dtype(dtype)
    drawn = []
    for lane in random.split(by_place, max(lanes, 1)) if total else ():
        flat = random.choice(lane, total, (count,), replace=not unique_indices)
        drawn.append(tnp.sort(flat) if sorted_indices else flat)
    places = tnp.concatenate(drawn) if drawn else tnp.zeros(0, "int64")
    index_dtype = np.dtype("int32" if indices_dtype is None else indices_dtype)
    model = Entries(places, tnp.zeros((0, len(inner)), index_dtype), inner)
    indices = indices_of(places, model).reshape(*batch, count if total else 0, len(inner))
    values = generator(by_value, (*batch, indices.shape[-2], *outer), kind, **kwds)
    assert dtypes.is_inexact(kind) or not kwds or values is not None
    return BCOO((values, indices), shape=sizes, indices_sorted=sorted_indices, unique_indices=unique_indices)
