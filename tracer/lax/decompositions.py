"""Orthogonal and spectral decompositions of stacks of matrices, for `tracer.lax.linalg`.

They compute in f32, f64, c64 and c128, and never raise for values. Where LAPACK finds no answer, results are NaN.
Arguments that choose an implementation accept None alone.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays)

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.lax.branching import cond
from tracer.lax.loops import fori_loop, while_loop
from tracer.primitives.arrays.dynamic_slice import dynamic_slice, dynamic_update_slice
from tracer.primitives.arrays.reductions.reductions import reduce_max
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.base.broadcasting import broadcast_in_dim, reduce_sum
from tracer.primitives.base.shapes import reshape
from tracer.primitives.elementwise.arithmetic import add, div, mul, sub
from tracer.primitives.elementwise.comparison import gt, lt, select
from tracer.primitives.elementwise.complex import abs as modulus
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.powers import hypot, sqrt
from tracer.primitives.linalg import orthogonal, similarity, spectral
from tracer.primitives.linalg import tridiagonal_solve as tridiagonals
from tracer.primitives.linalg.factorizations import cholesky
from tracer.primitives.linalg.matrix_stacks import adjoint, identity, matrix_type, product, turned
from tracer.primitives.linalg.triangular import solve_triangular
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.docstrings import say
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "cholesky_update", "eig", "eigh", "hessenberg", "householder_product", "ormqr", "qdwh", "qr", "schur", "svd",
    "symmetric_product", "tridiagonal", "tridiagonal_solve",
]  # fmt: skip


def _matrices(name: str, x: Any, *, square: bool = True) -> Array:
    found = as_array(x, name)
    matrix_type(name, found.type, square=square)
    return found


def _unchosen(name: str, **given: Any) -> None:
    for argument, value in given.items():
        if value is not None:
            raise ArgumentError(
                message(
                    f"{name}{here()}: {argument} is None here", f"got {value!r}", help="LAPACK is the implementation"
                )
            )


def _subset(name: str, subset: Any, count: int) -> tuple[int, int]:
    if subset is None:
        return 0, count
    start, stop = (integer(name, "subset_by_index", end) for end in subset)
    if not 0 <= start <= stop <= count:
        raise ArgumentError(
            message(f"{name}{here()}: subset_by_index is a range among {count} values", f"got ({start}, {stop})")
        )
    return start, stop


# Orthogonal factors


def qr(
    x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, ...]:  # fmt: skip
    """Return unitary Q and triangular R with x = Q R; with `pivoting` also p, with x[..., p] = Q R.

    x: [*s, m, n]; full_matrices: whether Q is [*s, m, m] and R [*s, m, n], or [*s, m, k] and [*s, k, n] with
    k = min(m, n); pivoting: choose columns so that the diagonal of R descends in size. p is i32 [*s, n].

    >>> q, r = tracer.lax.linalg.qr(tnp.asarray([[3.0, 1.0], [4.0, 2.0]]))
    >>> tnp.abs(tnp.diag(r))
    Array([5. , 0.4], f64)
    """
    _unchosen("qr", use_magma=use_magma)
    return tuple(
        orthogonal.qr(_matrices("qr", x, square=False), full_matrices=bool(full_matrices), pivoting=bool(pivoting))
    )


def householder_product(a: Any, taus: Any) -> Array:
    """Return the first n columns of the product of reflectors I - taus[i] v_i v_i^H.

    a: [*s, m, n], v_i below its diagonal in column i; taus: [*s, k], k <= n <= m. Returns a's shape and dtype.

    >>> tracer.lax.linalg.householder_product(tnp.asarray([[0.0], [1.0]]), tnp.asarray([1.0]))
    Array([[ 0.],
           [-1.]], f64)
    """
    return orthogonal.householder_product(
        _matrices("householder_product", a, square=False), as_array(taus, "householder_product")
    )


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Array:
    """Multiply by the whole product Q of reflectors, without forming it: Q c, or c Q if not `left`.

    a: [*s, m, n] and taus: [*s, k], as in `householder_product`; c: [*s, m, l], or [*s, l, m] on the right; transpose:
    multiply by the adjoint of Q. Returns c's shape and dtype.

    >>> a, taus = tnp.asarray([[0.0], [1.0]]), tnp.asarray([1.0])
    >>> tracer.lax.linalg.ormqr(a, taus, tnp.eye(2))
    Array([[ 0., -1.],
           [-1.,  0.]], f64)
    """
    x, factors, side = (as_array(v, "ormqr") for v in (a, taus, c))
    for operand in (x, side):
        matrix_type("ormqr", operand.type, square=False)
    if x.shape[-2] != side.shape[-2 if left else -1] or factors.shape[-1] > min(x.shape[-2:]):
        raise ShapeError(
            message(
                f"ormqr{here()}: the sizes of the operands do not fit",
                f"got {x.type}, {factors.type} and {side.type}, left={left}",
                help="a is [*s, m, n], taus [*s, k] with k <= n, c [*s, m, l] on the left, [*s, l, m] on the right",
            )
        )
    if not factors.shape[-1]:
        return side
    vectors, middle, *_ = orthogonal.compact(x, factors)
    middle = adjoint(middle) if transpose else middle
    other = adjoint(vectors)
    if left:
        return sub(side, product(vectors, product(middle, product(other, side))))
    return sub(side, product(product(product(side, vectors), middle), other))


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """Return the upper triangular factor of R^T R + w w^T by rotations, for real R.

    r_matrix: [n, n], upper triangular with a positive diagonal; w_vector: [n]. Returns [n, n]. Golub & Van Loan 2013,
    Matrix Computations, 6.5.4.

    >>> tracer.lax.linalg.cholesky_update(tnp.asarray([[3.0]]), tnp.asarray([4.0]))
    Array([[5.]], f64)
    """
    factor, vector = _matrices("cholesky_update", r_matrix), as_array(w_vector, "cholesky_update")
    n = factor.shape[-1]
    if factor.ndim != 2 or vector.shape != (n,) or dtypes.is_complex(factor.dtype):
        raise ShapeError(
            message(
                f"cholesky_update{here()} takes a real matrix [n, n] and a vector [n]",
                f"got {factor.type} and {vector.type}",
                help="tracer.vmap takes stacks of them",
            )
        )

    def rotate(k: Any, state: Any) -> Any:
        upper, rest = state
        row = reshape(dynamic_slice(upper, (k, 0), (1, n)), (n,))
        first, second = (reshape(dynamic_slice(v, (k,), (1,)), ()) for v in (row, rest))
        length = hypot(first, second)
        cosine, sine = (broadcast_in_dim(div(v, length), (n,), ()) for v in (first, second))
        turned_row = add(mul(cosine, row), mul(sine, rest))
        turned_rest = sub(mul(cosine, rest), mul(sine, row))
        return dynamic_update_slice(upper, reshape(turned_row, (1, n)), (k, 0)), turned_rest

    found, _ = fori_loop(0, n, rotate, (factor, vector))
    return found


def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:  # fmt: skip
    """Return alpha a a^T + beta c, for symmetric c.

    a_matrix: [*s, n, k]; c_matrix: [*s, n, n]; alpha, beta: numbers; symmetrize_output: without effect, both triangles
    are computed. Returns [*s, n, n].

    >>> tracer.lax.linalg.symmetric_product(tnp.asarray([[1.0], [2.0]]), tnp.eye(2), beta=1.0)
    Array([[2., 2.],
           [2., 5.]], f64)
    """
    del symmetrize_output
    x, y = _matrices("symmetric_product", a_matrix, square=False), _matrices("symmetric_product", c_matrix)
    if (*x.shape[:-1], x.shape[-2]) != y.shape:
        raise ShapeError(
            message(
                f"symmetric_product{here()}: the sizes of the operands do not fit",
                f"got {x.type} and {y.type}",
                help="a_matrix is [*s, n, k], and c_matrix [*s, n, n]",
            )
        )
    return add(mul(product(x, turned(x)), alpha), mul(y, beta))


# Eigenvalues and singular values


def eigh(
    x: Any, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None, implementation: None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the eigenvectors and eigenvalues of Hermitian matrices: (v, w) with x v = v w.

    x: [*s, n, n]; symmetrize_input: decompose (x + x^H) / 2, else the triangle chosen by `lower`; sort_eigenvalues:
    without effect, w ascends; subset_by_index: the range of eigenvalues wanted. Returns v [*s, n, n], real w [*s, n].

    >>> tracer.lax.linalg.eigh(tnp.asarray([[3.0, 0.0], [0.0, 2.0]]))[1]
    Array([2., 3.], f64)
    """
    del sort_eigenvalues
    _unchosen("eigh", implementation=implementation)
    matrix = _matrices("eigh", x)
    start, stop = _subset("eigh", subset_by_index, matrix.shape[-1])
    if symmetrize_input:
        matrix = mul(add(matrix, adjoint(matrix)), 0.5)
    elif not lower:
        matrix = adjoint(matrix)
    values, vectors = spectral.eigh(matrix)
    return slice_in_dim(vectors, start, stop, axis=-1), slice_in_dim(values, start, stop, axis=-1)


