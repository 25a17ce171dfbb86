"""Decompositions of matrices with SciPy's names: orthogonal factors, eigenvalues, canonical forms."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays)

from __future__ import annotations

from typing import Any

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy import conj, eye, linalg, triu
from tracer.numpy.core.conversion import array_of, unified
from tracer.numpy.linalg.solving import both, matrices, positive_factor
from tracer.primitives.linalg import matrix_stacks, orthogonal, similarity
from tracer.primitives.linalg.triangular import solve_triangular
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here


def _choice(name: str, argument: str, given: Any, known: tuple[Any, ...]) -> None:
    if given not in known:
        raise ArgumentError(
            message(
                f"{name}{here()}: no such {argument}", f"got {given!r}", help=f"one of {', '.join(map(repr, known))}"
            )
        )


# Orthogonal factors


def qr(
    a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", pivoting: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """Return unitary Q and triangular R with a = Q R; with `pivoting` also p, with a[..., p] = Q R.

    a: floats or complex numbers [*s, m, n]; lwork: without effect; mode: "full", for Q [*s, m, m] and R [*s, m, n];
    "economic", for Q [*s, m, k] and R [*s, k, n] with k = min(m, n); "r", for (R,) alone; "raw", for ((reflectors [*s,
    m, n], taus [*s, k]), R); pivoting: choose columns so that the diagonal of R descends in size. Raises ArgumentError
    for another mode.

    >>> q, r = tracer.scipy.linalg.qr(tnp.asarray([[3.0], [4.0]]), mode="economic")
    >>> tnp.abs(r)
    Array([[5.]], f64)
    """
    del overwrite_a, lwork, check_finite
    _choice("qr", "mode", mode, ("full", "economic", "r", "raw"))
    x = matrices("qr", a, square=False)
    if mode == "raw":
        packed, taus, *order = orthogonal.reflectors(x, pivoting=bool(pivoting))
        return (packed, taus), triu(packed[..., : min(x.shape[-2:]), :]), *order
    q, r, *order = orthogonal.qr(x, full_matrices=mode in ("full", "r"), pivoting=bool(pivoting))
    return (r, *order) if mode == "r" else (q, r, *order)


def qr_multiply(
    a: Any, c: Any, mode: str = "right", pivoting: bool = False, conjugate: bool = False, overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:  # fmt: skip
    """Return the product of c and the Q [m, k] of `qr`, and R; with `pivoting` also p.

    a: [m, n] of floats or complex numbers, k = min(m, n); mode: "right" for c Q, with c [l, m] or [m]; "left" for Q c,
    with c [k, l] or [k]; pivoting: as in `qr`; conjugate: multiply by the conjugate of Q. Raises ArgumentError for
    another mode.

    >>> tnp.abs(tracer.scipy.linalg.qr_multiply(tnp.asarray([[3.0], [4.0]]), tnp.asarray([3.0, 4.0]))[0])
    Array([5.], f64)
    """
    del overwrite_a, overwrite_c
    _choice("qr_multiply", "mode", mode, ("left", "right"))
    x, side = both("qr_multiply", a, c)
    matrix_stacks.matrix_type("qr_multiply", x.type, square=False)
    q, r, *order = orthogonal.qr(x, full_matrices=False, pivoting=bool(pivoting))
    q = conj(q) if conjugate else q
    return (q @ side if mode == "left" else side @ q), r, *order


# Eigenvalues


def eigh(
    a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
    overwrite_b: bool = False, turbo: bool = True, eigvals: Any = None, type: int = 1, check_finite: bool = True,
) -> Any:  # fmt: skip
    """Return the eigenvalues, ascending, and eigenvectors of Hermitian a, or of a with positive definite b.

    a, b: [*s, n, n]; lower: the triangle to read; eigvals_only: return eigenvalues alone; turbo: without effect;
    eigvals: the first and the last index wanted, two integers; type: 1 for a v = w b v, 2 for a b v = w v, 3 for b a v
    = w v. Returns real w [*s, n] and v [*s, n, n], as columns. v^H b v = I for types 1 and 2, v^H b^-1 v = I for type
    3. Raises LinAlgError if a concrete b is not positive definite, or concrete elements are not finite.

    >>> tracer.scipy.linalg.eigh(tnp.asarray([[3.0, 0.0], [0.0, 2.0]]), eigvals_only=True)
    Array([2., 3.], f64)
    """
    del overwrite_a, overwrite_b, turbo, check_finite
    _choice("eigh", "type", type, (1, 2, 3))
    triangle = "L" if lower else "U"
    if b is None:
        x, back = matrices("eigh", a), None
    else:
        x, y = (matrices("eigh", z) for z in both("eigh", a, b))
        mirror = matrix_stacks.halved(x if lower else matrix_stacks.adjoint(x))
        x = mirror + matrix_stacks.adjoint(mirror)
        back = positive_factor("eigh", y if lower else matrix_stacks.adjoint(y))
        turned = {"transpose_a": True, "conjugate_a": True}
        if type == 1:
            x = solve_triangular(back, solve_triangular(back, x), left_side=False, **turned)
        else:
            x = matrix_stacks.adjoint(back) @ x @ back
    start, stop = (0, x.shape[-1]) if eigvals is None else (eigvals[0], eigvals[1] + 1)
    if eigvals_only:
        return linalg.eigvalsh(x, triangle)[..., start:stop]
    values, vectors = linalg.eigh(x, triangle)
    if back is not None:
        vectors = back @ vectors if type == 3 else solve_triangular(back, vectors, **turned)
    return values[..., start:stop], vectors[..., start:stop]


def eigh_tridiagonal(
    d: Any, e: Any, *, eigvals_only: bool = False, select: str = "a", select_range: Any = None,
    tol: float | None = None, key: Any = None,
) -> Any:  # fmt: skip
    """Return the eigenvalues, ascending, and eigenvectors of real symmetric or Hermitian tridiagonal matrices.

    d: the diagonal [*s, n], real; e: the one above it [*s, n - 1]; eigvals_only: return eigenvalues alone; select: "a"
    for all, "i" for some; select_range: the first and the last index; tol, key: without effect. Returns real numbers w
    [*s, n] and v [*s, n, n], as columns. Raises as `eigh`; ArgumentError for select="v", whose results have no fixed
    size.

    >>> tracer.scipy.linalg.eigh_tridiagonal(tnp.zeros(2), tnp.ones(1), eigvals_only=True).round(8)
    Array([-1.,  1.], f64)
    """
    del tol, key
    _choice("eigh_tridiagonal", "select", select, ("a", "i"))
    main, beside = both("eigh_tridiagonal", d, e)
    if main.ndim < 1 or (*main.shape[:-1], main.shape[-1] - 1) != beside.shape:
        raise ShapeError(
            message(f"eigh_tridiagonal{here()}: e has one element fewer than d", f"got {main.type} and {beside.type}")
        )
    n = main.shape[-1]
    below = matrix_stacks.extended(matrix_stacks.diagonal_matrix(conj(beside)), n, n)
    matrix = matrix_stacks.diagonal_matrix(main) + below[..., [-1, *range(n - 1)], :]  # the empty row to the top
    chosen = None if select == "a" else tuple(integer("eigh_tridiagonal", "select_range", i) for i in select_range)
    return eigh(matrix, eigvals_only=eigvals_only, eigvals=chosen)


# Canonical forms


def schur(a: Any, output: str = "real") -> tuple[Array, Array]:
    """Return the Schur form T, and unitary Z with a = Z T Z^H.

    a: [*s, n, n]; output: "real", for blocks of two rows for pairs of eigenvalues of real a; "complex", for triangular
    T. Returns T and Z [*s, n, n]. Raises ArgumentError for another output, NoRuleError for derivatives: Z is a choice.
    `eigvals`, `expm`, `logm`, `sqrtm` and `funm` have derivatives.

    >>> tracer.scipy.linalg.schur(tnp.asarray([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], f64)
    """
    _choice("schur", "output", output, ("real", "complex"))
    x = matrices("schur", a)
    form, basis = similarity.schur(x.astype(dtypes.complex_dtype(x.dtype)) if output == "complex" else x)
    return form, basis


def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """Return a complex Schur form, given a real one.

    T, Z: [*s, n, n], of `schur`. Returns complex T, triangular, and Z, with the same Z T Z^H.

    >>> t, _ = tracer.scipy.linalg.rsf2csf(tnp.asarray([[0.0, 1.0], [-1.0, 0.0]]), tnp.eye(2))
    >>> tnp.abs(tnp.diag(t)).round(8)
    Array([1., 1.], f64)
    """
    del check_finite
    form, basis = (matrices("rsf2csf", x) for x in unified("rsf2csf", [array_of("rsf2csf", x) for x in (T, Z)]))
    triangle, turn = schur(form, "complex")
    return triangle, basis.astype(turn.dtype) @ turn


def hessenberg(
    a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:  # fmt: skip
    """Return the Hessenberg form H = Q^H a Q, zero below the diagonal beside the main one; with `calc_q` also Q.

    a: [*s, n, n]; calc_q: whether Q is wanted. Returns floats or complex numbers H, and Q, [*s, n, n].

    >>> tracer.scipy.linalg.hessenberg(tnp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], f64)
    """
    del overwrite_a, check_finite
    packed, taus = similarity.hessenberg(matrices("hessenberg", a))
    form = triu(packed, -1)
    if not calc_q:
        return form
    n = packed.shape[-1]
    corner = matrix_stacks.extended(eye(1, dtype=packed.dtype), n, n) if n else packed
    if n < 2:
        return form, corner + 0 * packed
    inner = matrix_stacks.extended(orthogonal.householder_product(packed[..., 1:, : n - 1], taus), n, n)
    order = [-1, *range(n - 1)]  # the empty row and column to the front
    return form, corner + inner[..., order, :][..., order]


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False, check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:  # fmt: skip
    """Return U, the singular values s in descending order, and V^H with a = U s V^H, as `tracer.numpy.linalg.svd`.

    a: floats or complex numbers [*s, m, n]; full_matrices, compute_uv: as in `tracer.numpy.linalg.svd`; lapack_driver:
    "gesdd" or "gesvd", which agree. Raises LinAlgError if concrete elements are not finite.

    >>> tracer.scipy.linalg.svd(tnp.asarray([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], f64)
    """
    del overwrite_a, check_finite
    _choice("svd", "lapack_driver", lapack_driver, ("gesdd", "gesvd"))
    found = linalg.svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found
