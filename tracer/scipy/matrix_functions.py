"""Functions of matrices: exponential, logarithm, square root; Sylvester's equation and the polar decomposition."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.lax import custom_linear_solve, fori_loop, while_loop
from tracer.numpy import abs as absolute
from tracer.numpy import (
    arange,
    broadcast_arrays,
    ceil,
    clip,
    diagonal,
    exp2,
    eye,
    linalg,
    log2,
    nan,
    ones_like,
    sqrt,
    triu,
    where,
    zeros,
)
from tracer.numpy.core.conversion import array_of, unified
from tracer.numpy.core.promotion import promoted_inexact
from tracer.numpy.linalg.solving import both
from tracer.primitives.linalg import matrix_stacks, similarity, spectral, triangular
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.transforms.custom.closures import closure_convert
from tracer.transforms.custom.derivatives import custom_jvp
from tracer.transforms.jacobian_products import jvp
from tracer.transforms.vectorize import vmap

# Diagonal Padé approximants by dtype: the largest norm for each, and its coefficients
_SINGLE = (3.925724783138660, (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1))
_DOUBLE = (
    5.371920351148152,
    (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
     670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1),
)  # fmt: skip


def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Return the exponential of a matrix, the sum of A^k / k!, by scaling and squaring.

    A: floating or complex [..., n, n]; integers are cast. Returns the same shape. NaN where more than `max_squarings`
    doublings of A would be needed, at norms of some 350,000 (f64). `upper_triangular` has no effect. Derivatives of
    every order, in both modes. Higham 2005, SIAM J. Matrix Anal. Appl. 26(4).

    >>> tracer.scipy.linalg.expm(tnp.asarray([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], f64)
    """
    del upper_triangular
    (a,), limit = promoted_inexact("expm", A), integer("expm", "max_squarings", max_squarings)
    matrix_stacks.matrix_type("expm", a.type, square=True)

    def exponential(matrix: Array) -> Array:
        return _exponential(matrix, limit)

    for _ in range(a.ndim - 2):
        exponential = vmap(exponential)
    return exponential(a) if a.size else a


def _exponential(a: Array, max_squarings: int) -> Array:
    """Return the exponential of one matrix: the approximant of A / 2^s, squared s times."""
    limit, coefficients = _DOUBLE if dtypes.real_dtype(a.dtype) == dtypes.F64 else _SINGLE
    norm = absolute(a).sum(0).max()
    doublings = clip(ceil(log2(norm / limit)), 0, max_squarings + 1).astype("int32")
    scale = exp2(-doublings.astype(norm.dtype))
    found = _approximant(a * scale, coefficients)
    found = fori_loop(0, doublings, lambda _, r: r @ r, found)
    return where(doublings > max_squarings, nan, found)


def _approximant(a: Array, coefficients: tuple[int, ...]) -> Array:
    """Return p(A) / p(-A) for a polynomial p, by its even and its odd part."""
    square = a @ a
    powers = [eye(a.shape[0], dtype=a.dtype), square]
    while 2 * len(powers) < len(coefficients):
        powers.append(powers[-1] @ square)
    scaled = [c / coefficients[0] for c in coefficients]
    even, odd = (_combined(powers, scaled[first::2]) for first in (0, 1))
    odd = a @ odd
    return linalg.solve(even - odd, even + odd)


def _combined(powers: list[Array], coefficients: list[float]) -> Array:
    total = powers[0] * coefficients[0]
    for power, coefficient in zip(powers[1:], coefficients[1:], strict=True):
        total = total + power * coefficient
    return total


def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """Return the exponential of A and its derivative along E, or the derivative alone.

    A, E: [*s, n, n] and [*t, n, n], which broadcast, of floats or complex numbers; method: without effect;
    compute_expm: whether to return the exponential, too. Returns (expm, derivative), each broadcast.

    >>> tracer.scipy.linalg.expm_frechet(tnp.zeros((1, 1)), tnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], f64)
    """
    del method
    a, e = both("expm_frechet", A, E)
    if min(a.ndim, e.ndim) < 2 or a.shape[-2:] != e.shape[-2:]:
        raise ShapeError(message(f"expm_frechet{here()}: A and E are of one shape", f"got {a.type} and {e.type}"))
    a, e = broadcast_arrays(a, e)
    value, derivative = jvp(expm, (a,), (e,))
    return (value, derivative) if compute_expm else derivative


# Functions by the Schur form


def _complex_schur(x: Array) -> tuple[Array, Array]:
    form, basis = similarity.schur(x.astype(dtypes.complex_dtype(x.dtype)))
    return form, basis


