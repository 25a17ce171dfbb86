"""Factorisations of large matrices in blocks: every shape of edges, singular ones, any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tracer
import tracer.numpy as tnp
from tracer.settings import config

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}
SHAPES = [(192, 192), (200, 257), (257, 200), (321, 321), (192, 700), (700, 192)]


def drawn(*shape: int, dtype: str = "float64") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def positive(n: int, dtype: str = "float64") -> Array:
    x = RNG.standard_normal((n, n))
    return (x @ x.T / n + np.eye(n)).astype(dtype)


def factored(x: Array) -> list[Array]:
    return [np.asarray(part) for part in tracer.jit(tracer.lax.linalg.lu)(x)]


def factor(x: Array) -> Array:
    return np.asarray(tracer.jit(tracer.lax.linalg.cholesky)(x))


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lu_gives_the_rows_back(shape: tuple[int, int], dtype: str) -> None:
    x = drawn(2, *shape, dtype=dtype)
    factors, pivots, permutation = factored(x)
    k = min(shape)
    for f, p, order, whole in zip(factors, pivots, permutation, x, strict=True):
        lower, upper = np.tril(f[:, :k].astype("f8"), -1) + np.eye(shape[0], k), np.triu(f[:k].astype("f8"))
        assert (np.abs(np.tril(f[:, :k], -1)) <= 1).all()
        error = np.abs(lower @ upper - whole[order]) / (np.abs(lower) @ np.abs(upper))
        assert error.max() < 8 * EPSILON[dtype]
        rows = np.arange(shape[0])
        for n, chosen in enumerate(p):
            rows[[n, chosen]] = rows[[chosen, n]]
        np.testing.assert_array_equal(rows, order)


def test_lu_chooses_the_rows_that_lapack_chooses() -> None:
    x = drawn(300, 300)
    np.testing.assert_array_equal(factored(x)[1], scipy.linalg.lu_factor(x)[1])


def test_lu_of_a_singular_matrix_has_a_zero_on_the_diagonal() -> None:
    x = RNG.integers(-4, 5, (200, 200)).astype("f8")
    x[:, 150] = 0
    factors, _, order = factored(x)
    lower, upper = np.tril(factors, -1) + np.eye(200), np.triu(factors)
    assert upper[150, 150] == 0
    np.testing.assert_allclose(lower @ upper, x[order], atol=1e-10)


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("n", [192, 256, 257, 400])
def test_cholesky_gives_the_matrix_back(n: int, dtype: str) -> None:
    x = np.stack([positive(n, dtype), positive(n, dtype)])
    for lower, whole in zip(factor(x), x, strict=True):
        assert not np.triu(lower, 1).any()
        wide = lower.astype("f8")
        assert (np.abs(wide @ wide.T - whole) / (np.abs(wide) @ np.abs(wide.T))).max() < 8 * EPSILON[dtype]


@pytest.mark.parametrize("place", [0, 63, 64, 130, 199])
def test_cholesky_of_what_is_not_positive_definite_is_nan_and_its_neighbours_are_not(place: int) -> None:
    x = np.stack([positive(200)] * 3)
    x[1, place, place] = -1
    lower = factor(x)
    assert np.isnan(lower[1][np.tril_indices(200)]).all()
    np.testing.assert_array_equal(lower[0], lower[2])
    assert np.isfinite(lower[0]).all()


@pytest.mark.parametrize("dtype", EPSILON)
def test_the_number_of_threads_does_not_show(dtype: str) -> None:
    x, y = drawn(330, 330, dtype=dtype), positive(330, dtype)
    results = []
    for count in (1, 2, 3):
        with config.using(threads=count):
            results.append((*(part.tobytes() for part in factored(x)), factor(y).tobytes()))
    assert len(set(results)) == 1


def test_systems_of_many_unknowns_are_solved() -> None:
    a, b = drawn(320, 320), drawn(320, 5)
    x = np.asarray(tracer.jit(tnp.linalg.solve)(a, b))
    np.testing.assert_allclose(a @ x, b, atol=1e-9)
