"""Owen's T function beside quadrature by mpmath, and SciPy at the ends."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special

from tests.scipy.special_functions.precision import errors, exact
from tracer import grad, jit, vmap
from tracer.scipy.special import owens_t

_rng = np.random.default_rng(0)
H = np.concatenate([_rng.uniform(0, 8, 25), 10 ** _rng.uniform(-9, 1.5, 15), _rng.uniform(8, 37, 10)])
A = np.concatenate([_rng.uniform(0, 3, 25), 10 ** _rng.uniform(-5, 5, 15), _rng.uniform(0, 1.5, 10)])


def owen(h: mpmath.mpf, a: mpmath.mpf) -> mpmath.mpf:
    if a > 1:
        tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2  # noqa: E731
        return (tail(h) + tail(a * h)) / 2 - tail(h) * tail(a * h) - owen(a * h, 1 / a)
    end = min(a, 14 / h)
    integral = mpmath.quad(lambda x: mpmath.exp(-((h * x) ** 2) / 2) / (1 + x * x), mpmath.linspace(0, end, 4))
    return mpmath.exp(-h * h / 2) * integral / (2 * mpmath.pi)


def test_values_have_all_digits_in_the_tails_too() -> None:
    found, expected = jit(owens_t)(H, A), exact(owen, H, A)
    assert (errors(found, expected) < 6e-15).all()
    np.testing.assert_allclose(owens_t(-H, A), found, rtol=4e-15)
    np.testing.assert_allclose(owens_t(H, -A), -np.asarray(found), rtol=4e-15)
    np.testing.assert_allclose(vmap(owens_t, (0, None))(H, 0.5), owens_t(H, 0.5), rtol=1e-14)


@pytest.mark.parametrize(("h", "a"), [
    (0, 1), (0, np.inf), (1, np.inf), (np.inf, 1), (np.inf, np.inf), (np.nan, 1), (1, np.nan), (1, -np.inf), (0, -2.0),
    (0.0, 3.0), (0, 1e300), (1e-300, 1e300), (1e300, 1e-300),
])  # fmt: skip
def test_ends_are_scipys(h: float, a: float) -> None:
    np.testing.assert_allclose(float(owens_t(h, a)), scipy.special.owens_t(h, a), rtol=1e-14, atol=1e-300)


def test_derivatives_by_both_of_two_orders() -> None:
    h, a = 0.7, 1.3
    first = jit(grad(owens_t, (0, 1)))(h, a)
    second = [grad(grad(owens_t, i), j)(h, a) for i, j in ((0, 0), (0, 1), (1, 1))]
    for found, orders in zip((*first, *second), ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2)), strict=True):
        with mpmath.workdps(40):
            expected = float(mpmath.diff(owen, (mpmath.mpf(h), mpmath.mpf(a)), orders))
        np.testing.assert_allclose(float(found), expected, rtol=1e-13)
    assert float(grad(owens_t, 1)(1.0, np.inf)) == 0.0


def test_shapes_and_dtypes() -> None:
    assert owens_t(np.zeros((0,)), 1.0).shape == (0,)
    found = owens_t(np.float32(1), np.ones((2, 1), "float32"))
    assert (found.dtype, found.shape) == ("float32", (2, 1))
