"""argmax and argmin of complex numbers, against NumPy's: by real, then by imaginary part, the first NaN first."""

from __future__ import annotations

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax
from tracer.errors import ShapeError

PARTS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf]


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("parts", [PARTS, [*PARTS, np.nan]], ids=["numbers", "with NaN"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_compared_by_parts(name: str, parts: list[float], dtype: str) -> None:
    rng = np.random.default_rng(5)
    x = np.empty((200, 6), dtype)
    x.real, x.imag = rng.choice(parts, x.shape), rng.choice(parts, x.shape)
    expected = getattr(np, name)(x, axis=1)
    np.testing.assert_array_equal(np.asarray(getattr(lax, name)(x, 1)), expected)
    np.testing.assert_array_equal(np.asarray(tracer.jit(lambda x: getattr(tnp, name)(x, axis=1))(x)), expected)
    assert int(getattr(tnp, name)(x)) == getattr(np, name)(x)


def test_of_no_complex_numbers_none_is_the_greatest() -> None:
    with pytest.raises(ShapeError):
        lax.argmax(np.zeros((2, 0), complex), 1)
