"""lax.linalg: what the laws of its primitives do not see, its arguments and its errors; large matrices by LAPACK."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tracer
import tracer.numpy as tnp
from tracer import lax
from tracer.errors import ArgumentError, DTypeError, ShapeError

RNG = np.random.default_rng(4)
SQUARE = RNG.standard_normal((4, 4)) + 2 * np.eye(4)


def test_cholesky_takes_the_mean_of_both_triangles_or_the_lower_one() -> None:
    uneven = np.array([[4.0, 6.0], [2.0, 9.0]])
    np.testing.assert_allclose(lax.linalg.cholesky(uneven), np.linalg.cholesky((uneven + uneven.T) / 2))
    np.testing.assert_allclose(lax.linalg.cholesky(uneven, symmetrize_input=False), np.linalg.cholesky(uneven))
    gradient = tracer.grad(lambda a: tnp.sum(lax.linalg.cholesky(a)))(tnp.asarray(uneven))
    np.testing.assert_allclose(gradient, np.asarray(gradient).T)
    np.testing.assert_array_equal(lax.linalg.cholesky(-np.eye(2)), [[np.nan, 0], [np.nan, np.nan]])


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (2, 4, 4), (20, 30)])
def test_the_permutation_and_the_pivots_make_the_same_rows(shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape)
    for call in (lax.linalg.lu, tracer.jit(lax.linalg.lu)):
        factors, pivots, permutation = map(np.asarray, call(x))
        k = min(shape[-2:])
        lower = np.tril(factors[..., :k], -1) + np.eye(shape[-2], k)
        rows = np.take_along_axis(x, permutation[..., None], -2)
        np.testing.assert_allclose(lower @ np.triu(factors[..., :k, :]), rows, rtol=1e-12, atol=1e-12)
        found = lax.linalg.lu_pivots_to_permutation(pivots, shape[-2])
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, permutation)


SIDES: list[tuple[dict[str, Any], Any]] = [
    ({"left_side": True, "lower": True}, lambda a, b: np.linalg.solve(np.tril(a), b)),
    ({"left_side": True}, lambda a, b: np.linalg.solve(np.triu(a), b)),
    ({"lower": True}, lambda a, b: np.linalg.solve(np.tril(a).T, b.T).T),
    ({"transpose_a": True}, lambda a, b: np.linalg.solve(np.triu(a), b.T).T),
    (
        {"left_side": True, "transpose_a": True, "conjugate_a": True, "unit_diagonal": True},
        lambda a, b: np.linalg.solve((np.triu(a, 1) + np.eye(4)).conj().T, b),
    ),
]


@pytest.mark.parametrize(("given", "expected"), SIDES)
def test_triangular_solve_takes_sides_and_vectors(given: dict[str, Any], expected: Any) -> None:
    for dtype in (float, complex):
        turn = 1j if dtype is complex else 0
        a, b = RNG.standard_normal((2, 4, 4)) + turn * RNG.standard_normal((2, 4, 4))
        a = a + 3 * np.eye(4)
        found = lax.linalg.triangular_solve(a, b, **given)
        np.testing.assert_allclose(found, expected(a, b), rtol=1e-10)
        vector = lax.linalg.triangular_solve(a, b[0], **given)
        column = b[0][:, None] if given.get("left_side") else b[:1]
        np.testing.assert_allclose(vector, expected(a, column).ravel(), rtol=1e-10)


@pytest.mark.parametrize("n", [17, 64, 150])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_large_matrices_have_scipys_factors(n: int, dtype: str) -> None:
    x = (RNG.standard_normal((n, n)) + (1j * RNG.standard_normal((n, n)) if dtype == "complex128" else 0)).astype(dtype)
    positive = x @ x.conj().T + n * np.eye(n, dtype=dtype)
    near = {"rtol": 1e-3, "atol": 1e-3} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(tracer.jit(lax.linalg.cholesky)(positive), np.linalg.cholesky(positive), **near)
    factors, pivots, _ = tracer.jit(lax.linalg.lu)(x)
    theirs = scipy.linalg.lu_factor(x)
    np.testing.assert_array_equal(pivots, theirs[1])
    np.testing.assert_allclose(factors, theirs[0], **near)


def test_what_does_not_fit_is_told() -> None:
    with pytest.raises(
        ShapeError, match=r"^triangular_solve at .*: the sizes of the operands do not fit\n  got f64\[4,4\]"
    ):
        lax.linalg.triangular_solve(SQUARE, np.ones((3, 2)), left_side=True)
    with pytest.raises(DTypeError, match=r"^triangular_solve at .*: operands must have equal dtypes\n"):
        lax.linalg.triangular_solve(SQUARE, np.ones((4, 4), np.float32))
    with pytest.raises(DTypeError, match=r"^lu at .* takes floats, complex numbers\n  got i64\[2,2\]\n"):
        lax.linalg.lu(np.eye(2, dtype=np.int64))
    with pytest.raises(ShapeError, match=r"^lu at .* takes matrices in the last two axes\n  got f64\[3\]\n"):
        lax.linalg.lu(np.ones(3))
    with pytest.raises(ShapeError, match=r"^cholesky at .* takes square matrices in the last two axes\n"):
        lax.linalg.cholesky(np.ones((2, 3)))
    with pytest.raises(ArgumentError, match=r"^lu_pivots_to_permutation at .* takes integers, at most as many"):
        lax.linalg.lu_pivots_to_permutation(np.array([0, 1, 2]), 2)


COMPLEX = SQUARE[:, :3] + 1j * RNG.standard_normal((4, 3))


@pytest.mark.parametrize("x", [SQUARE[:, :3], COMPLEX])
def test_reflectors_multiply_as_their_product(x: Any) -> None:
    packed, taus = np.linalg.qr(x, mode="raw")
    packed, whole = np.ascontiguousarray(packed.T), np.asarray(lax.linalg.qr(x)[0])
    np.testing.assert_allclose(lax.linalg.householder_product(packed, taus), whole[:, :3], atol=1e-12)
    side = RNG.standard_normal((4, 2)).astype(x.dtype)
    for transpose, factor in ((False, whole), (True, whole.conj().T)):
        for left, other, expected in ((True, side, factor @ side), (False, side.T.copy(), side.T @ factor)):
            call = tracer.jit(
                lambda a, t, c, on=left, turn=transpose: lax.linalg.ormqr(a, t, c, left=on, transpose=turn)
            )
            np.testing.assert_allclose(call(packed, taus, other), expected, atol=1e-12)
    with pytest.raises(ShapeError, match=r"^ormqr at .*: the sizes of the operands do not fit"):
        lax.linalg.ormqr(packed, taus, side[:2])


@pytest.mark.parametrize("x", [SQUARE, COMPLEX, COMPLEX.astype("c8")])
def test_qdwh_has_orthonormal_columns_and_a_hermitian_factor(x: Any) -> None:
    for call in (lax.linalg.qdwh, tracer.jit(lax.linalg.qdwh)):
        u, h, count, converged = map(np.asarray, call(x))
        near = 1e-5 if x.dtype == np.complex64 else 1e-12
        np.testing.assert_allclose(u @ h, x, atol=near)
        np.testing.assert_allclose(u.conj().T @ u, np.eye(x.shape[1]), atol=near)
        np.testing.assert_array_equal(h, h.conj().T)
        assert converged
        assert 1 <= count <= 7


@pytest.mark.parametrize("rows", [0, 3])
def test_qdwh_of_no_columns_has_factors_without_elements(rows: int) -> None:
    u, h, _, converged = lax.linalg.qdwh(np.zeros((rows, 0)))
    assert (u.shape, h.shape, bool(converged)) == ((rows, 0), (0, 0), True)


def test_qdwh_of_a_singular_matrix_is_finite_and_multiplies_to_it() -> None:
    x = np.outer(np.arange(1.0, 4.0), np.arange(1.0, 4.0))
    u, h, _, _ = map(np.asarray, lax.linalg.qdwh(x))
    np.testing.assert_allclose(u @ h, x, atol=1e-12)
    np.testing.assert_allclose(u.T @ u, np.eye(3), atol=1e-12)


def test_an_updated_factor_is_that_of_the_updated_matrix() -> None:
    factor, vector = np.linalg.cholesky(SQUARE @ SQUARE.T + np.eye(4)).T.copy(), RNG.standard_normal(4)
    expected = np.linalg.cholesky(factor.T @ factor + np.outer(vector, vector)).T
    for call in (lax.linalg.cholesky_update, tracer.jit(lax.linalg.cholesky_update)):
        np.testing.assert_allclose(call(factor, vector), expected, atol=1e-12)
    product = lax.linalg.symmetric_product(SQUARE[:, :2], SQUARE @ SQUARE.T, alpha=2.0, beta=-1.0)
    np.testing.assert_allclose(product, 2 * SQUARE[:, :2] @ SQUARE[:, :2].T - SQUARE @ SQUARE.T)


def test_subsets_are_ranges_of_the_sorted_values() -> None:
    symmetric = SQUARE + SQUARE.T
    vectors, values = lax.linalg.eigh(symmetric, subset_by_index=(1, 3))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(symmetric)[1:3])
    np.testing.assert_allclose(symmetric @ np.asarray(vectors), vectors * np.asarray(values), atol=1e-12)
    u, s, vh = lax.linalg.svd(SQUARE, subset_by_index=(0, 2))
    assert (u.shape, s.shape, vh.shape) == ((4, 2), (2,), (2, 4))
    with pytest.raises(ArgumentError, match=r"^svd at .*: subset_by_index is a range among 4 values\n  got \(2, 5\)"):
        lax.linalg.svd(SQUARE, subset_by_index=(2, 5))
    with pytest.raises(ArgumentError, match=r"^eigh at .*: implementation is None here"):
        lax.linalg.eigh(SQUARE, implementation="jacobi")


def test_canonical_forms_are_similar_to_the_matrix() -> None:
    symmetric = SQUARE + SQUARE.T
    _, diagonal, beside, _ = map(np.asarray, lax.linalg.tridiagonal(symmetric))
    whole = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    np.testing.assert_allclose(np.linalg.eigvalsh(whole), np.linalg.eigvalsh(symmetric))
    form, basis = map(np.asarray, lax.linalg.schur(SQUARE))
    np.testing.assert_allclose(basis @ form @ basis.T, SQUARE, atol=1e-12)
    values, left, right = map(np.asarray, lax.linalg.eig(SQUARE))
    np.testing.assert_allclose(left.conj().T @ SQUARE, values[:, None] * left.conj().T, atol=1e-12)
    np.testing.assert_allclose(SQUARE @ right, right * values, atol=1e-12)


def test_tridiagonal_systems_have_gradients_and_singular_ones_are_lost() -> None:
    lower, main, upper, b = RNG.standard_normal(4), 5 + RNG.standard_normal(4), RNG.standard_normal(4), SQUARE
    dense = np.diag(main) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
    np.testing.assert_allclose(
        tracer.jit(lax.linalg.tridiagonal_solve)(lower, main, upper, b), np.linalg.solve(dense, b)
    )
    loss = lambda solve: lambda *xs: tnp.sum(solve(*xs) ** 2)  # noqa: E731

    def by_matrix(lower: Any, main: Any, upper: Any, b: Any) -> Any:
        return tnp.linalg.solve(tnp.diag(main) + tnp.diag(lower[1:], -1) + tnp.diag(upper[:-1], 1), b)

    given = tuple(map(tnp.asarray, (lower, main, upper, b)))
    found = tracer.grad(loss(lax.linalg.tridiagonal_solve), argnums=(0, 1, 2, 3))(*given)
    for got, expected in zip(found, tracer.grad(loss(by_matrix), argnums=(0, 1, 2, 3))(*given), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-12)
    zero = np.zeros(2)
    assert np.isnan(lax.linalg.tridiagonal_solve(zero, zero, zero, np.ones((2, 1)))).all()
