"""Linear algebra with SciPy's names: factorisations, and solutions by them. `matrix_*.py` hold more.

`overwrite_*` and `check_finite` have no effect: arrays are values, and NaN propagates. Leading axes are stacks of
matrices. Concrete matrices that are singular or not positive definite raise LinAlgError; for traced ones results hold
infinity or NaN.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any

from tracer.absent import absent
from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.lax.linalg import lu_pivots_to_permutation
from tracer.numpy import linalg
from tracer.numpy.core.conversion import array_of, broadcast
from tracer.numpy.linalg.solving import matrices, positive_factor, system
from tracer.primitives.base.shapes import broadcasted_iota
from tracer.primitives.linalg import factorizations, matrix_stacks, triangular
from tracer.primitives.linalg.solve import inverse_permutation
from tracer.runtime.eager.call_cache import cached
from tracer.scipy.matrix_decompositions import (
    eigh,
    eigh_tridiagonal,
    hessenberg,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    svd,
)
from tracer.scipy.matrix_functions import expm, expm_frechet, funm, logm, polar, solve_sylvester, sqrtm
from tracer.scipy.patterned_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from tracer.trace.array import Array
from tracer.trace.docstrings import say
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix", "det", "dft",
    "eigh", "eigh_tridiagonal", "expm", "expm_frechet", "fiedler", "fiedler_companion", "funm", "hadamard", "hankel",
    "helmert", "hessenberg", "hilbert", "inv", "invhilbert", "invpascal", "leslie", "logm", "lu", "lu_factor",
    "lu_solve", "pascal", "polar", "qr", "qr_multiply", "rsf2csf", "schur", "solve", "solve_sylvester",
    "solve_triangular", "sqrtm", "svd", "toeplitz",
]  # fmt: skip

_FORMS = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}
_KINDS = {
    None: "gen", "gen": "gen", "general": "gen", "sym": "sym", "symmetric": "sym", "her": "her", "hermitian": "her",
    "pos": "pos", "positive definite": "pos",
}  # fmt: skip


def _system(name: str, a: Any, b: Any) -> tuple[Array, Array, bool]:
    """Return a matrix and a right-hand side of one dtype and equal stacks, and whether it was one vector."""
    x, side, vector = system(name, a, b)
    stack = shapes.broadcast(x.shape[:-2], side.shape[:-2], operation=name)
    return broadcast(x, (*stack, *x.shape[-2:])), broadcast(side, (*stack, *side.shape[-2:])), vector


def _form(name: str, trans: object) -> dict[str, bool]:
    """Return the form of the matrix: as it is, transposed, or its adjoint."""
    if trans not in _FORMS:
        raise ArgumentError(
            message(f"{name}{here()}: trans is 0 or 'N', 1 or 'T', 2 or 'C'", f"got {trans!r}", help="2 is the adjoint")
        )
    form = _FORMS[trans]
    return {"transpose_a": form > 0, "conjugate_a": form == 2}


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the upper triangular U with a = U^H U, or the lower triangular L with a = L L^H.

    Only this triangle of a is read.

    a: [*s, n, n]; lower: whether to return L. Returns floats or complex numbers [*s, n, n]; integers are cast. Raises
    LinAlgError if a concrete matrix is not positive definite; for a traced one the factor is NaN.

    >>> tracer.scipy.linalg.cholesky(tnp.asarray([[4.0, 2.0], [0.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], f64)
    """
    del overwrite_a, check_finite
    return _cholesky("cholesky", a, lower)


def _cholesky(name: str, a: Any, lower: bool) -> Array:
    x = matrices(name, a)
    return positive_factor(name, x) if lower else matrix_stacks.adjoint(positive_factor(name, matrix_stacks.adjoint(x)))


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:  # fmt: skip
    """Return the factor of `cholesky`, and `lower`, for `cho_solve`.

    a, lower: as of `cholesky`. Returns the factor [*s, n, n] with zeros in the other triangle, of `cholesky`'s dtype.
    Raises as `cholesky`.

    >>> factor = tracer.scipy.linalg.cho_factor(tnp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    >>> tracer.scipy.linalg.cho_solve(factor, tnp.asarray([8.0, 8.0]))
    Array([1.5, 1. ], f64)
    """
    del overwrite_a, check_finite
    return _cholesky("cho_factor", a, lower), lower