def _one_matrix(name: str, a: Any) -> Array:
    """Return one square matrix of floats or complex numbers. Raises ShapeError for stacks."""
    (x,) = promoted_inexact(name, a)
    matrix_stacks.matrix_type(name, x.type)
    if x.ndim != 2:
        raise ShapeError(message(f"{name}{here()} takes one matrix", f"got {x.type}", help="tracer.vmap takes stacks"))
    return x


def sqrtm(A: Any, blocksize: int = 1) -> Array:
    """Return the principal square root of a matrix, always complex.

    A: [*b, n, n]; blocksize: without effect. Returns complex [*b, n, n]: NaN where A has more than one eigenvalue of
    zero. Derivatives of every order, where no two eigenvalues of the root add up to zero. Björck & Hammarling 1983,
    Linear Algebra Appl. 52.

    >>> tracer.scipy.linalg.sqrtm(tnp.asarray([[4.0, 0.0], [0.0, 9.0]])).real
    Array([[2., 0.],
           [0., 3.]], f64)
    """
    del blocksize
    if np.ndim(A) > 2:
        return vmap(sqrtm)(array_of("sqrtm", A))
    x = _one_matrix("sqrtm", A)
    return _root(x.astype(dtypes.complex_dtype(x.dtype))) if x.size else x.astype(dtypes.complex_dtype(x.dtype))


@custom_jvp
def _root(x: Array) -> Array:
    form, basis = _complex_schur(x)
    n, rows = x.shape[0], arange(x.shape[0])
    roots = sqrt(_of_real(x, diagonal(form)))

    def column(j: Any, root: Array) -> Array:
        """Solve (R + r_jj I) r = t for the elements of column j above the diagonal."""
        above = rows < j
        inner = where(above[:, None] & above, root + roots[j] * eye(n, dtype=x.dtype), eye(n, dtype=x.dtype))
        found = triangular.solve_triangular(inner, where(above, form[:, j], 0)[:, None], lower=False)
        return root + where(rows == j, found, 0)

    upper = fori_loop(1, n, column, roots[:, None] * eye(n, dtype=x.dtype))
    return basis @ upper @ matrix_stacks.adjoint(basis)


def _of_real(x: Array, values: Array) -> Array:
    """Return eigenvalues, a real matrix's without imaginary rounding errors, which would choose a branch."""
    allowed = float(np.finfo(x.dtype).eps) * x.shape[0] * absolute(values).max()
    settled = (x.imag == 0).all() & (absolute(values.imag) <= allowed)
    return where(settled, values.real.astype(values.dtype), values)


