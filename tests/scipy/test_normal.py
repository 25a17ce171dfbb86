"""The normal distribution function, its logarithm and its inverse, far into the tails, beside mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import grad, jit, vmap
from tracer.scipy import special

SMALL = np.concatenate([10.0 ** -np.linspace(0.31, 307, 100), np.linspace(0.02, 0.98, 32)])
NEAR_ONE = 1 - 10.0 ** -np.linspace(0.31, 15.9, 40)
FAR = np.concatenate([-(10.0 ** np.linspace(-3, 8, 100)), 10.0 ** np.linspace(-3, 1.57, 50)])


def quantile(p: float) -> Any:
    """By Newton's method on the logarithm, whose slope is even in the tail."""
    if p > 0.5:
        return -quantile(mpmath.mpf(1) - mpmath.mpf(p))
    p = mpmath.mpf(p)
    x = -mpmath.sqrt(-2 * mpmath.log(p)) if p < 0.3 else mpmath.mpf(0)
    for _ in range(12):
        below = mpmath.ncdf(x)
        x -= mpmath.log(below / p) * below / mpmath.npdf(x)
    return x


def log_distribution(x: float) -> Any:
    x = mpmath.mpf(x)
    return mpmath.log(mpmath.ncdf(x)) if x < 0 else mpmath.log1p(-mpmath.ncdf(-x))


def error(found: Any, exact: Any, x: np.ndarray[Any, Any]) -> float:
    with mpmath.workdps(40):
        pairs = zip(np.asarray(found).astype(float), x.astype(float), strict=True)
        return max(float(abs(mpmath.mpf(value) / exact(at) - 1)) for value, at in pairs)


@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_quantiles_in_the_tails_and_beside_one(way: Any) -> None:
    f = way(special.ndtri)
    for x in (SMALL, NEAR_ONE):
        assert error(f(tnp.asarray(x)), quantile, x) < 1e-15
        single = x.astype("float32")
        single = single[(single > 1.2e-38) & (single < 1)]
        assert error(f(tnp.asarray(single)), quantile, single) < 5e-7


def test_quantiles_at_the_ends_and_outside() -> None:
    ends = special.ndtri(tnp.asarray([0.0, -0.0, 0.5, 1.0, -1e-300, 1.1, np.inf, -np.inf, np.nan]))
    np.testing.assert_array_equal(ends, [-np.inf, -np.inf, 0, np.inf, *[np.nan] * 5])


@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_logarithms_far_below_and_far_above(way: Any) -> None:
    f = way(special.log_ndtr)
    assert error(f(tnp.asarray(FAR)), log_distribution, FAR) < 3e-13  # the rounding of x / sqrt(2), squared
    below = FAR[FAR < -5].astype("float32")
    assert error(f(tnp.asarray(below)), log_distribution, below) < 5e-7
    np.testing.assert_array_equal(f(tnp.asarray([-np.inf, np.inf, np.nan])), [-np.inf, 0, np.nan])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_keep_their_dtype_and_tails(dtype: str) -> None:
    x = tnp.linspace(-200, 0, 41).astype(dtype)
    found = special.log_ndtr(x)
    assert found.dtype == x.dtype
    expected = [float(log_distribution(at)) for at in np.asarray(x).astype(float)]
    np.testing.assert_allclose(np.asarray(found).astype(float), expected, rtol=2.0**-8)
    p = tnp.asarray([1e-3, 0.25, 0.5]).astype(dtype)
    quantiles = [float(quantile(at)) for at in np.asarray(p).astype(float)]
    np.testing.assert_allclose(np.asarray(special.ndtri(p)).astype(float), quantiles, rtol=2.0**-8)


def test_slopes_are_those_of_the_density() -> None:
    p = tnp.asarray([1e-200, 1e-5, 0.3, 0.5, 0.999])
    slopes = [1 / mpmath.npdf(quantile(float(at))) for at in p]
    np.testing.assert_allclose(vmap(grad(special.ndtri))(p), np.asarray(slopes, float), rtol=1e-12)
    x = tnp.asarray([-1e5, -30.0, -5.1, -4.9, -1.0, 0.0, 1.0, 8.0])
    with mpmath.workdps(40):
        slopes = [mpmath.npdf(float(at)) / mpmath.ncdf(float(at)) for at in x]
    np.testing.assert_allclose(vmap(grad(special.log_ndtr))(x), np.asarray(slopes, float), rtol=1e-11)
