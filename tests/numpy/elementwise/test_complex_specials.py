"""Functions of complex numbers at zeros, infinities and NaNs of every sign: NumPy's values, which are those of C99.

C99's Annex G leaves open the signs of NaNs, of zeros beside a NaN, and of infinities beside a NaN; so does this test.
"""

from __future__ import annotations

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp

PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, np.inf, -np.inf, np.nan, np.pi / 2)
WIDE = (1e-300, -1e-300, 800.0, -800.0)  # of float64 alone
FUNCTIONS = (
    "exp", "log", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan",
    "arcsinh", "arccosh", "arctanh", "abs", "conj", "angle",
)  # fmt: skip


def agree(x: np.ndarray, y: np.ndarray, *, signs: np.ndarray, rtol: float) -> np.ndarray:
    """Where parts are equal, to rounding; up to the sign where it does not count."""

    def near(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= rtol * np.maximum(np.abs(a), np.abs(b)))

    same_sign = np.isnan(x) | (np.signbit(x) == np.signbit(y))
    return (near(x, y) & same_sign) | (~signs & (near(x, y) | near(x, -y)))


@pytest.mark.parametrize(("dtype", "rtol"), [("complex64", 1e-5), ("complex128", 1e-13)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str, dtype: str, rtol: float) -> None:
    values = PARTS + WIDE * (dtype == "complex128")
    z = np.array([complex(a, b) for a in values for b in values], dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(z.astype("complex128")).astype(getattr(np, name)(z).dtype)
        certain = ~np.isnan(expected) & ~((expected == 0) & np.isinf(z.imag))
        for found in (getattr(tnp, name)(tnp.asarray(z)), tracer.jit(getattr(tnp, name))(z)):
            ours = np.asarray(found)
            assert ours.dtype == expected.dtype
            for part in (np.real, np.imag):
                right = agree(part(ours), part(expected), signs=certain, rtol=rtol)
                assert right.all(), [(z[i], ours[i], expected[i]) for i in np.flatnonzero(~right)[:5]]
