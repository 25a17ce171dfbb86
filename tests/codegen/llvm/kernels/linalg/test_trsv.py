"""Triangular systems of one side by kernels of our own: both triangles, turned or not, every length and width."""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer.codegen.llvm.kernels.linalg.trsv import NAME, system_text
from tracer.codegen.llvm.toolchain.object_code import LoadedModule, compile_object, load_object
from tracer.codegen.llvm.toolchain.target import features, preferred_bits

Array = np.ndarray[Any, Any]
DTYPES = {"f32": np.dtype("f4"), "f64": np.dtype("f8")}
WIDTHS = tuple(bits for bits in (128, 256, 512) if bits <= preferred_bits())
LENGTHS = (1, 2, 7, 8, 9, 17, 40, 63, 64, 65, 130)
_FUNCTION = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 4)


@cache
def loaded(kind: str, bits: int) -> LoadedModule:
    return load_object(compile_object(system_text(kind, bits), vector_bits=bits), {}, export=f"{NAME}{kind}")


def solved(kind: str, bits: int, a: Array, b: Array, lower: bool, turned: bool, unit: bool) -> Array:
    n, x = len(b), np.full(len(b) + 8, np.nan, b.dtype)
    x[:n] = b
    _FUNCTION(loaded(kind, bits).address(f"{NAME}{kind}"))(a.ctypes.data, x.ctypes.data, n, lower, turned, unit)
    assert np.isnan(x[n:]).all()
    return x[:n]


def system(kind: str, n: int, lower: bool) -> tuple[Array, Array]:
    """What is not of the triangle is NaN."""
    rng = np.random.default_rng(n)
    a = (rng.standard_normal((n, n)) / n + 2 * np.eye(n)).astype(DTYPES[kind])
    a[np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)] = np.nan
    return a, rng.standard_normal(n).astype(DTYPES[kind])


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_the_solution_gives_the_side_back(kind: str, bits: int, lower: bool, turned: bool, unit: bool) -> None:
    for n in LENGTHS:
        a, b = system(kind, n, lower)
        if unit:
            np.fill_diagonal(a, np.nan)
        x = solved(kind, bits, a, b, lower, turned, unit).astype("f8")
        whole = (np.tril(a) if lower else np.triu(a)).astype("f8")
        if unit:
            np.fill_diagonal(whole, 1)
        matrix = whole.T if turned else whole
        error = np.abs(matrix @ x - b) / (np.abs(matrix) @ np.abs(x))
        assert error.max() < 4 * n**0.5 * np.finfo(b.dtype).eps


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("turned", [False, True])
def test_every_width_of_vectors_gives_the_same_bits(kind: str, turned: bool) -> None:
    fused = [bits for bits in WIDTHS if dict(features(bits)).get("fma", True)]
    a, b = system(kind, 203, True)
    assert len({solved(kind, bits, a, b, True, turned, False).tobytes() for bits in fused}) == 1


def triangular(**options: Any) -> Any:
    return tracer.jit(lambda a, b: tracer.lax.linalg.triangular_solve(a, b, **options))


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("n", [20, 150])
def test_one_side_from_either_side_is_solved_for_without_a_library(
    left: bool, lower: bool, turned: bool, n: int
) -> None:
    a, b = system("f64", n, lower)
    b = b.reshape((n, 1) if left else (1, n))
    solve = triangular(left_side=left, lower=lower, transpose_a=turned)
    assert "blas" not in str(solve.lower(a, b).llvm())
    whole = np.tril(a) if lower else np.triu(a)
    matrix, x = whole.T if turned else whole, np.asarray(solve(a, b))
    np.testing.assert_allclose(matrix @ x if left else x @ matrix, b, atol=1e-13)


def test_threads_and_stacks_do_not_show() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((9, 200, 200)) / 200 + 2 * np.eye(200), rng.standard_normal((9, 200, 1))
    results = set()
    for count in (1, 2, 3):
        with tracer.config.using(threads=count):
            results.add(np.asarray(triangular(left_side=True, lower=True)(a, b)).tobytes())
    alone = np.stack([np.asarray(triangular(left_side=True, lower=True)(*pair)) for pair in zip(a, b, strict=True)])
    assert results == {alone.tobytes()}


def test_solving_for_a_vector_needs_no_library() -> None:
    assert "lapack" not in (text := str(tracer.jit(tnp.linalg.solve).lower(np.eye(40), np.ones(40)).llvm()))
    assert "blas" not in text


@pytest.mark.parametrize(("left", "conjugate"), [*product((False, True), repeat=2)])
def test_a_complex_side_is_solved_for_in_every_form(left: bool, conjugate: bool) -> None:
    n, rng = 24, np.random.default_rng(0)
    for turn, (lower, turned) in enumerate(product((False, True), repeat=2)):
        dtype, unit = ("c8", "c16")[turn % 2], turn > 1
        a = (rng.standard_normal((2, n, n)) / n + 1j * rng.standard_normal((2, n, n)) / n + 2 * np.eye(n)).astype(dtype)
        b = (rng.standard_normal((2, n)) + 1j * rng.standard_normal((2, n))).astype(dtype)
        form = {"left_side": left, "lower": lower, "transpose_a": turned, "conjugate_a": conjugate}
        solve = triangular(**form, unit_diagonal=unit)
        x = np.asarray(solve(a, b[..., None] if left else b[:, None])).reshape(2, n)
        matrix = np.tril(a) if lower else np.triu(a)
        matrix = np.where(np.eye(n), 1, matrix) if unit else matrix
        matrix = matrix.conj() if conjugate else matrix
        matrix = matrix if turned != left else np.swapaxes(matrix, -1, -2)
        np.testing.assert_allclose((matrix @ x[..., None])[..., 0], b, atol=100 * np.finfo(dtype).eps)


def test_a_complex_side_is_solved_for_without_packing_the_matrix() -> None:
    solve = triangular(left_side=True, conjugate_a=True, transpose_a=True)
    assert "tracer_blas_ztrsv" in str(solve.lower(np.eye(40) + 0j, np.ones((40, 1)) + 0j).llvm())
