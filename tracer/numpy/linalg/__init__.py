"""Linear algebra: `tracer.numpy.linalg`. Products are here; solutions, decompositions and norms in their files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ShapeError, message
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.docstrings import PHRASES
from tracer.numpy.linalg.decompositions import eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from tracer.numpy.linalg.least_squares import lstsq, matrix_rank, pinv
from tracer.numpy.linalg.norms import cond, matrix_norm, norm, vector_norm
from tracer.numpy.linalg.solving import cholesky, det, inv, slogdet, solve, tensorinv, tensorsolve
from tracer.numpy.reduce.einsum import einsum
from tracer.numpy.reduce.matmul import cross as _cross
from tracer.numpy.reduce.matmul import matmul, tensordot, vecdot
from tracer.numpy.reduce.matmul import outer as _outer
from tracer.numpy.shapes.manipulation import broadcast_to, matrix_transpose
from tracer.numpy.shapes.matrices import diagonal as _diagonal
from tracer.numpy.shapes.matrices import eye
from tracer.numpy.shapes.matrices import trace as _trace
from tracer.primitives.base.broadcasting import axis_of
from tracer.runtime.eager.call_cache import cached
from tracer.runtime.values.fresh_handles import makes_new
from tracer.trace.array import Array
from tracer.trace.docstrings import say
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
    "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv",
    "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot",
    "vector_norm",
]  # fmt: skip


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Return the vector product of vectors of three components along an axis.

    x1, x2: [*s], 3 along `axis`, by default the last; the other axes broadcast. Returns [*s] in the promoted dtype.
    Raises ShapeError for vectors of two components, for which `tracer.numpy.cross` returns the third.

    >>> tnp.linalg.cross(tnp.asarray([1, 0, 0]), tnp.asarray([0, 1, 0]))
    Array([0, 0, 1], i64)
    """
    for x in (array_of("cross", x1), array_of("cross", x2)):
        if x.shape[axis_of("cross", axis, x.ndim)] != 3:
            raise ShapeError(message(f"cross{here()} takes vectors of 3 components", f"got {x.type}, axis={axis}"))
    return _cross(x1, x2, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Return the diagonal of matrices in the last two axes.

    x: [*s, r, c]; offset: above the main diagonal if positive. Returns [*s, n], in x's dtype.

    >>> tnp.linalg.diagonal(tnp.asarray([[1, 2], [3, 4]]))
    Array([1, 4], i64)
    """
    return _diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Return the sum over the diagonal of matrices in the last two axes.

    x: [*s, r, c]; offset: above the main diagonal if positive; dtype: of the sum, by default x's, 64 bits for bools and
    small integers. Returns [*s].

    >>> tnp.linalg.trace(tnp.asarray([[1, 2], [3, 4]]))
    Array(5, i64)
    """
    return _trace(x, offset, -2, -1, dtype)


def outer(x1: Any, x2: Any, /) -> Array:
    """Return the products of each element of one vector with each element of another.

    x1: [m]; x2: [n]; other shapes are flattened. Returns [m, n], in the promoted dtype.

    >>> tnp.linalg.outer(tnp.asarray([1, 2]), tnp.asarray([3, 4]))
    Array([[3, 4],
           [6, 8]], i64)
    """
    return _outer(x1, x2)


@makes_new
def matrix_power(a: Any, n: int) -> Array:
    """Return a square matrix to an integer power, by repeated squaring; for n < 0, the power of its inverse.

    a: [*s, n, n]; n: a concrete integer. Returns [*s, n, n], in a's dtype, floats if n < 0. Raises ShapeError for other
    shapes, and the errors of `inv`.

    >>> tnp.linalg.matrix_power(tnp.asarray([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], i64)
    """
    x, n = array_of("matrix_power", a), integer("matrix_power", "n", n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(message(f"matrix_power{here()} takes square matrices", f"got {x.type}, n={n}"))
    if n < 0:
        x, n = inv(x), -n
    result = None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        x, n = (matmul(x, x) if n > 1 else x), n >> 1
    return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape) if result is None else result


@makes_new
def multi_dot(arrays: Sequence[Any]) -> Array:
    """Return the product of two or more matrices, multiplied in the cheapest order.

    arrays: [m, k], [k, l], ...; the first and the last may be vectors. Returns [m, n], without the axis of a vector, in
    the promoted dtype. Raises ShapeError if neighbours do not fit.

    >>> tnp.linalg.multi_dot([tnp.ones((2, 3)), tnp.ones((3, 4)), tnp.ones((4, 2))]).shape
    (2, 2)
    """
    letters = "abcdefghijklmnopqrstuvwxyz"
    terms = [letters[i : i + 2] for i in range(len(arrays))]
    ranks = [np.ndim(x) if not isinstance(x, Array) else x.ndim for x in arrays]
    if ranks[0] == 1:
        terms[0] = terms[0][1]
    if ranks[-1] == 1:
        terms[-1] = terms[-1][0]
    result = (terms[0][0] if ranks[0] == 2 else "") + (terms[-1][-1] if ranks[-1] == 2 else "")
    return einsum(f"{','.join(terms)}->{result}", *arrays, optimize="optimal")


LinAlgError = np.linalg.LinAlgError

_CACHED = ("diagonal", "matrix_power", "multi_dot", "outer", "trace")  # by types alone
set_boundaries(globals(), _CACHED, cached)
set_boundaries(globals(), [name for name in __all__ if name not in _CACHED])
say([globals()[name] for name in __all__ if name != "LinAlgError"], PHRASES)
