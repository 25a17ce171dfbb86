"""The way of each Fourier transform: at once, in two steps, or by NumPy, and how threads share it."""

from __future__ import annotations

import pytest

from tracer.ir.loop import Along, Kernel, Split
from tracer.schedule.algorithms.fourier import first_step, longer_length
from tracer.schedule.algorithms.library_kernels import fft_kernel


@pytest.mark.parametrize(
    ("n", "n1"),
    [
        (1, -1),
        (2, 0),
        (64, 0),
        (128, 0),
        (256, 16),
        (101, -1),
        (512, 16),
        (1000, 25),
        (1024, 32),
        (2**22, 2048),
        (2**23, -1),
    ],
)
def test_long_lines_of_small_factors_are_cut_in_two(n: int, n1: int) -> None:
    assert first_step(n, real=False, rows=True) == n1
    if n > 1:
        assert first_step(2 * n, real=True, rows=True) == n1


@pytest.mark.parametrize("n", [37, 101, 1009, 2**20 - 3])
def test_convolutions_take_the_next_length_of_small_factors(n: int) -> None:
    found = longer_length(n)
    assert found >= 2 * n - 1
    assert found % 8 == 0
    assert first_step(found, real=False, rows=True) > 0


def test_odd_real_lines_and_long_columns_are_numpy_s() -> None:
    assert first_step(27, real=True, rows=True) == first_step(2, real=True, rows=True) == -1
    assert first_step(8192, real=False, rows=False) == 0
    assert first_step(16384, real=False, rows=False) == -1


def test_threads_share_lines_by_eight() -> None:
    assert fft_kernel("f64", (0, 1, 64, 1, 0, 0, 1)) == fft_kernel("f32", (2, 1, 128, 1, 0, 0, 1)) == Kernel("short")
    assert fft_kernel("f64", (0, 1, 64, 3, 0, 0, 1)) == fft_kernel("f32", (2, 1, 64, 1, 0, 0, 1)) == Kernel("lines")
    assert fft_kernel("f64", (1, 1, 64, 16, 0, 0, 1)) == Kernel("columns")
    assert fft_kernel("f64", (1, 1, 64, 15, 0, 0, 1)) == fft_kernel("f64", (2, 1, 64, 16, 0, 0, 1)) == Kernel("lines")
    assert fft_kernel("f64", (0, 1, 101, 1, -1, 0, 1)) == Kernel()
    assert fft_kernel("f64", (0, 10000, 16, 1, 0, 0, 1)) == Kernel("lines", Split(Along.BATCHES, 10000, 1, 512))
    assert fft_kernel("f64", (0, 100, 1024, 1, 32, 0, 1)) == Kernel("lines", Split(Along.BATCHES, 100, 1, 8))
    assert fft_kernel("f64", (0, 20, 4096, 1, 64, 0, 1)) == Kernel("lines", Split(Along.BATCHES, 20, 1, 2))
