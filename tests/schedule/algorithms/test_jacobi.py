"""Eigenvalues and singular values of small matrices in lanes: hard matrices, and every lane on its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
from tests.grids import covering
from tracer.primitives.linalg import spectral

DTYPES = ["f4", "f8", "c8", "c16"]
ALLOWED = 64  # epsilons, of the largest element; some 25 are seen


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def hard(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> Any:
    """Matrices of nothing, with equal values, of rank 1 and 2, sparse, tiny, huge, subnormal, and usual ones."""
    m, n = shape
    x = draw(rng, (11, m, n), dtype)
    limits = np.finfo(dtype)
    x[0] = 0
    x[1] = np.eye(m, n)
    x[2] = np.eye(m, n)[:, ::-1]
    x[3] = 1
    x[4] = np.outer(x[4, :, 0], x[4, 0]) + np.outer(x[4, :, -1], x[4, -1])
    x[5] *= rng.random((m, n)) < 0.4
    x[6] *= limits.tiny * 1e4
    x[7] *= limits.max / 64
    x[8] *= limits.tiny * 1e-2
    x[9] *= 10.0 ** -np.arange(n)
    return x


def errors(of: Any, *pairs: tuple[Any, Any]) -> float:
    """The largest error, in epsilons, of results relative to the size of a matrix."""
    tiny = np.finfo(of.dtype).smallest_subnormal / np.finfo(of.dtype).eps
    return max(float(np.abs(x - y).max()) for x, y in pairs) / max(float(np.abs(of).max()), float(tiny)) / float(
        np.finfo(of.dtype).eps
    )  # fmt: skip


def adjoint(x: Any) -> Any:
    return np.swapaxes(x, -1, -2).conj()


@pytest.mark.parametrize(("dtype", "n"), covering(DTYPES, [1, 2, 3, 8], least=8))
def test_eigenvalues_and_vectors_make_up_hard_matrices(dtype: str, n: int, rng: np.random.Generator) -> None:
    lower = np.tril(hard(rng, (n, n), dtype))
    np.einsum("kii->ki", lower)[...] = np.einsum("kii->ki", lower).real
    given = lower + np.triu(draw(rng, lower.shape, dtype), 1)  # what stands above the diagonal is not read
    values, vectors, alone = map(np.asarray, tracer.jit(lambda x: (*spectral.eigh(x), spectral.eigvalsh(x)))(given))
    matrices = (lower + adjoint(np.tril(lower, -1))).astype("c16" if dtype[0] == "c" else "f8")
    unit = np.eye(n, dtype=dtype)
    for x, w, v, again in zip(matrices, values, vectors, alone, strict=True):
        size = np.asarray(np.abs(x).max(), values.dtype)[None]
        w, wide = w.astype("f8"), v.astype(matrices.dtype)
        assert (np.diff(w) >= 0).all()
        assert (
            errors(size, (w, np.linalg.eigvalsh(x)), (again.astype("f8"), w), (wide * w @ adjoint(wide), x)) < ALLOWED
        )
        assert errors(unit, (adjoint(wide) @ wide, unit)) < ALLOWED


FORMS = [((2, 2), True), ((5, 3), False), ((3, 5), True), ((1, 4), False), ((8, 7), True)]


@pytest.mark.parametrize(
    ("dtype", "shape", "full"), [(dtype, *form) for dtype, form in covering(DTYPES, FORMS, least=10)]
)
def test_singular_values_and_vectors_make_up_hard_matrices(
    dtype: str, shape: tuple[int, int], full: bool, rng: np.random.Generator
) -> None:
    given, k = hard(rng, shape, dtype), min(shape)
    found = tracer.jit(lambda x: (*spectral.svd(x, full_matrices=full), spectral.svdvals(x)))(given)
    for x, s, left, right, again in zip(given, *map(np.asarray, found), strict=True):
        wide = "c16" if dtype[0] == "c" else "f8"
        size = np.asarray(np.abs(x).max(), s.dtype)[None]
        x, s, left, right = x.astype(wide), s.astype("f8"), left.astype(wide), right.astype(wide)
        assert (s >= 0).all()
        assert (np.diff(s) <= 0).all()
        expected = np.linalg.svd(x, compute_uv=False)
        assert errors(size, (s, expected), (again.astype("f8"), s), (left[:, :k] * s @ right[:k], x)) < ALLOWED
        for basis in (left, adjoint(right)):
            unit = np.eye(basis.shape[1], dtype=dtype)
            assert errors(unit, (adjoint(basis) @ basis, unit)) < ALLOWED


def test_a_matrix_has_the_same_bits_in_every_lane_and_beside_lost_ones(rng: np.random.Generator) -> None:
    function = tracer.jit(lambda x: (*spectral.eigh(x), *spectral.svd(x, full_matrices=True)))
    x = draw(rng, (40, 6, 6), "f8")
    x += np.swapaxes(x, -1, -2)
    x[1:20] *= rng.random((19, 1, 1))
    moved = np.roll(x, 3, 0)
    moved[[0, 7], 2, 5] = np.nan, np.inf
    kept = np.setdiff1d(np.arange(40), [0, 7])
    for got, other in zip(function(x), function(moved), strict=True):
        assert np.isnan(np.asarray(other)[[0, 7]]).all()
        np.testing.assert_array_equal(np.asarray(other)[kept], np.roll(np.asarray(got), 3, 0)[kept])