def eig(
    x: Any, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False, implementation: None = None, use_magma: bool | None = None,
) -> list[Array]:  # fmt: skip
    """Return the eigenvalues, and the left and the right eigenvectors where wanted, all complex.

    x: [*s, n, n]; compute_left_eigenvectors, compute_right_eigenvectors: which vectors are wanted;
    enable_eigvec_derivs: without effect, the tangent of a vector is orthogonal to it. Returns [w] with w [*s, n], then
    vectors [*s, n, n] of norm 1, as columns: x^H vl = conj(w) vl, and x vr = w vr.

    >>> tracer.lax.linalg.eig(tnp.asarray([[0.0, -1.0], [1.0, 0.0]]))[0]
    Array([0.+1.j, 0.-1.j], c128)
    """
    del enable_eigvec_derivs
    _unchosen("eig", implementation=implementation, use_magma=use_magma)
    wanted = {"left": bool(compute_left_eigenvectors), "right": bool(compute_right_eigenvectors)}
    return similarity.eig(_matrices("eig", x), **wanted)


def svd(
    x: Any, *, full_matrices: bool = True, compute_uv: bool = True, subset_by_index: tuple[int, int] | None = None,
    algorithm: None = None,
) -> Any:  # fmt: skip
    """Return the singular value decomposition (u, s, v^H), or s alone without `compute_uv`.

    x: [*s, m, n]; full_matrices: whether u is [*s, m, m] and v^H [*s, n, n], or [*s, m, k] and [*s, k, n] with k =
    min(m, n); compute_uv: whether u and v^H are wanted; subset_by_index: the range of singular values wanted, of thin
    matrices. s is real [*s, k].

    >>> tracer.lax.linalg.svd(tnp.asarray([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], f64)
    """
    _unchosen("svd", algorithm=algorithm)
    matrix = _matrices("svd", x, square=False)
    start, stop = _subset("svd", subset_by_index, min(matrix.shape[-2:]))
    if not compute_uv:
        return slice_in_dim(spectral.svdvals(matrix), start, stop, axis=-1)
    values, left, right = spectral.svd(matrix, full_matrices=bool(full_matrices) and subset_by_index is None)
    if subset_by_index is None:
        return left, values, right
    return (
        slice_in_dim(left, start, stop, axis=-1), slice_in_dim(values, start, stop, axis=-1),
        slice_in_dim(right, start, stop, axis=-2),
    )  # fmt: skip


