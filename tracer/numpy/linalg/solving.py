"""Solutions, inverses, determinants and Cholesky factors of stacks of matrices, for `tracer.numpy.linalg`.

Concrete matrices without an inverse or a factor raise, as in NumPy; compiled, the results hold NaN or infinity, as in
JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import MatrixError, ShapeError, message
from tracer.ir import shape as shapes
from tracer.numpy.core.conversion import array_of, broadcast, cast, unified
from tracer.numpy.core.promotion import promoted_inexact
from tracer.numpy.elementwise.arithmetic import absolute
from tracer.numpy.elementwise.transcendental import log
from tracer.numpy.linalg import concrete_linalg
from tracer.numpy.reduce.reductions import prod as multiplied
from tracer.numpy.reduce.reductions import sum
from tracer.numpy.shapes.creation import ones
from tracer.numpy.shapes.joining import concatenate
from tracer.numpy.shapes.manipulation import moveaxis
from tracer.numpy.shapes.matrices import diagonal, trace
from tracer.numpy.shapes.where import where
from tracer.primitives.elementwise import complex as parts
from tracer.primitives.linalg import factorizations, matrix_stacks
from tracer.primitives.linalg import solve as solves
from tracer.primitives.linalg.triangular import solve_triangular
from tracer.runtime.eager.call_cache import cached
from tracer.runtime.system.fork_safety import apart_from_forks
from tracer.runtime.system.ignore_fp_warnings import quietly
from tracer.trace.array import Array, concrete_value
from tracer.trace.convert import as_array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.tracebacks import set_boundaries
from tracer.transforms.custom.derivatives import custom_jvp

_NUMPYS_DET, _NUMPYS_SLOGDET = map(apart_from_forks, (np.linalg.det, np.linalg.slogdet))


class SlogdetResult(NamedTuple):
    """Signs of determinants, and the logarithms of their absolute values."""

    sign: Array
    logabsdet: Array


def matrices(name: str, a: Any, *, square: bool = True) -> Array:
    """Return a stack of matrices as floats or complex numbers. Raises ShapeError and DTypeError for other arrays."""
    (x,) = promoted_inexact(name, a)
    matrix_stacks.matrix_type(name, x.type, square=square)
    return x


# cholesky


def cholesky(a: Any, /, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular L with A = L L^H, for Hermitian positive definite matrices, or its adjoint.

    a: [*s, n, n]; upper: return the adjoint L^H; symmetrize_input: factor (a + a^H) / 2, so that derivatives are
    Hermitian; otherwise only one triangle of `a` is read. Returns floats or complex numbers [*s, n, n]; integers are
    cast. Raises LinAlgError if a concrete matrix is not positive definite; the factor of a traced one is NaN.

    >>> tnp.linalg.cholesky(tnp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], f64)
    """
    if symmetrize_input and not upper and (found := concrete_linalg.lower_factor(a)) is not None:
        return found
    x = matrices("cholesky", a)
    if symmetrize_input:
        x = hermitian_part(x)
    elif upper:
        x = matrix_stacks.adjoint(x)
    factor = positive_factor("cholesky", x)
    return matrix_stacks.adjoint(factor) if upper else factor


@partial(cached, named=False)
def hermitian_part(x: Array) -> Array:
    """Return (x + x^H) / 2."""
    return 0.5 * (x + matrix_stacks.adjoint(x))


def positive_factor(name: str, x: Array) -> Array:
    """Return the Cholesky factors of the lower triangles. Raises MatrixError if a concrete matrix has none."""
    factor: Array = factorizations.cholesky(x)
    known = concrete_value(factor)
    if known is not None and known.size and np.isnan(known[..., -1, -1]).any():
        raise MatrixError(
            message(
                f"{name}{here()}: Matrix is not positive definite",
                f"got {x.type}{which(np.isnan(known[..., -1, -1]))}",
                help="add a small multiple of the identity against rounding errors: a + 1e-10 * eye(n)",
            )
        )
    return factor