@_root.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Return dX with X dX + dX X = dA."""
    root = _root(*primals)
    return root, _sylvester(root, root, tangents[0])


def logm(A: Any, disp: bool = True) -> Any:
    """Return the principal logarithm of a matrix, always complex, by inverse scaling and squaring.

    A: [*b, n, n], without eigenvalues of zero; disp=False returns also the relative error of its exponential. Returns
    complex [*b, n, n]. Derivatives of every order, forward and in reverse. Al-Mohy & Higham 2012, SIAM J. Sci. Comput.
    34(4).

    >>> tracer.scipy.linalg.logm(tnp.asarray([[1.0, 0.0], [0.0, 1.0]])).real
    Array([[0., 0.],
           [0., 0.]], f64)
    """
    if np.ndim(A) > 2:
        return vmap(lambda a: logm(a, disp))(array_of("logm", A))
    x = _one_matrix("logm", A)
    z = x.astype(dtypes.complex_dtype(x.dtype))
    found = _logarithm(z) if x.size else z
    if disp:
        return found
    return found, linalg.norm(expm(found) - z, 1) / linalg.norm(z, 1)


_NEAR, _NODES = 0.34, 8  # the largest norm of A - I for which so many nodes of Gauss and Legendre give all digits
_MAX_ROOTS = 100


def _logarithm(z: Array) -> Array:
    """Return 2^k log(A^(1 / 2^k)), by partial fractions near I: the sum of w X / (I + t X)."""
    unit = eye(z.shape[0], dtype=z.dtype)

    def far(state: Any) -> Any:
        root, count = state
        return (absolute(root - unit).sum(0).max() > _NEAR) & (count < _MAX_ROOTS)

    root, count = while_loop(far, lambda state: (_root(state[0]), state[1] + 1), (z, array_of("logm", np.int32(0))))
    rest = root - unit
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    total = sum(w / 2 * linalg.solve(unit + (1 + t) / 2 * rest, rest) for t, w in zip(nodes, weights, strict=True))
    return total * exp2(count.astype(dtypes.real_dtype(z.dtype)))


def funm(A: Any, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """Return a function of a matrix, always complex, by Parlett's recurrence on its Schur form.

    A: [n, n], with eigenvalues that differ. func: from the eigenvalues [n] to their images, elementwise; it may close
    over arrays. disp: with False, an estimate of the relative error besides. Returns complex [n, n]. Derivatives are of
    A and of arrays that func closes over. Parlett 1976, Linear Algebra Appl. 14(2).

    >>> tracer.scipy.linalg.funm(tnp.asarray([[1.0, 0.0], [0.0, 2.0]]), lambda x: x * x).real
    Array([[1., 0.],
           [0., 4.]], f64)
    """
    x = _one_matrix("funm", A)
    z = x.astype(dtypes.complex_dtype(x.dtype))
    if not x.size:
        return z if disp else (z, array_of("funm", np.finfo(z.dtype).eps))
    converted, captured = closure_convert(func, z[0])
    result, values, size = _of_eigenvalues(z, converted, *captured)
    if disp:
        return result
    gaps = absolute(values[:, None] - values) + where(eye(x.shape[0], dtype=bool), np.inf, 0)
    least, rounding = gaps.min(initial=np.inf), float(np.finfo(z.dtype).eps)
    return result, where(least == 0, np.inf, clip(rounding / where(least == 0, 1, least) * size, rounding, 1.0))


@partial(custom_jvp, nondiff_argnums=(1,))
def _of_eigenvalues(z: Array, func: Callable[..., Any], *captured: Array) -> tuple[Array, Array, Array]:
    """Return a function of a matrix, its eigenvalues and the norm of its Schur form above the diagonal."""
    form, basis = similarity.schur(z)
    n, rows = z.shape[0], arange(z.shape[0])
    values = diagonal(form)
    images = array_of("funm", func(values, *captured)).astype(form.dtype)

    def column(j: Any, found: Array) -> Array:
        """Solve (T - t_jj I) f = F t - f_jj t for the elements of column j above the diagonal."""
        above = rows < j
        inner = where(above[:, None] & above, form, 0)
        gaps = where(above, values - values[j], 1)
        inner = where(eye(n, dtype=bool), where(gaps == 0, 1, gaps), inner)
        t = where(above, form[:, j], 0)
        side = found @ t - images[j] * t
        above_column = triangular.solve_triangular(inner, side[:, None], lower=False)
        return found + where(rows == j, above_column, 0)

    upper = fori_loop(1, n, column, images[:, None] * eye(n, dtype=form.dtype))
    return basis @ upper @ matrix_stacks.adjoint(basis), values, linalg.norm(triu(form, 1), 1)


@_of_eigenvalues.defjvp
def _(func: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """Return V (G * C) V^-1 for C = V^-1 dA V: G has the difference quotients of `func`, or its derivative.

    Daleckii & Krein 1965; Higham 2008, Functions of Matrices, theorem 3.9.
    """
    (z, *captured), (dz, *moved) = primals, tangents
    outputs = _of_eigenvalues(z, func, *captured)
    values, basis = similarity.eig(z, right=True)
    inner = linalg.solve(basis, dz @ basis)
    images, slopes = jvp(lambda w: func(w, *captured), (values,), (ones_like(values),))
    _, direct = jvp(lambda *c: func(values, *c), tuple(captured), tuple(moved)) if captured else (None, 0 * images)
    inverses = spectral.resolved(values[:, None] - values, values)
    mean = 0.5 * (slopes[:, None] + slopes)
    quotients = where(inverses == 0, mean, (images[:, None] - images) * inverses)
    turned = quotients * inner + eye(z.shape[0], dtype=z.dtype) * direct
    tangent = linalg.solve(basis.mT, (basis @ turned).mT).mT
    return outputs, (tangent, diagonal(inner), 0 * outputs[2])


# Sylvester's equation


def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """Solve A X + X B = C for X.

    A: [n, n]; B: [m, m]; C: [n, m]; method, tol: without effect, by the Schur forms of A and B. Returns [n, m], floats
    or complex numbers of the promoted dtype. Results are infinite or NaN where eigenvalues of A and -B meet. Bartels &
    Stewart 1972, Commun. ACM 15(9).

    >>> a, b = tnp.asarray([[1.0]]), tnp.asarray([[2.0]])
    >>> tracer.scipy.linalg.solve_sylvester(a, b, tnp.asarray([[6.0]]))
    Array([[2.]], f64)
    """
    del method, tol
    given = unified("solve_sylvester", [promoted_inexact("solve_sylvester", x)[0] for x in (A, B, C)])
    a, b, c = given
    if any(x.ndim != 2 for x in given) or (*a.shape, *b.shape) != (c.shape[0],) * 2 + (c.shape[1],) * 2:
        raise ShapeError(
            message(
                f"solve_sylvester{here()}: the sizes of the operands do not fit",
                f"got {a.type}, {b.type} and {c.type}",
                help="A is [n, n], B [m, m] and C [n, m]",
            )
        )
    return _sylvester(a, b, c) if c.size else c


def _sylvester(a: Array, b: Array, c: Array) -> Array:
    """Return X with A X + X B = C. The transposed equation has the transposes of A and B."""
    return custom_linear_solve(
        lambda x: a @ x + x @ b, c, lambda _, side: _by_schur(a, b, side),
        transpose_solve=lambda _, side: _by_schur(a.mT, b.mT, side),
    )  # fmt: skip


def _by_schur(a: Array, b: Array, c: Array) -> Array:
    """Solve column by column: (R + s_jj I) y_j = f_j less the sum over k < j of s_kj y_k."""
    left, u = _complex_schur(a)
    right, v = _complex_schur(b)
    n, m = c.shape
    side = matrix_stacks.adjoint(u) @ c @ v
    columns, unit = arange(m), eye(n, dtype=side.dtype)

    def column(j: Any, found: Array) -> Array:
        rest = side[:, j] - found @ right[:, j]
        solved = triangular.solve_triangular(left + right[j, j] * unit, rest[:, None], lower=False)
        return found + where(columns == j, solved, 0)

    found = u @ fori_loop(0, m, column, zeros((n, m), side.dtype)) @ matrix_stacks.adjoint(v)
    return found if dtypes.is_complex(c.dtype) else found.real


# Polar decomposition


def polar(
    a: Any, side: str = "right", *, method: str = "qdwh", eps: float | None = None, max_iterations: int | None = None
) -> tuple[Array, Array]:  # fmt: skip
    """Return the polar decomposition: a = u p with Hermitian p, or a = p u.

    a: floats or complex numbers [m, n]; side: "right" for u p, "left" for p u; method: "qdwh" or "svd", which agree;
    eps, max_iterations: without effect. Returns u [m, n], with orthonormal columns or rows, and p [n, n], or [m, m] on
    the left. Derivatives of every order, for a of full rank.

    >>> u, p = tracer.scipy.linalg.polar(tnp.asarray([[0.0, -2.0], [2.0, 0.0]]))
    >>> p
    Array([[2., 0.],
           [0., 2.]], f64)
    """
    del eps, max_iterations
    (x,) = promoted_inexact("polar", a)
    matrix_stacks.matrix_type("polar", x.type, square=False)
    if side not in ("left", "right") or method not in ("qdwh", "svd"):
        raise ArgumentError(
            message(
                f'polar{here()}: side is "left" or "right", method "qdwh" or "svd"',
                f"got side={side!r}, method={method!r}",
            )
        )
    unitary = _unitary(x) if x.shape[-2] >= x.shape[-1] else matrix_stacks.adjoint(_unitary(matrix_stacks.adjoint(x)))
    other = matrix_stacks.adjoint(unitary)
    half = other @ x if side == "right" else x @ other
    return unitary, 0.5 * (half + matrix_stacks.adjoint(half))


@custom_jvp
def _unitary(x: Array) -> Array:
    _, left, right = spectral.svd(x, full_matrices=False)
    return left @ right


@_unitary.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Return dU = U W + (I - U U^H) dA P^-1, with skew W from W P + P W = U^H dA - dA^H U."""
    (x,), (dx,) = primals, tangents
    unitary = _unitary(x)
    adjoint = matrix_stacks.adjoint
    half = adjoint(unitary) @ x
    values, basis = spectral.eigh(0.5 * (half + adjoint(half)))
    inner = adjoint(unitary) @ dx
    skew = adjoint(basis) @ (inner - adjoint(inner)) @ basis
    turn = basis @ (skew / (values[..., :, None] + values[..., None, :])) @ adjoint(basis)
    tangent = unitary @ turn
    if x.shape[-2] > x.shape[-1]:
        beyond = dx - unitary @ inner
        tangent = tangent + beyond @ (basis / values[..., None, :]) @ adjoint(basis)
    return unitary, tangent