def schur(
    x: Any, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Any = None
) -> tuple[Array, ...]:  # fmt: skip
    """Return the Schur form T, and unitary Z with x = Z T Z^H where wanted.

    x: [*s, n, n]; compute_schur_vectors: whether Z is wanted; sort_eig_vals: False. T is triangular; of real x, with
    blocks of two rows for pairs of eigenvalues.

    >>> t, z = tracer.lax.linalg.schur(tnp.asarray([[1.0, 2.0], [0.0, 3.0]]))
    >>> t
    Array([[1., 2.],
           [0., 3.]], f64)
    """
    _unchosen("schur", select_callable=select_callable, sort_eig_vals=sort_eig_vals or None)
    return tuple(similarity.schur(_matrices("schur", x), vectors=bool(compute_schur_vectors)))


def hessenberg(a: Any) -> tuple[Array, Array]:
    """Return H = Q^H a Q over the reflectors of Q, in one array, and the reflectors' factors.

    a: [*s, n, n]. Returns [*s, n, n], H above the second diagonal below the main one, reflectors below it, and taus
    [*s, n - 1].

    >>> tracer.lax.linalg.hessenberg(tnp.eye(2))[1]
    Array([0.], f64)
    """
    packed, taus = similarity.hessenberg(_matrices("hessenberg", a))
    return packed, taus


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Return T = Q^H a Q, tridiagonal, over the reflectors of Q, for Hermitian a.

    a: [*s, n, n]; lower: the triangle to read. Returns the packed array [*s, n, n], the real diagonal [*s, n], the one
    beside it [*s, n - 1], and taus [*s, n - 1].

    >>> tracer.lax.linalg.tridiagonal(tnp.asarray([[2.0, 1.0], [1.0, 3.0]]))[1]
    Array([2., 3.], f64)
    """
    packed, diagonal, beside, taus = similarity.tridiagonal(_matrices("tridiagonal", a), lower=bool(lower))
    return packed, diagonal, beside, taus


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Array:
    """Return X with A X = b, for tridiagonal A: A[i, i - 1] = dl[i], A[i, i] = d[i], A[i, i + 1] = du[i].

    dl, d, du: [*s, n], the first of dl and the last of du without effect; b: [*s, n, k]; perturb_singular: False.
    Returns b's shape and dtype; NaN where A is singular.

    >>> d = tnp.asarray([2.0, 2.0])
    >>> tracer.lax.linalg.tridiagonal_solve(0 * d, d, 0 * d, tnp.asarray([[2.0], [4.0]]))
    Array([[1.],
           [2.]], f64)
    """
    _unchosen("tridiagonal_solve", perturb_singular=perturb_singular or None)
    return tridiagonals.tridiagonal_solve(*(as_array(x, "tridiagonal_solve") for x in (dl, d, du, b)))


# qdwh

_CHOLESKY_PAYS = 100.0  # weights below which the iteration by Cholesky is stable


def qdwh(
    x: Any, *, is_hermitian: bool = False, max_iterations: int | None = None, eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Return the polar decomposition x = u h by dynamically weighted Halley iterations.

    x: [m, n] with m >= n; is_hermitian: without effect; max_iterations: by default 10; eps: the relative error at which
    it stops, by default a rounding. Returns u [m, n] with orthonormal columns, h [n, n], the iterations, and whether
    they converged. Nakatsukasa, Bai & Gygi 2010, SIAM J. Matrix Anal. Appl. 31(5).

    >>> u, h, _, _ = tracer.lax.linalg.qdwh(tnp.asarray([[0.0, -2.0], [3.0, 0.0]]))
    >>> tnp.diag(h).round(8)
    Array([3., 2.], f64)
    """
    del is_hermitian
    _unchosen("qdwh", dynamic_shape=dynamic_shape)
    matrix = _matrices("qdwh", x, square=False)
    if matrix.ndim != 2 or matrix.shape[0] < matrix.shape[1]:
        raise ShapeError(message(f"qdwh{here()} takes a matrix [m, n] with m >= n", f"got {matrix.type}"))
    most = 10 if max_iterations is None else integer("qdwh", "max_iterations", max_iterations)
    real = dtypes.real_dtype(matrix.dtype)
    rounding = float(np.finfo(real).eps) if eps is None else eps
    sizes = modulus(matrix)
    norms = [reduce_max(reduce_sum(sizes, (axis,)), (0,)) for axis in (0, 1)] if prod(matrix.shape) else []
    bound = sqrt(mul(*norms)) if norms else as_array(real.type(1), "qdwh")
    start = div(matrix, broadcast_in_dim(convert_element_type(bound, matrix.dtype), matrix.shape, ()))
    least = as_array(real.type(np.finfo(real).eps), "qdwh")

    def unfinished(state: Any) -> Any:
        _, low, moved, count = state
        return (count < most) & (gt(modulus(sub(low, 1.0)), 10 * rounding) | gt(moved, rounding ** (1 / 3)))

    def step(state: Any) -> Any:
        u, low, _, count = state
        square = mul(low, low)
        rest = select(gt(low, 1.0), 0, 1 - square)  # rounding errors may leave `low` above 1
        root = ((4 * rest) / (square * square)) ** (1 / 3)
        first = sqrt(1 + root)
        a = first + 0.5 * sqrt(8 - 4 * root + 8 * (2 - square) / (square * first))
        b = (a - 1) * (a - 1) / 4
        c = a + b - 1
        after = cond(gt(c, _CHOLESKY_PAYS), _by_qr, _by_cholesky, u, a, b, c)
        change = sub(after, u)
        length = sqrt(reduce_sum(mul(modulus(change), modulus(change)), (0, 1)))
        return after, low * (a + b * square) / (1 + c * square), length, count + 1

    state = (start, least, as_array(real.type(np.inf), "qdwh"), as_array(np.int32(0), "qdwh"))
    u, low, _, count = while_loop(unfinished, step, state)
    half = product(adjoint(u), matrix)
    return u, mul(add(half, adjoint(half)), 0.5), count, lt(modulus(sub(low, 1.0)), 10 * rounding)


