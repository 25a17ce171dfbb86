"""The logarithm of the gamma function beside mpmath and SciPy."""

from __future__ import annotations

import mpmath
import numpy as np
import scipy.special

from tests.scipy.special_functions.precision import errors, exact
from tracer import grad, jit, vmap
from tracer.scipy.special import loggamma

_rng = np.random.default_rng(0)
Z = np.concatenate([
    _rng.uniform(-9, 9, 50) + 1j * _rng.uniform(-9, 9, 50), _rng.uniform(-3, 5, 40) + 1j * _rng.uniform(-1, 1, 40),
    10 ** _rng.uniform(-9, 3, 40) * np.exp(1j * np.arange(40)),
    1 + 10 ** _rng.uniform(-9, 0, 30) * np.exp(1j * np.arange(30)), _rng.uniform(-20, 20, 20) + 0j,
    2 + 10 ** _rng.uniform(-9, 0, 30) * np.exp(1j * np.arange(30)),
    _rng.uniform(-20, 20, 20) - 1e-7j,
])  # fmt: skip


def test_values_and_sheets() -> None:
    found = jit(loggamma)(Z)
    assert (errors(found, exact(mpmath.loggamma, Z)) < 2e-14).all()
    assert np.median(errors(found, exact(mpmath.loggamma, Z))) < 4e-16
    np.testing.assert_allclose(loggamma(Z), found, rtol=1e-13)


def test_ends_and_poles_are_scipys() -> None:
    real = np.asarray([0.0, -1.0, -1.5, 2.0, 0.3, np.inf, -np.inf, np.nan])
    np.testing.assert_allclose(loggamma(real), scipy.special.loggamma(real), rtol=1e-14)
    below = np.asarray([complex(-1.5, 0.0), complex(-1.5, -0.0)])
    poles = np.asarray([0j, -1 + 0j, complex(-1, -0.0), complex(np.inf, 1), complex(np.nan, 0), 1 + 0j, 1e300 + 1e300j])
    for z in (below, poles):
        np.testing.assert_allclose(loggamma(z), scipy.special.loggamma(z), rtol=1e-14)


def test_derivatives_of_several_orders() -> None:
    z = np.asarray([0.3 + 0.2j, 5 + 1j, 20 + 20j, -7.9 + 0.1j, -9 + 30j, 100.0 + 0j, 2.0 - 1j, 1 + 1e-5j, -2 + 0.001j])
    f = loggamma
    for order in range(2):
        f = grad(f, holomorphic=True)
        expected = exact(lambda z, order=order: mpmath.psi(order, z), z)
        assert (errors(jit(vmap(f))(z), expected) < 3e-15).all()
    assert np.isnan(complex(grad(loggamma, holomorphic=True)(-2.0 + 0j)).real)
    np.testing.assert_allclose(float(grad(loggamma)(2.5)), scipy.special.digamma(2.5), rtol=1e-14)


def test_shapes_and_dtypes() -> None:
    assert loggamma(np.zeros((0, 2), complex)).shape == (0, 2)
    assert loggamma(np.ones(2, "complex64")).dtype == "complex64"
    assert loggamma(np.ones(2, "float32")).dtype == "float32"
    found = vmap(loggamma)(Z[:4].reshape(2, 2).astype("complex64"))
    np.testing.assert_allclose(found, scipy.special.loggamma(Z[:4]).reshape(2, 2), rtol=1e-5)
