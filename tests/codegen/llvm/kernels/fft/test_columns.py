"""Kernels of complex columns: every radix, widths that blocks do not divide, in place, and threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import covering
from tracer import config, jit
from tracer.codegen.llvm.kernels.fft.column_passes import column_radices
from tracer.primitives.linalg.fourier import transformed

RNG = np.random.default_rng(23)
LENGTHS = (2, 3, 5, 7, 11, 13, 16, 26, 27, 32, 64, 72, 110, 128, 360, 500, 512, 1024, 4096)
WIDTHS = (16, 17, 31, 40)
EPSILON = {"complex64": 3e-7, "complex128": 6e-16}


def numbers(dtype: str, *shape: int) -> Any:
    parts = RNG.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(dtype)


def error(found: Any, expected: Any) -> float:
    return float(np.linalg.norm(np.asarray(found) - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize(("dtype", "n", "width"), covering(EPSILON, LENGTHS, WIDTHS, least=22))
def test_columns_of_every_radix_and_width(dtype: str, n: int, width: int) -> None:
    x = numbers(dtype, 2, n, width)
    for fft_type, function in (("FFT", tnp.fft.fft), ("IFFT", tnp.fft.ifft)):
        scale = 1.0 if fft_type == "FFT" else 1 / n
        expected = transformed(x.astype(complex), fft_type=fft_type, axis=1, length=n, scale=scale)
        assert error(jit(lambda a, f=function: f(a, axis=1))(x), expected) < EPSILON[dtype]


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("shape", [(64, 64), (129, 65), (130, 360), (3, 90, 50)])
def test_planes_are_transformed_in_the_memory_of_their_rows(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(dtype, *shape)
    assert error(jit(tnp.fft.fft2)(x), np.fft.fft2(x.astype(complex))) < 2 * EPSILON[dtype]
    assert error(jit(lambda a: tnp.fft.ifft2(tnp.fft.fft2(a)))(x), x) < 3 * EPSILON[dtype]
    assert error(jit(tnp.fft.rfft2)(x.real), np.fft.rfft2(x.real.astype(float))) < 2 * EPSILON[dtype]
    given = tnp.asarray(x.copy())
    assert error(jit(lambda a: tnp.fft.fft2(a) * 1.0, donate_argnums=0)(given), np.fft.fft2(x)) < 2 * EPSILON[dtype]


def test_rows_that_are_read_again_keep_their_memory() -> None:
    x = numbers("complex128", 96, 64)

    def both(a: Any) -> Any:
        rows = tnp.fft.fft(a)
        return tnp.fft.fft(rows, axis=0) + tnp.fft.fft(rows, axis=1)

    rows = np.fft.fft(x)
    assert error(jit(both)(x), np.fft.fft(rows, axis=0) + np.fft.fft(rows, axis=1)) < 1e-15


def test_columns_depend_on_neither_their_neighbours_nor_threads() -> None:
    """A block is as wide as a vector; the last columns, too few for a block, are copied."""
    x = numbers("complex64", 500, 200)
    whole = np.asarray(jit(lambda a: tnp.fft.fft(a, axis=0))(x))
    for columns in (slice(0, 16), slice(100, 117), slice(183, 200)):
        found = jit(lambda a: tnp.fft.fft(a, axis=0))(np.ascontiguousarray(x[:, columns]))
        np.testing.assert_array_equal(np.asarray(found), whole[:, columns])


@pytest.mark.parametrize("dtype", EPSILON)
def test_columns_and_rows_beyond_a_cache_are_fetched_ahead(dtype: str) -> None:
    """Arrays of more than a mebibyte are; the bits are those of smaller ones."""
    x = numbers(dtype, 512, 320)
    whole = np.asarray(jit(lambda a: tnp.fft.fft(a, axis=0))(x))
    few = np.asarray(jit(lambda a: tnp.fft.fft(a, axis=0))(np.ascontiguousarray(x[:, 16:48])))
    np.testing.assert_array_equal(whole[:, 16:48], few)
    rows = np.asarray(jit(tnp.fft.fft)(x))
    np.testing.assert_array_equal(rows[40:60], np.asarray(jit(tnp.fft.fft)(x[40:60])))


@pytest.mark.parametrize("bits", [128, 256])
def test_narrower_vectors_give_nearly_the_same_columns(bits: int) -> None:
    for dtype in EPSILON:
        x = numbers(dtype, 96, 19)
        with config.using(vector_bits=bits):
            found = jit(lambda a: tnp.fft.fft(a, axis=0))(x)
        assert error(found, np.fft.fft(x.astype(complex), axis=0)) < EPSILON[dtype]


def test_radices_of_columns_are_as_few_as_sixteens_allow() -> None:
    for n in range(2, 1025):
        odd = n // (n & -n)
        for factor in (3, 5, 7, 11, 13):
            while odd % factor == 0:
                odd //= factor
        if odd == 1:
            found = column_radices(n)
            assert np.prod(found) == n
            assert len(found) > 1
            assert max(found) <= 16
    assert column_radices(512) == (8, 8, 8)
    assert column_radices(16, 8) == (4, 4)
    assert column_radices(2048) == (16, 16, 8)