def _spread(x: Any, like: Any) -> Any:
    return broadcast_in_dim(convert_element_type(x, like.dtype), like.shape, ())


def _by_qr(u: Any, a: Any, b: Any, c: Any) -> Any:
    """Return (b / c) u + (a - b / c) / sqrt(c) Q_1 Q_2^H for the QR of sqrt(c) u over the identity."""
    m, n = u.shape
    stacked = concatenate([mul(_spread(sqrt(c), u), u), identity((n, n), u.dtype)], 0)
    q, _ = orthogonal.qr(stacked, full_matrices=False)
    turned_part = product(slice_in_dim(q, 0, m), adjoint(slice_in_dim(q, m, m + n)))
    return add(mul(_spread(b / c, u), u), mul(_spread((a - b / c) / sqrt(c), u), turned_part))


def _by_cholesky(u: Any, a: Any, b: Any, c: Any) -> Any:
    """Return (b / c) u + (a - b / c) u (I + c u^H u)^-1."""
    inner = product(adjoint(u), u)
    factor = cholesky(add(identity(inner.shape, u.dtype), mul(_spread(c, inner), inner)))
    half = solve_triangular(factor, u, left_side=False, transpose_a=True, conjugate_a=True)
    whole = solve_triangular(factor, half, left_side=False)
    return add(mul(_spread(b / c, u), u), mul(_spread(a - b / c, u), whole))


set_boundaries(globals(), __all__, cached)  # they look at no elements
say(
    [globals()[name] for name in __all__],
    dict.fromkeys(("use_magma", "implementation", "algorithm", "dynamic_shape", "select_callable"), "None."),
)
