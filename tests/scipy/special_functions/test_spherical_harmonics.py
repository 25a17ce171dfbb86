"""Spherical harmonics beside SciPy, and beside mpmath where SciPy overflows."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special

import tracer.numpy as tnp
from tests.scipy.special_functions.precision import errors, exact
from tracer import grad, jit, jvp, vmap
from tracer.errors import ArgumentError
from tracer.scipy.special import sph_harm_y

N, M = np.asarray([(0, 0), (1, 0), (1, 1), (1, -1), (2, 2), (7, 5), (7, -4), (50, 10), (50, -49), (2, 3), (-1, 0)]).T


def test_values_are_scipys() -> None:
    theta = np.linspace(0, np.pi, 9)
    found = jit(sph_harm_y)(N[:, None], M[:, None], theta, 0.3)
    np.testing.assert_allclose(found, scipy.special.sph_harm_y(N[:, None], M[:, None], theta, 0.3), rtol=0, atol=3e-15)
    outside = np.asarray([-0.5, 4.0, 9.0])
    np.testing.assert_allclose(sph_harm_y(3, 1, outside, 0.3), scipy.special.sph_harm_y(3, 1, outside, 0.3), atol=1e-15)


def test_powers_that_underflow_on_the_way_are_kept() -> None:
    n, m, theta = np.asarray([400, 300, 1000]), np.asarray([200, 290, 900]), np.asarray([0.45, 1.2, 0.9])
    found = sph_harm_y(n, m, theta, 0.0)
    assert (np.abs(found) > 1e-250).all()
    assert (errors(tnp.real(found), exact(_polar, n, m, theta)) < 3e-13).all()


def _polar(n: mpmath.mpf, m: mpmath.mpf, theta: mpmath.mpf) -> mpmath.mpf:
    """By the recurrence over degrees in mpmath, as its legenp is slow for such degrees."""
    x, value, below = mpmath.cos(theta), mpmath.sqrt(1 / (4 * mpmath.pi)), mpmath.mpf(0)
    for k in range(1, int(m) + 1):
        value *= -mpmath.sqrt(mpmath.mpf(2 * k + 1) / (2 * k)) * mpmath.sin(theta)
    for k in range(int(m) + 1, int(n) + 1):
        first = mpmath.sqrt(mpmath.mpf(4 * k * k - 1) / (k * k - m * m))
        last = mpmath.sqrt(((k - 1) ** 2 - m * m) / (4 * mpmath.mpf(k - 1) ** 2 - 1))
        value, below = first * (x * value - last * below), value
    return value


@pytest.mark.parametrize(("n", "m"), [(3, 1), (3, -2), (3, 0), (2, -2)])
def test_derivatives_are_scipys(n: int, m: int) -> None:
    for theta in (0.0, 0.5, 2.0, -0.5, 4.0):
        _, slopes, curvatures = scipy.special.sph_harm_y(n, m, theta, 0.4, diff_n=2)
        f = lambda t, p: sph_harm_y(n, m, t, p)  # noqa: E731
        by_theta = lambda t, f=f: jvp(lambda u: f(u, 0.4), (t,), (1.0,))[1]  # noqa: E731
        np.testing.assert_allclose(by_theta(theta), slopes[0], atol=1e-14)
        np.testing.assert_allclose(jvp(f, (theta, 0.4), (0.0, 1.0))[1], slopes[1], atol=1e-14)
        np.testing.assert_allclose(jvp(by_theta, (theta,), (1.0,))[1], curvatures[0, 0], atol=1e-13)


def test_shapes_dtypes_and_transforms() -> None:
    m = np.arange(-2, 3)
    found = jit(vmap(sph_harm_y, (None, 0, None, None)))(2, m, 0.4, 0.1)
    np.testing.assert_allclose(found, scipy.special.sph_harm_y(2, m, 0.4, 0.1), rtol=1e-13)
    assert sph_harm_y(1, 1, np.float32(0.3), np.float32(0.2)).dtype == "complex64"
    assert sph_harm_y(np.zeros(0, int), 0, 0.1, np.zeros((2, 1)), n_max=3).shape == (2, 0)
    slope = grad(lambda t: tnp.real(sph_harm_y(3, 2, t, 0.4)))(0.7)
    np.testing.assert_allclose(slope, scipy.special.sph_harm_y(3, 2, 0.7, 0.4, diff_n=1)[1][0].real, rtol=1e-13)
    with pytest.raises(ArgumentError, match=r"^sph_harm_y at .*diff_n is None\n  got 1\n  help: call tracer.jvp"):
        sph_harm_y(1, 1, 0.1, 0.1, diff_n=1)  # type: ignore[arg-type]