def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """Solve a x = b for x, given `cho_factor` of a.

    c_and_lower: the factor [*s, n, n], and whether it is the lower one; b: [n] or [*s, n, k]. Returns b's shape, in the
    promoted dtype. Raises ShapeError for sizes that do not fit.

    >>> tracer.scipy.linalg.cho_solve((tnp.asarray([[2.0, 0.0], [0.0, 1.0]]), True), tnp.asarray([4.0, 3.0]))
    Array([1., 3.], f64)
    """
    del overwrite_b, check_finite
    factor, lower = c_and_lower
    x, side, vector = _system("cho_solve", factor, b)
    return _without_axis(_by_factor(x, side, lower=bool(lower)), vector)


def _by_factor(factor: Array, side: Array, *, lower: bool) -> Array:
    adjoint = {"transpose_a": True, "conjugate_a": True}
    first, second = ({}, adjoint) if lower else (adjoint, {})
    half = triangular.solve_triangular(factor, side, lower=lower, **first)
    return triangular.solve_triangular(factor, half, lower=lower, **second)


def _without_axis(x: Array, vector: bool) -> Array:
    return x[..., 0] if vector else x


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the determinants of square matrices, as `tracer.numpy.linalg.det`.

    a: [*s, n, n]. Returns floats or complex numbers [*s]; integers are cast. Raises ShapeError for other shapes.

    >>> tracer.scipy.linalg.det(tnp.asarray([[2.0, 1.0], [0.0, 4.0]]))
    Array(8., f64)
    """
    del overwrite_a, check_finite
    return linalg.det(a)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the inverses of square matrices, as `tracer.numpy.linalg.inv`.

    a: [*s, n, n]. Returns floats or complex numbers [*s, n, n]; integers are cast. Raises ShapeError for other shapes,
    LinAlgError if a concrete matrix is singular.

    >>> tracer.scipy.linalg.inv(tnp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], f64)
    """
    del overwrite_a, check_finite
    return linalg.inv(a)


def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, ...]:
    """Return (p, l, u) with a = p l u, where p is a permutation matrix; (p l, u) if `permute_l`.

    a: [*s, m, n]. Returns floats p [*s, m, m], l [*s, m, k] with unit diagonal, and u [*s, k, n], where k = min(m, n).
    l and u may be complex. By partial pivoting: no element of l exceeds 1 in size.

    >>> p, l, u = tracer.scipy.linalg.lu(tnp.asarray([[1.0, 2.0], [4.0, 4.0]]))
    >>> p
    Array([[0., 1.],
           [1., 0.]], f64)
    """
    del overwrite_a, check_finite
    x = matrices("lu", a, square=False)
    factors, _, permutation = factorizations.lu(x)
    k = min(x.shape[-2:])
    lower = matrix_stacks.triangle(factors[..., :k], lower=True, of_ones=True)
    upper = matrix_stacks.triangle(factors[..., :k, :], lower=False)
    rows = inverse_permutation(permutation)
    if permute_l:
        return factorizations.permuted(lower, rows), upper
    places = (*x.shape[:-1], x.shape[-2])
    columns = broadcasted_iota(rows.dtype, places, len(places) - 1)
    return (rows[..., None] == columns).astype(dtypes.real_dtype(x.dtype)), lower, upper


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """Return L and U in one matrix, and the row exchanged in each step (i32), for `lu_solve`.

    a: [*s, m, n]. Returns floats or complex numbers [*s, m, n], without the unit diagonal of L, and int32 [*s, min(m,
    n)].

    >>> factors = tracer.scipy.linalg.lu_factor(tnp.asarray([[1.0, 2.0], [4.0, 4.0]]))
    >>> tracer.scipy.linalg.lu_solve(factors, tnp.asarray([3.0, 8.0]))
    Array([1., 1.], f64)
    """
    del overwrite_a, check_finite
    factors, pivots, _ = factorizations.lu(matrices("lu_factor", a, square=False))
    return factors, pivots


