"""Matrices assembled by a pattern: block diagonal and Toeplitz."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ShapeError, message
from tracer.numpy import atleast_2d, concatenate, conj, pad, ravel
from tracer.numpy.core.conversion import array_of, unified
from tracer.trace.array import Array
from tracer.trace.source import here


def block_diag(*arrs: Any) -> Array:
    """Return the block diagonal matrix of the given matrices.

    arrs: matrices [n_i, m_i], vectors as rows, numbers; none for [1, 0]. Returns [sum of n_i, sum of m_i], of the dtype
    to which all are promoted. Raises ShapeError for more axes.

    >>> tracer.scipy.linalg.block_diag(tnp.ones((1, 2)), 3.0)
    Array([[1., 1., 0.],
           [0., 0., 3.]], f64)
    """
    blocks = [atleast_2d(array_of("block_diag", a)) for a in arrs] or [array_of("block_diag", np.zeros((1, 0)))]
    for block in blocks:
        if block.ndim > 2:
            raise ShapeError(message(f"block_diag{here()} takes matrices", f"got {block.type}", help="see vmap"))
    columns = [block.shape[1] for block in blocks]
    before = np.cumsum([0, *columns]).tolist()
    rows = [
        pad(block, ((0, 0), (first, before[-1] - last)))
        for block, first, last in zip(unified("block_diag", blocks), before[:-1], before[1:], strict=True)
    ]
    return concatenate(rows, 0)


def toeplitz(c: Any, r: Any = None) -> Array:
    """Return the matrix that is constant along its diagonals, given its first column and its first row.

    c: [n], flattened; r: [m], whose first element is ignored; by default the conjugate of c. Returns [n, m], of the
    dtype to which both are promoted.

    >>> tracer.scipy.linalg.toeplitz(tnp.asarray([1, 2]), tnp.asarray([0, 5, 6]))
    Array([[1, 5, 6],
           [2, 1, 5]], i64)
    """
    column = ravel(array_of("toeplitz", c))
    row = conj(column) if r is None else ravel(array_of("toeplitz", r))
    column, row = unified("toeplitz", [column, row])
    n, m = column.size, row.size
    places = m - 1 + np.arange(n)[:, None] - np.arange(m)  # the reversed row in front of the column
    return concatenate([row[:0:-1], column])[places] if n and m else column[:, None] * row
