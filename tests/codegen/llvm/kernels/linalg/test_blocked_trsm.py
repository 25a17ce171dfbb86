"""Triangular systems in blocks: every form of the factor, every shape of edges, any number of threads."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tracer
from tests.grids import covering
from tracer.settings import config

Array = np.ndarray[Any, Any]
FORMS = list(itertools.product((False, True), repeat=4))
SHAPES = [(128, 16), (129, 200), (200, 2), (257, 97), (320, 1), (192, 400)]


def system(n: int, sides: int, *, left: bool, dtype: str = "f8", batch: int = 2) -> tuple[Array, Array]:
    """A well-conditioned factor in both triangles, the diagonal of which is not 1, and right sides."""
    rng = np.random.default_rng(n + sides)
    a = rng.standard_normal((batch, n, n)) / n + 2 * np.eye(n)
    b = rng.standard_normal((batch, n, sides) if left else (batch, sides, n))
    return a.astype(dtype), b.astype(dtype)


def solved(a: Array, b: Array, *, left: bool, lower: bool, transposed: bool, unit: bool) -> Array:
    def solve(a: Any, b: Any) -> Any:
        return tracer.lax.linalg.triangular_solve(
            a, b, left_side=left, lower=lower, transpose_a=transposed, unit_diagonal=unit
        )

    compiled = tracer.jit(solve)
    one = b.shape[-1 if left else -2] == 1
    assert ("library.system_" if one else "blocked.trsm") in compiled.lower(a, b).llvm()
    return np.asarray(compiled(a, b))


@pytest.mark.parametrize(("shape", "form"), covering(SHAPES, FORMS, least=24), ids=str)
def test_systems_are_solved(shape: tuple[int, int], form: tuple[bool, bool, bool, bool]) -> None:
    left, lower, transposed, unit = form
    a, b = system(*shape, left=left)
    got = solved(a, b, left=left, lower=lower, transposed=transposed, unit=unit)
    for matrix, sides, x in zip(a, b, got, strict=True):
        whole = matrix.T if left == transposed else matrix  # what solve_triangular is given from the left
        below = lower == (left != transposed)
        given = sides if left else sides.T
        wanted = scipy.linalg.solve_triangular(whole, given, lower=below, unit_diagonal=unit)
        np.testing.assert_allclose(x if left else x.T, wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("left", [True, False])
def test_systems_of_f32_are_solved(left: bool) -> None:
    a, b = system(300, 210, left=left, dtype="f4")
    x = solved(a, b, left=left, lower=True, transposed=False, unit=False).astype("f8")
    lower = np.tril(a.astype("f8"))
    np.testing.assert_allclose(lower @ x if left else x @ lower, b, rtol=0, atol=1e-5)


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    a, b = system(200, 500, left=True)
    results = []
    for count in (1, 2, 3):
        with config.using(threads=count):
            results.append(solved(a, b, left=True, lower=False, transposed=True, unit=False).tobytes())
    assert len(set(results)) == 1


def test_a_zero_on_the_diagonal_spoils_what_depends_on_it() -> None:
    a, b = system(150, 20, left=True, batch=1)
    a[0, 70, 70] = 0
    x = solved(a, b, left=True, lower=True, transposed=False, unit=False)[0]
    wanted = scipy.linalg.solve_triangular(a[0][:70, :70], b[0][:70], lower=True)
    np.testing.assert_allclose(x[:70], wanted, rtol=1e-12)
    assert not np.isfinite(x[70:]).any()
