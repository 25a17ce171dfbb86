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
