"""`lax.fft`: NumPy's transforms over the last axes, by JAX's types and lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tracer import jit, lax
from tracer.errors import ShapeError

X = np.random.default_rng(3).standard_normal((3, 4, 6))
LENGTHS = [(6,), (4, 6), (3, 4, 6)]


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("width", ["complex64", "complex128"])
def test_transforms_over_the_last_axes(lengths: tuple[int, ...], width: str) -> None:
    z = (X + 1j * X[::-1]).astype(width)
    axes, half = range(-len(lengths), 0), z[..., :4]
    expected: dict[str, Any] = {
        "FFT": (z, np.fft.fftn(z, axes=axes)), "IFFT": (z, np.fft.ifftn(z, axes=axes)),
        "RFFT": (z.real, np.fft.rfftn(z.real, axes=axes)), "IRFFT": (half, np.fft.irfftn(half, lengths, axes)),
    }  # fmt: skip
    for name, (given, result) in expected.items():
        for kind in (name, name.lower(), lax.FftType[name]):
            found = np.asarray(jit(lambda x, kind=kind: lax.fft(x, kind, lengths))(given))
            assert found.dtype == result.dtype
            np.testing.assert_allclose(found, result, rtol=1e-5, atol=1e-5 if width == "complex64" else 1e-13)


def test_no_lengths_make_complex_numbers() -> None:
    assert lax.fft(X, "FFT", ()).dtype == np.complex128


@pytest.mark.parametrize("lengths", [(0,), (5,), (2, 3, 4, 6), (6, 4)])
def test_lengths_are_those_of_the_operand(lengths: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"^fft at test_fourier\.py:\d+: the last axes do not have .*\n  got c128"):
        lax.fft(X, "FFT", lengths)
