"""Faddeeva's function and Voigt's profile beside mpmath and SciPy."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special

import tracer.numpy as tnp
from tests.scipy.special_functions.precision import errors, exact
from tracer import grad, jit, vmap
from tracer.scipy.special import voigt_profile, wofz

_rng = np.random.default_rng(0)
Z = np.concatenate([
    _rng.uniform(-8, 8, 60) + 1j * _rng.uniform(-8, 8, 60), 10 ** _rng.uniform(-12, 2, 40) * np.exp(1j * np.arange(40)),
    _rng.uniform(-20, 20, 30) + 0j, _rng.uniform(-20, 20, 30) + 1j * _rng.uniform(-1e-6, 1e-6, 30),
])  # fmt: skip
Z = Z[Z.imag**2 - Z.real**2 < 600]


def faddeeva(z: mpmath.mpc) -> mpmath.mpc:
    return mpmath.exp(-z * z) * mpmath.erfc(mpmath.mpc(0, -1) * z)


def test_values_have_all_digits() -> None:
    z, expected = Z, exact(faddeeva, Z, digits=60)
    found = jit(wofz)(z)
    condition = np.maximum(1.0, np.where(z.imag < 0, np.abs(z) ** 2, 1.0))
    assert (errors(found, expected) < 3e-15 * condition).all()
    np.testing.assert_allclose(wofz(z), found, rtol=1e-14)
    assert wofz(z.astype("complex64")).dtype == "complex64"


def test_voigts_real_part_keeps_its_digits_beside_the_line() -> None:
    z = np.asarray([5.0 + 1e-9j, 6.0 + 0.05j, 3.0 + 1e-300j, 1e3 + 1e-3j, 26.0 + 0j])
    expected = exact(lambda z: faddeeva(z).real, z, digits=400)
    assert (errors(tnp.real(wofz(z)), expected) < 3e-14).all()


@pytest.mark.parametrize("z", [
    0.0, np.inf, -np.inf, np.nan, 1j * np.inf, -1j * np.inf, -27j, 1 - 30j, complex(np.inf, np.inf),
    complex(np.inf, -1), complex(1, np.nan), 1e200 + 1e200j, 1e200 + 0j, 1e-200 + 1e-200j, -1e200 + 0j, 1e300j,
])  # fmt: skip
def test_ends_are_scipys(z: complex) -> None:
    np.testing.assert_allclose(complex(wofz(z)), scipy.special.wofz(z), rtol=1e-14)


def test_derivatives_of_several_orders() -> None:
    z = np.asarray([0.3 + 0.2j, 5 + 1j, 6.4 + 0.1j, 9 + 1e-3j, -7.9 + 0.1j, -9 + 3j, 100.0 + 0j, 2.0 - 1j])
    f = wofz
    for order, bound in ((1, 3e-14), (2, 1e-12)):
        f = grad(f, holomorphic=True)
        expected = exact(lambda z, order=order: mpmath.diff(faddeeva, z, order), z, digits=50)
        assert (errors(jit(vmap(f))(z), expected) < bound).all()


def test_shapes_and_dtypes() -> None:
    assert wofz(np.zeros((0, 2))).shape == (0, 2)
    assert wofz(np.ones((2, 1), "float32")).dtype == "complex64"
    assert wofz(np.ones(3, int)).dtype == "complex128"
    np.testing.assert_allclose(vmap(wofz)(Z[:5]), scipy.special.wofz(Z[:5]), rtol=1e-12)


def test_voigt_profiles_are_scipys() -> None:
    x, sigma, gamma = (v.ravel() for v in np.meshgrid([-3.0, 0.0, 0.5, 40.0, np.inf, np.nan], [0.0, 0.7], [0.0, 2.0]))
    np.testing.assert_allclose(voigt_profile(x, sigma, gamma), scipy.special.voigt_profile(x, sigma, gamma), rtol=1e-13)
    slopes = jit(grad(voigt_profile, (0, 1, 2)))(1.0, 0.8, 0.5)
    step = 1e-6
    for i, slope in enumerate(slopes):
        up, down = ([v + s * (k == i) for k, v in enumerate((1.0, 0.8, 0.5))] for s in (step, -step))
        difference = (scipy.special.voigt_profile(*up) - scipy.special.voigt_profile(*down)) / (2 * step)
        np.testing.assert_allclose(slope, difference, rtol=1e-8)
