"""Bessel functions of whole orders beside mpmath; their ends beside SciPy."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

from tests.grids import THOROUGH
from tests.scipy.special_functions.precision import errors, exact
from tracer import grad, jit, vmap
from tracer.errors import ArgumentError, DTypeError
from tracer.scipy import special

_rng = np.random.default_rng(0)
EACH = 1 if THOROUGH else 4  # functions that share the drawn arguments, which mpmath takes a tenth of a second for
DRAWN = np.concatenate([_rng.uniform(0, 60, 40), 10 ** _rng.uniform(-9, 4, 30)])
FUNCTIONS: dict[str, Any] = {
    "j0": lambda x: mpmath.besselj(0, x), "j1": lambda x: mpmath.besselj(1, x),
    "y0": lambda x: mpmath.bessely(0, x), "y1": lambda x: mpmath.bessely(1, x),
    "k0": lambda x: mpmath.besselk(0, x), "k1": lambda x: mpmath.besselk(1, x),
    "k0e": lambda x: mpmath.besselk(0, x) * mpmath.exp(x), "k1e": lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
}  # fmt: skip
ENDS = np.asarray([0.0, -0.0, -1.0, np.inf, -np.inf, np.nan, 1e-300])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_have_all_digits(name: str) -> None:
    f = getattr(special, name)
    x = np.append(DRAWN[list(FUNCTIONS).index(name) % EACH :: EACH], [0.1, 1.0, 25.0, np.nextafter(25, 0)])
    x = x[x < 700] if name in ("k0", "k1") else x
    amplitude = np.sqrt(2 / np.pi / np.maximum(x, 1)) if name[0] in "jy" else 0.0
    assert (errors(jit(f)(x), exact(FUNCTIONS[name], x), amplitude) < 3e-15).all()
    np.testing.assert_allclose(f(ENDS), getattr(scipy.special, name)(ENDS), rtol=1e-14)
    assert f(x.astype("float32")).dtype == "float32"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_several_orders(name: str) -> None:
    x, f = np.asarray([0.5, 3.0, 20.0, 40.0]), getattr(special, name)
    slopes = {"j": scipy.special.jvp, "y": scipy.special.yvp, "k": scipy.special.kvp}[name[0]]
    value, first, second = (slopes(int(name[1]), x, n) for n in range(3))
    if name.endswith("e"):
        first, second = np.exp(x) * (value + first), np.exp(x) * (value + 2 * first + second)
    found = jit(lambda x: (vmap(grad(f))(x), vmap(grad(grad(f)))(x)))(x)
    np.testing.assert_allclose(found[0], first, rtol=2e-12)
    np.testing.assert_allclose(found[1], second, rtol=2e-11)


def test_derivatives_at_zero() -> None:
    assert [float(grad(special.j0)(0.0)), float(grad(special.j1)(0.0))] == [0.0, 0.5]
    assert float(grad(grad(special.j0))(0.0)) == -0.5


@pytest.mark.parametrize("v", [0, 7, 60])
def test_orders_of_the_first_kind(v: int) -> None:
    z = np.concatenate([_rng.uniform(0, 2 * v + 30, 12), -(10 ** _rng.uniform(-3, 4, 6)), [0.0, 25.0]])
    found = np.asarray(jit(lambda z: special.bessel_jn(z, v=v))(z))
    assert found.shape == (v + 1, z.size)
    for k in {0, v // 2, v}:
        amplitude = np.where(np.abs(z) > k, np.sqrt(2 / np.pi / np.maximum(np.abs(z), k + 1)), 1e-290)
        assert (errors(found[k], exact(lambda x, k=k: mpmath.besselj(k, x), z), amplitude) < 1e-14).all()


def test_bessel_jn_is_called_as_in_jax() -> None:
    z = np.ones((2, 3), "float32")
    found = special.bessel_jn(z, v=3, n_iter=60)
    assert (found.shape, found.dtype) == ((4, 2, 3), "float32")
    assert special.bessel_jn(np.zeros((0,)), v=2).shape == (3, 0)
    np.testing.assert_array_equal(special.bessel_jn(0.0, v=2), [1.0, 0.0, 0.0])
    slope = grad(lambda x: special.bessel_jn(x, v=4)[4])(3.0)
    np.testing.assert_allclose(float(slope), scipy.special.jvp(4, 3.0), rtol=1e-14)
    with pytest.raises(ArgumentError, match=r"^bessel_jn at .*v is at least 0\n  got -1\n  more: "):
        special.bessel_jn(1.0, v=-1)
    with pytest.raises(DTypeError, match=r"^bessel_jn at .*real numbers"):
        special.bessel_jn(1j, v=1)
