"""The incomplete gamma functions beside SciPy's, their derivatives beside mpmath's."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special

import tracer
from tracer import lax
from tracer.errors import DTypeError, ShapeError

A = np.array([1e-3, 0.1, 1.0, 1.0, 3.0, 5.0, 5.0, 15.9, 16.1, 100.0, 1000.0, 1e4])
X = np.array([1e-5, 0.05, 0.5, 30.0, 4.0, 2.0, 60.0, 17.0, 10.0, 95.0, 1100.0, 1e4])


def slope(a: float, x: float) -> float:
    """dP/da by mpmath."""
    with mpmath.workdps(40):
        below = lambda b: mpmath.gammainc(b, 0, mpmath.mpf(x), regularized=True)  # noqa: E731
        return float(mpmath.diff(below, mpmath.mpf(a)))


def density(a: float, x: float) -> float:
    with mpmath.workdps(40):
        a, x = mpmath.mpf(a), mpmath.mpf(x)
        return float(mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a)))


def test_probabilities_are_scipy_s() -> None:
    np.testing.assert_allclose(lax.igamma(A, X), scipy.special.gammainc(A, X), rtol=1e-13)
    np.testing.assert_allclose(lax.igammac(A, X), scipy.special.gammaincc(A, X), rtol=1e-13)


def test_probabilities_far_below_the_mean_keep_their_digits() -> None:
    a, x = np.asarray([16.5, 16.5, 30.0, 1000.0]), np.asarray([1e-9, 1e-15, 1e-6, 480.0])
    with mpmath.workdps(40):
        exact = [float(mpmath.gammainc(b, 0, y, regularized=True)) for b, y in zip(a, x, strict=True)]
    np.testing.assert_allclose(lax.igamma(a, x), exact, rtol=2e-13)


def integrals(a: float, x: float) -> tuple[float, float, float]:
    """P, 1 - P and the derivative of a sample, by quadrature: SciPy is wrong in the tails of large parameters."""
    with mpmath.workdps(40):
        a, x = mpmath.mpf(a), mpmath.mpf(x)
        width, psi, size = mpmath.sqrt(a), mpmath.digamma(a), mpmath.loggamma(a)
        at = lambda t: mpmath.exp((a - 1) * mpmath.log(t) - t - size)  # noqa: E731
        below = [x - k * width for k in (24, 12, 6, 3, 1, 0)]
        above = [x + k * width for k in (0, 1, 3, 6, 12, 24)]
        lower, upper = mpmath.quad(at, below), mpmath.quad(at, above)
        moved = mpmath.quad(lambda t: at(t) * (mpmath.log(t) - psi), below)
        return float(lower), float(upper), float(-moved / at(x))


def test_large_parameters_take_few_steps() -> None:
    a = np.repeat([2e6, 1e12], 5)
    x = a + np.sqrt(a) * np.tile([-6.0, -1.0, 0.0, 2.0, 6.0], 2)
    lower, upper, moved = np.array([integrals(*pair) for pair in zip(a, x, strict=True)]).T
    np.testing.assert_allclose(lax.igamma(a, x), lower, rtol=1e-12)
    np.testing.assert_allclose(lax.igammac(a, x), upper, rtol=1e-12)
    np.testing.assert_allclose(lax.random_gamma_grad(a, x), moved, rtol=1e-12)
    assert np.isfinite(lax.random_gamma_grad(np.array([1e20, 1e300]), np.array([1e20, 1e300]))).all()


def test_float32_is_float64_rounded() -> None:
    got = lax.igammac(A.astype("float32"), X.astype("float32"))
    assert got.dtype == np.float32
    wide = scipy.special.gammaincc(A.astype("float32").astype(float), X.astype("float32").astype(float))
    np.testing.assert_allclose(got, wide, rtol=1.2e-7)


def test_the_ends_of_the_domain_are_scipy_s() -> None:
    inf, nan = np.inf, np.nan
    a = np.array([0, 0, 0, 1, 1, -1, 1, inf, inf, 1, inf, nan])
    x = np.array([0, 1, inf, 0, inf, 1, -1, 1, inf, nan, 0, 1.0])
    np.testing.assert_array_equal(lax.igamma(a, x), scipy.special.gammainc(a, x))
    np.testing.assert_array_equal(lax.igammac(a, x), scipy.special.gammaincc(a, x))


def test_derivatives_are_mpmath_s() -> None:
    slopes = np.array([slope(a, x) for a, x in zip(A[:-1], X[:-1], strict=True)])
    densities = np.array([density(a, x) for a, x in zip(A[:-1], X[:-1], strict=True)])
    np.testing.assert_allclose(lax.igamma_grad_a(A, X)[:-1], slopes, rtol=1e-12)
    np.testing.assert_allclose(lax.random_gamma_grad(A, X)[:-1], -slopes / densities, rtol=1e-12)
    by_a, by_x = tracer.grad(lambda a, x: lax.igamma(a, x).sum(), argnums=(0, 1))(A, X)
    np.testing.assert_allclose(by_a[:-1], slopes, rtol=1e-12)
    np.testing.assert_allclose(by_x[:-1], densities, rtol=1e-12)
    np.testing.assert_array_equal(tracer.grad(lambda a: lax.igammac(a, X).sum())(A), -by_a)


def test_a_hundred_thousand_places_settle() -> None:
    """Rounding must not keep the continued fraction from settling anywhere."""
    rng = np.random.default_rng(0)
    a = rng.gamma(1.0, 3.0, 100_000) + 1e-3
    derivative = np.asarray(lax.random_gamma_grad(a, rng.gamma(a) + 1e-300))
    assert np.isfinite(derivative).all()
    assert (derivative > 0).all()


def test_arguments_of_two_dtypes_or_shapes_are_refused() -> None:
    with pytest.raises(DTypeError, match=r"igamma .*takes floats of one dtype"):
        lax.igamma(np.ones(2), np.ones(2, "float32"))
    with pytest.raises(ShapeError, match=r"igamma .*takes arrays of one shape"):
        lax.igamma(np.ones(2), np.ones(3))