def which(bad: Any) -> str:
    """Return text on the index of the first bad matrix of a stack."""
    return f", at {list(map(int, np.argwhere(bad)[0]))}" if np.ndim(bad) else ""


# solve and inv


def solve(a: Any, b: Any, /) -> Array:
    """Return x with a x = b, by LU with partial pivoting.

    a: [*s, n, n], b: [n] or [*t, n, k], leading axes broadcast. Raises LinAlgError if a concrete matrix is singular; a
    traced one gives infinity or NaN. Derivatives reuse the factorisation. Returns floats or complex numbers, in the
    promoted dtype.

    >>> tnp.linalg.solve(tnp.asarray([[2.0, 1.0], [0.0, 4.0]]), tnp.asarray([4.0, 8.0]))
    Array([1., 2.], f64)
    """
    found = concrete_linalg.solution(a, b)
    if found is not None:
        return found
    result = _solution(a, b)
    known = concrete_value(result)
    if known is not None and not np.isfinite(known).all():
        x, side, _ = system("solve", a, b)
        _solved(x, side, _checked)
    return result


@partial(cached, named=False)
def _solution(a: Any, b: Any) -> Array:
    x, side, vector = system("solve", a, b)
    result = _solved(x, side, lambda name, x, result: result)
    return result[..., 0] if vector else result


def system(name: str, a: Any, b: Any) -> tuple[Array, Array, bool]:
    """Return matrices and right-hand sides of one dtype, and whether `b` was one vector. name: for errors."""
    x, y = both(name, a, b)
    matrix_stacks.matrix_type(name, x.type)
    vector = y.ndim == 1
    side = y[:, None] if vector else y
    if side.ndim < 2 or side.shape[-2] != x.shape[-1]:
        raise ShapeError(
            message(
                f"{name}{here()}: the sizes of the operands do not fit",
                f"got {x.type} and {y.type}",
                help="b is a vector [n] or matrices [*s, n, k]; for one vector a matrix pass b[..., None]",
            )
        )
    return x, side, vector


def _solved(x: Array, side: Array, checked: Callable[[str, Array, Array], Array]) -> Array:
    """Return the solutions for stacks of both; a single matrix is factored once. checked: as `_checked`."""
    stack = shapes.broadcast(x.shape[:-2], side.shape[:-2], operation="solve")
    if x.ndim == 2 and stack:
        last = moveaxis(side.reshape((prod(stack), *side.shape[-2:])), 0, 1)
        flat = checked("solve", x, solves.solve(x, last.reshape((x.shape[0], -1)) if side.size else last[:, 0]))
        apart = flat.reshape(last.shape) if side.size else last
        return moveaxis(apart, 1, 0).reshape((*stack, *side.shape[-2:]))
    x, side = broadcast(x, (*stack, *x.shape[-2:])), broadcast(side, (*stack, *side.shape[-2:]))
    return checked("solve", x, solves.solve(x, side))


def _checked(name: str, x: Array, result: Array) -> Array:
    """Return the solutions. Raises MatrixError if they are concrete and a matrix is singular."""
    known, matrix = concrete_value(result), concrete_value(x)
    if known is not None and matrix is not None and not np.isfinite(known).all():
        factors = factorizations.lu_p.reference(matrix)[0]  # type: ignore[operator]  # as are all but NoRule
        singular = (np.diagonal(factors, axis1=-2, axis2=-1) == 0).any(-1)
        if singular.any():
            raise MatrixError(
                message(
                    f"{name}{here()}: Singular matrix",
                    f"got {x.type}{which(singular)}",
                    help="tnp.linalg.lstsq and tnp.linalg.pinv take singular matrices",
                )
            )
    return result


