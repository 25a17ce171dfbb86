"""Our kernels of Fourier transforms: every radix, layout of lines and number of steps, in both widths of floats."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import covering
from tracer import config, jit
from tracer.codegen.llvm.kernels.fft.butterflies import roots
from tracer.codegen.llvm.kernels.fft.plans import radices
from tracer.primitives.linalg.fourier import fft, transformed

RNG = np.random.default_rng(11)
TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")
LENGTHS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 16, 22, 24, 32, 36, 60, 64, 98, 128, 143, 208, 210, 250, 256)
LONG = (258, 270, 512, 540, 1000, 1024, 1026, 2048, 2187, 4096, 4374, 8000, 16384)
LARGE = (32768, 65536, 60000, 16411)
PRIME = (37, 74, 101, 509, 1009, 1018, 4099)
EPSILON = {"complex64": 1e-6, "complex128": 2e-15}


def check(n: int, shape: tuple[int, ...], axis: int, dtype: str, fft_type: str, scale: float = 0.5) -> None:
    """Compare with NumPy in double precision, relative to the norm of the result."""
    given = n // 2 + 1 if fft_type == "IRFFT" else n
    z = RNG.standard_normal((2, *(given if size is None else size for size in shape)))
    x = z[0] if fft_type == "RFFT" else z[0] + 1j * z[1]
    narrow = x.astype(dtype if fft_type != "RFFT" else dtype.replace("complex64", "f4").replace("complex128", "f8"))
    params: dict[str, Any] = {"fft_type": fft_type, "axis": axis, "length": n, "scale": scale}
    found = np.asarray(jit(lambda a: fft(a, fft_type, axis, n, scale))(narrow))
    expected = transformed(narrow.astype(x.dtype), **params)
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error < EPSILON[dtype], (n, shape, axis, dtype, fft_type, error)


@pytest.mark.parametrize(("dtype", "n"), covering(EPSILON, LENGTHS, least=24))
def test_lines_of_every_layout(n: int, dtype: str) -> None:
    layouts: list[tuple[Any, int]] = [
        ((None,), 0), ((3, None), 1), ((19, None), 1), ((None, 4), 0), ((2, None, 3), 1), ((None, 11), 0),
        ((3, None, 16), 1),
    ]  # fmt: skip
    for turn, (shape, axis) in enumerate(layouts):
        check(n, shape, axis, dtype, TYPES[turn % 4])
    for fft_type in TYPES:
        check(n, *layouts[(n + TYPES.index(fft_type)) % len(layouts)], dtype, fft_type)


@pytest.mark.parametrize(("dtype", "n"), covering(EPSILON, LONG, least=13))
def test_long_lines_in_two_steps(n: int, dtype: str) -> None:
    for fft_type in TYPES:
        check(n, (None,) if n % 8 else (3, None), 0 if n % 8 else 1, dtype, fft_type)
    check(n, (2, None, 9), 1, dtype, TYPES[n % 4])


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("n", PRIME)
def test_lines_of_large_prime_factors_are_convolved(n: int, dtype: str) -> None:
    for fft_type in TYPES:
        check(n, (3, None), 1, dtype, fft_type)
    check(n, (None, 2), 0, dtype, TYPES[n % 4])


@pytest.mark.parametrize("n", LARGE)
def test_large_lines_are_shared_by_threads(n: int) -> None:
    for fft_type in TYPES:
        check(n, (2, None), 1, "complex128", fft_type)


@pytest.mark.parametrize("bits", [128, 256])
def test_narrower_vectors_give_the_same(bits: int) -> None:
    for n, dtype, error in ((96, "complex128", 1e-13), (64, "complex128", 1e-13), (64, "complex64", 1e-5)):
        x = (RNG.standard_normal((11, n)) + 1j).astype(dtype)
        wide = np.asarray(jit(tnp.fft.fft)(x))
        with config.using(vector_bits=bits):
            np.testing.assert_allclose(np.asarray(jit(tnp.fft.fft)(x)), wide, rtol=error, atol=error)


@pytest.mark.parametrize(("dtype", "h"), [("complex64", 64), ("complex64", 256), ("complex128", 128)])
def test_short_rows_in_registers_are_as_exact_as_a_few_roundings(dtype: str, h: int) -> None:
    """An odd count leaves the last of two lines in a vector alone; real lines are of twice the length."""
    for fft_type in TYPES:
        check(h * (2 if "R" in fft_type else 1), (5, None), 1, dtype, fft_type)


def test_results_depend_on_neither_batches_nor_threads() -> None:
    x = RNG.standard_normal((37, 1000)) + 1j
    whole = np.asarray(jit(tnp.fft.fft)(x))
    for row in (0, 17, 36):
        np.testing.assert_array_equal(np.asarray(jit(tnp.fft.fft)(x[row])), whole[row])


def test_threads_that_plan_at_once_have_one_plan() -> None:
    x, ready = RNG.standard_normal((20, 1170)), Barrier(6)

    def transformed_here(_: int) -> Any:
        ready.wait()
        return np.asarray(jit(lambda a: tnp.fft.fft(a, axis=1))(x))

    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(transformed_here, range(6)):
            np.testing.assert_allclose(found, np.fft.fft(x), atol=1e-11)


def test_imaginary_parts_that_a_real_result_has_not_are_not_read() -> None:
    for n in (8, 16, 1024):
        x = RNG.standard_normal(n // 2 + 1) + 1j
        y = x.copy()
        y.imag[[0, -1]] = np.nan
        expected = np.fft.irfft(np.where(np.isnan(y), y.real, y))
        np.testing.assert_allclose(np.asarray(jit(tnp.fft.irfft)(y)), expected, atol=1e-15)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_short_rows_beyond_a_cache_have_the_bits_of_few(dtype: str) -> None:
    x = (RNG.standard_normal((601, 256)) + 1j).astype(dtype)
    for function, rows in ((tnp.fft.fft, x), (tnp.fft.rfft, np.tile(x.real, (2, 2)))):
        whole = np.asarray(jit(function)(rows))
        np.testing.assert_array_equal(whole[301:321], np.asarray(jit(function)(rows[301:321])))


@pytest.mark.parametrize("n", [128, 256, 512])
def test_ends_of_short_real_rows_are_infinite_where_sums_are(n: int) -> None:
    x = np.ones((3, n), np.float32)
    x[1, 4] = np.inf
    found = np.asarray(jit(tnp.fft.rfft)(x))
    assert found[1, 0] == np.inf
    assert found[1, -1] == np.inf
    np.testing.assert_allclose(found[::2], np.fft.rfft(x[::2]), atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12, 100, 1024])
def test_roots_of_unity_are_rounded_once(n: int) -> None:
    angles = 2 * np.longdouble("3.14159265358979323846264338") * np.arange(n) / n
    exact = np.cos(angles) - 1j * np.sin(angles)
    found = roots(np.arange(n), n, "f64")
    assert np.abs(found[:, 0] + 1j * found[:, 1] - exact).max() < 1.5e-16
    np.testing.assert_array_equal(roots(np.arange(n) + 5 * n, n, "f64"), found)
    exact_quarters = {0: (1, 0), 1: (0, -1), 2: (-1, 0), 3: (0, 1)}
    for quarter in range(4 if n % 4 == 0 else 0):
        assert tuple(found[quarter * n // 4]) == exact_quarters[quarter]


@pytest.mark.parametrize("n", [7, 27, 169, 256])
def test_errors_are_of_a_few_roundings(n: int) -> None:
    """Constants of radices that were rounded at large angles doubled these errors."""
    j, x = np.arange(n), RNG.standard_normal((40, n)) + 1j * RNG.standard_normal((40, n))
    angles = 2 * np.longdouble("3.14159265358979323846264338") * (np.outer(j, j) % n) / n
    exact = x @ (np.cos(angles) - 1j * np.sin(angles))
    error = np.linalg.norm(np.asarray(jit(tnp.fft.fft)(x)) - exact) / np.linalg.norm(exact)
    assert error < {7: 1.2e-16, 27: 2.2e-16, 169: 2.8e-16, 256: 2.2e-16}[n]


def test_radices_multiply_to_the_length() -> None:
    for n in range(1, 2049):
        found = radices(n)
        assert not found or np.prod(found) == n
    assert [n for n in range(2, 40) if not radices(n)] == [17, 19, 23, 29, 31, 34, 37, 38]