def lu_solve(
    lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Array:  # fmt: skip
    """Solve op(a) x = b for x, given `lu_factor` of a.

    lu_and_piv: the factors [*s, n, n], and the rows [*s, n]; b: [n] or [*s, n, k]; trans: 0 for a, 1 its transpose, 2
    its adjoint. Returns b's shape, in the promoted dtype. Raises ArgumentError for another trans.

    >>> factors = (tnp.asarray([[2.0, 4.0], [0.5, 1.0]]), tnp.asarray([0, 1]))
    >>> tracer.scipy.linalg.lu_solve(factors, tnp.asarray([6.0, 4.0]))
    Array([1., 1.], f64)
    """
    del overwrite_b, check_finite
    factors, pivots = lu_and_piv
    x, side, vector = _system("lu_solve", factors, b)
    form = _form("lu_solve", trans)
    n = x.shape[-1]
    order = broadcast(lu_pivots_to_permutation(array_of("lu_solve", pivots), n), x.shape[:-1])
    if not form["transpose_a"]:
        half = triangular.solve_triangular(x, factorizations.permuted(side, order), unit_diagonal=True)
        return _without_axis(triangular.solve_triangular(x, half, lower=False), vector)
    half = triangular.solve_triangular(x, side, lower=False, **form)
    rest = triangular.solve_triangular(x, half, unit_diagonal=True, **form)
    return _without_axis(factorizations.permuted(rest, inverse_permutation(order)), vector)


def solve(
    a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False, debug: bool = False,
    check_finite: bool = True, assume_a: str | None = None,
) -> Array:  # fmt: skip
    """Solve a x = b for x.

    a: [*s, n, n]; b: [n] or [*s, n, k]; assume_a: "gen" (or None), "sym", "her" or "pos". Of "sym", "her" and "pos"
    only the triangle chosen by `lower` is read; "pos" is factored by Cholesky. Returns b's shape, floats or complex
    numbers of the promoted dtype. Raises LinAlgError if a concrete matrix is singular, or not positive definite;
    ArgumentError for another assume_a.

    >>> tracer.scipy.linalg.solve(tnp.asarray([[4.0, 2.0], [2.0, 5.0]]), tnp.asarray([8.0, 8.0]), assume_a="pos")
    Array([1.5, 1. ], f64)
    """
    del overwrite_a, overwrite_b, debug, check_finite
    if assume_a not in _KINDS:
        raise ArgumentError(
            message(
                f"solve{here()}: no such kind of matrix",
                f"got assume_a={assume_a!r}",
                help="one of 'gen', 'sym', 'her' and 'pos'; solve_triangular takes triangles",
            )
        )
    kind = _KINDS[assume_a]
    if kind == "gen":
        return linalg.solve(a, b)
    x, side, vector = _system("solve", a, b)
    if kind == "pos":
        start = x if lower else matrix_stacks.adjoint(x)
        return _without_axis(_by_factor(positive_factor("solve", start), side, lower=True), vector)
    mirror = matrix_stacks.adjoint if kind == "her" else matrix_stacks.turned
    half = matrix_stacks.halved(x if lower else mirror(x))
    return _without_axis(linalg.solve(half + mirror(half), side), vector)


def solve_triangular(
    a: Any, b: Any, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False,
    debug: Any = None, check_finite: bool = True,
) -> Array:  # fmt: skip
    """Solve op(a) x = b for x, with triangular a.

    a: [*s, n, n]; b: [n] or [*s, n, k]; trans: 0 or "N", 1 or "T", 2 or "C" (the adjoint); lower: the triangle of a to
    read; unit_diagonal: whether to assume ones on its diagonal. Returns b's shape, floats or complex numbers of the
    promoted dtype: infinite where a is singular. Raises ArgumentError for another trans.

    >>> a = tnp.asarray([[2.0, 0.0], [1.0, 4.0]])
    >>> tracer.scipy.linalg.solve_triangular(a, tnp.asarray([2.0, 9.0]), lower=True)
    Array([1., 2.], f64)
    """
    del overwrite_b, debug, check_finite
    x, side, vector = _system("solve_triangular", a, b)
    form = _form("solve_triangular", trans)
    result = triangular.solve_triangular(x, side, lower=bool(lower), unit_diagonal=bool(unit_diagonal), **form)
    return _without_axis(result, vector)


_CACHED = frozenset(("cho_solve", "lu", "lu_factor", "lu_solve", "solve_triangular"))  # read no elements
set_boundaries(globals(), _CACHED, cached)
set_boundaries(globals(), [name for name in __all__ if name not in _CACHED])
say(
    [globals()[name] for name in __all__],
    dict.fromkeys(
        ("overwrite_a", "overwrite_b", "overwrite_c", "debug", "check_finite"), "as SciPy's, change nothing."
    ),
)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