def inv(a: Any, /) -> Array:
    """Return the inverses of square matrices.

    a: [*s, n, n]. Returns [*s, n, n], in a's dtype; integers are cast to floats. Raises LinAlgError if a concrete
    matrix is singular; a traced one gives infinity or NaN. To multiply by an inverse, `solve` is faster and more
    accurate.

    >>> tnp.linalg.inv(tnp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], f64)
    """
    found = concrete_linalg.inverse(a)
    if found is not None:
        return found
    x = matrices("inv", a)
    return _checked("inv", x, inverse(x))


@partial(cached, named=False)
def inverse(x: Array) -> Array:
    """Return the inverses of matrices, with infinity or NaN for singular ones."""
    return solves.solve(x, matrix_stacks.identity(x.shape, x.dtype))


def tensorinv(a: Any, ind: int = 2) -> Array:
    """Return the inverse of an array as a linear map from its last axes to its first `ind` axes.

    a: [*s, *t], with as many elements in the first `ind` axes as in the last. Returns floats or complex numbers [*t,
    *s], such that tensordot(tensorinv(a, ind), tensordot(a, x)) is x. Raises ShapeError for other sizes.

    >>> tnp.linalg.tensorinv(tnp.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    (x,), ind = promoted_inexact("tensorinv", a), integer("tensorinv", "ind", ind)
    rows, columns = x.shape[:ind], x.shape[ind:]
    if ind <= 0 or prod(rows) != prod(columns):
        raise ShapeError(
            message(
                f"tensorinv{here()}: the first ind > 0 axes must hold as many elements as the last ones",
                f"got {x.type}, ind={ind}",
                help="another ind splits the axes elsewhere",
            )
        )
    return inv(x.reshape((prod(rows), prod(columns)))).reshape((*columns, *rows))


def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Array:
    """Return x with tensordot(a, x, x.ndim) = b.

    a: [*s, *t], with as many elements in *s as in *t; b: [*s]; axes: of `a`, moved to its end first. Returns floats or
    complex numbers [*t]. Raises ShapeError for other sizes.

    >>> tnp.linalg.tensorsolve(tnp.eye(6).reshape(2, 3, 6), tnp.ones((2, 3))).shape
    (6,)
    """
    x, y = both("tensorsolve", a, b)
    if axes is not None:
        last = [axis % x.ndim for axis in axes]
        x = x.transpose(*[axis for axis in range(x.ndim) if axis not in last], *last)
    found = x.shape[y.ndim :]
    if prod(found) != y.size or x.size != y.size**2:
        raise ShapeError(
            message(
                f"tensorsolve{here()}: the solution must have as many elements as b",
                f"got {x.type} and {y.type}",
                help="a has the axes of b, followed by the axes of the solution",
            )
        )
    return solve(x.reshape((y.size, y.size)), y.reshape((y.size,))).reshape(found)


def both(name: str, a: Any, b: Any) -> list[Array]:
    """Return two operands as floats or complex numbers of one dtype, each in its own shape."""
    return [promoted_inexact(name, x)[0] for x in unified(name, [array_of(name, x) for x in (a, b)])]


# Determinants


def det(a: Any, /) -> Array:
    """Return the determinants of square matrices [*s, n, n].

    a: [*s, n, n]. Returns floats or complex numbers [*s]; integers are cast. Raises ShapeError for other shapes.

    Matrices of up to three rows use formulas, which have derivatives of every order. Larger ones use LU. Their
    derivative is the matrix of cofactors, also for singular matrices of rank n - 1.

    >>> tnp.linalg.det(tnp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., f64)
    """
    found = concrete_linalg.determinant(a)
    if found is not None:
        return found
    x = matrices("det", a)
    if state.innermost is not None:
        return _formula(x, _det)
    return _small_det(x) if x.shape[-1] <= 3 else as_array(quietly(_NUMPYS_DET, x._value), copy=False)


@partial(cached, named=False)
def _small_det(x: Array) -> Array:
    return _formula(x, _det)


def _formula(x: Array, of_larger: Callable[[Array], Array]) -> Array:
    n = x.shape[-1]
    if n == 0:
        return ones(x.shape[:-2], dtype=x.dtype)
    if n == 1:
        return x[..., 0, 0]
    if n == 2:
        return x[..., 0, 0] * x[..., 1, 1] - x[..., 0, 1] * x[..., 1, 0]
    if n == 3:
        return sum(x[..., 0, :] * _cross(x[..., 1, :], x[..., 2, :]), axis=-1)
    return of_larger(x)


def _cross(x: Array, y: Array) -> Array:
    first, second = [1, 2, 0], [2, 0, 1]
    return x[..., first] * y[..., second] - x[..., second] * y[..., first]


@custom_jvp
def _det(x: Array) -> Array:
    factors, pivots, _ = factorizations.lu(x)
    return _parity(pivots, x) * multiplied(diagonal(factors, axis1=-2, axis2=-1), axis=-1)


@_det.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    determinant, cofactors = _by_cofactors(primals[0], tangents[0])
    return determinant, trace(cofactors, axis1=-2, axis2=-1)


def _by_cofactors(x: Array, side: Array) -> tuple[Array, Array]:
    """Return det x, and det x x^-1 side, which is finite if only the last pivot is zero.

    With det x = p u, u being the last pivot, U y = det x z has p z as its last row, and no division by u.
    """
    factors, pivots, permutation = factorizations.lu(x)
    pivot = diagonal(factors, axis1=-2, axis2=-1)
    others = _parity(pivots, x) * multiplied(pivot[..., :-1], axis=-1)
    determinant = others * pivot[..., -1]
    half = solve_triangular(factors, factorizations.permuted(side, permutation), unit_diagonal=True)
    last = half[..., -1:, :] * others[..., None, None]
    scaled = concatenate([half[..., :-1, :] * determinant[..., None, None], last], axis=-2)
    corner = np.zeros(x.shape[-2:], bool)
    corner[-1, -1] = True
    return determinant, solve_triangular(where(corner, 1, factors), scaled, lower=False)


def _parity(pivots: Array, like: Array) -> Array:
    """Return -1 where rows were exchanged an odd number of times, else 1."""
    odd = sum(pivots != np.arange(pivots.shape[-1], dtype=np.int32), axis=-1) & 1
    return cast(1 - 2 * odd, like.dtype)


def slogdet(a: Any, /) -> SlogdetResult:
    """Return the sign of determinants and the logarithms of their absolute values: (sign, logabsdet).

    a: [*s, n, n]. Returns two arrays [*s], floats, or complex signs of modulus 1. A singular matrix gives 0 and -inf.

    >>> tnp.linalg.slogdet(tnp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    SlogdetResult(sign=Array(1., f64), logabsdet=Array(0.69314718, f64))
    """
    found = concrete_linalg.sign_and_logarithm(a)
    if found is not None:
        return SlogdetResult(*found)
    x = matrices("slogdet", a)
    if state.innermost is not None:
        return SlogdetResult(*_slogdet(x))
    return SlogdetResult(*[as_array(part, copy=False) for part in quietly(_NUMPYS_SLOGDET, x._value)])


@custom_jvp
def _slogdet(x: Array) -> tuple[Array, Array]:
    factors, pivots, _ = factorizations.lu(x)
    pivot = diagonal(factors, axis1=-2, axis2=-1)
    signs = _parity(pivots, x) * multiplied(parts.sign(pivot), axis=-1)
    return signs, sum(log(absolute(pivot)), axis=-1)


@_slogdet.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    (x,), (dx,) = primals, tangents
    sign, logarithm = _slogdet(x)
    moved = trace(solves.solve(x, dx), axis1=-2, axis2=-1)
    if not parts.is_complex(x):
        return (sign, logarithm), (sign * 0, moved)
    real = parts.real(moved)
    return (sign, logarithm), (sign * (moved - real), real)


set_boundaries(globals(), ["cholesky", "det", "inv", "slogdet", "solve", "tensorinv", "tensorsolve"])
