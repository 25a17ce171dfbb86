"""Least squares, pseudoinverses and ranks by singular values, for `tracer.numpy.linalg`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tracer.errors import ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.promotion import promoted_inexact
from tracer.numpy.elementwise.arithmetic import absolute
from tracer.numpy.linalg.decompositions import singular_values, svd
from tracer.numpy.linalg.solving import both, matrices
from tracer.numpy.reduce.reductions import all, count_nonzero, max, sum
from tracer.numpy.shapes.creation import zeros
from tracer.numpy.shapes.manipulation import broadcast_to
from tracer.numpy.shapes.where import where
from tracer.primitives.elementwise import comparison
from tracer.primitives.linalg import least_squares
from tracer.primitives.linalg.matrix_stacks import adjoint, product
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries
from tracer.transforms.custom.derivatives import custom_jvp


def _relative(x: Array, factor: int = 1) -> float:
    """Return the default share of the largest singular value, below which a singular value counts as zero."""
    return float(factor * np.finfo(x.dtype).eps) * (x.shape[-1] if x.shape[-1] > x.shape[-2] else x.shape[-2])


def _threshold(limit: Any, like: Array) -> Array:
    """Return a bound for singular values [*s, k], given for each matrix [*s] or for all."""
    bound = array_of("rtol", limit).astype(like.dtype)
    return bound[..., None]


def _bounded(x: Array, limit: Any) -> tuple[Array, Array]:
    """Return matrices [*s, m, n] and a bound for each [*s], both broadcast to one stack."""
    bound = array_of("rtol", limit).astype(dtypes.real_dtype(x.dtype))
    stack = np.broadcast_shapes(bound.shape, x.shape[:-2])
    return broadcast_to(x, (*stack, *x.shape[-2:])), broadcast_to(bound, stack)


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """Return the Moore-Penrose inverses of matrices.

    a: [*s, m, n]; rcond, rtol: singular values up to it times the largest count as 0, by default 10 max(m, n)
    roundings; hermitian: whether a is. Returns floats or complex numbers [*s, n, m]. Raises LinAlgError if a concrete
    matrix has elements that are not finite. The derivative is the one at constant rank: Golub & Pereyra 1973, SIAM J.
    Numer. Anal. 10(2).

    >>> tnp.linalg.pinv(tnp.asarray([[2.0], [0.0]]))
    Array([[0.5, 0. ]], f64)
    """
    x = matrices("pinv", a, square=bool(hermitian))
    limit = rcond if rcond is not None else rtol if rtol is not None else _relative(x, 10)
    found = _of_hermitian(x, limit) if hermitian else least_squares.pinv(*_bounded(x, limit))
    if concrete_value(found) is not None and not np.isfinite(found).all():
        singular_values("pinv", x, hermitian=bool(hermitian))
    return found


@partial(custom_jvp, nondiff_argnums=(1,))
def _of_hermitian(x: Array, limit: Any) -> Array:
    left, values, right = svd(x, hermitian=True)
    kept = values > _threshold(limit, values) * max(values, -1, keepdims=True) if values.shape[-1] else values > 0
    inverted = where(kept, 1 / where(kept, values, 1), 0)
    return product(adjoint(right), inverted[..., :, None] * adjoint(left))


@_of_hermitian.defjvp
def _(limit: Any, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    p = _of_hermitian(*primals, limit)
    return p, least_squares.pinv_tangent(p, *primals, *tangents)


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Array, Array, Array, Array]:
    """Return the x that minimises |A x - b|, with residuals, rank and singular values.

    a: [m, n]; b: [m] or [m, k]; rcond: singular values up to it times the largest count as 0, by default max(m, n)
    roundings, one if negative. Returns x [n] or [n, k], of smallest norm; the squared norms of a x - b, [1] or [k] if
    m > n, else [0]; the rank (i32); singular values [min(m, n)]. Compiled programs that use x alone compute no singular
    values where the rank is surely full. Raises LinAlgError if a concrete matrix has elements that are not finite.

    >>> tnp.linalg.lstsq(tnp.asarray([[1.0], [1.0]]), tnp.asarray([1.0, 3.0]))[0]
    Array([2.], f64)
    """
    x, y = both("lstsq", a, b)
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise ShapeError(
            message(
                f"lstsq{here()} takes a matrix [m, n] and b [m] or [m, k]",
                f"got {x.type} and {y.type}",
                help="tracer.vmap takes stacks of them",
            )
        )
    matrices("lstsq", x, square=False)
    limit = _relative(x) if rcond is None else rcond
    side = y[:, None] if y.ndim == 1 else y
    values = singular_values("lstsq", x)
    _, bound = _bounded(x, limit)
    bound = where(bound < 0, np.finfo(values.dtype).eps, bound)
    solution = least_squares.lstsq(x, side, bound)
    rank = zeros((), dtype="int32")
    if values.shape[0]:
        rank = count_nonzero(values > bound * max(values)).astype("int32")
    rest = absolute(side - product(x, solution))
    residuals = sum(rest * rest, 0) if x.shape[0] > x.shape[1] else zeros(0, dtype=values.dtype)
    return (solution[:, 0] if y.ndim == 1 else solution), residuals, rank, values


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """Return the number of singular values that are not negligible.

    A: [*s, m, n], or vectors, of rank 1 unless all zero; tol, rtol: the negligible size, absolute or relative to the
    largest, by default max(m, n) roundings; hermitian: whether A is. Returns i64 [*s].

    >>> tnp.linalg.matrix_rank(tnp.ones((2, 2)))
    Array(1, i64)
    """
    (x,) = promoted_inexact("matrix_rank", A)
    if x.ndim < 2:
        return (~all(comparison.eq(x, 0))).astype("int64")
    matrices("matrix_rank", x, square=bool(hermitian))
    values = singular_values("matrix_rank", x, hermitian=bool(hermitian))
    if not values.shape[-1]:
        return zeros(values.shape[:-1], dtype="int64")
    if tol is not None:
        bound = _threshold(tol, values)
    else:
        bound = _threshold(_relative(x) if rtol is None else rtol, values) * max(values, -1, keepdims=True)
    return count_nonzero(values > bound, axis=-1).astype("int64")


set_boundaries(globals(), ["lstsq", "matrix_rank", "pinv"])
