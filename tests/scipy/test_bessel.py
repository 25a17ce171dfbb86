"""Modified Bessel functions beside SciPy's, and their derivatives beside what DLMF 10.29 says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import tracer.numpy as tnp
from tracer import grad, jit, vmap
from tracer.errors import DTypeError
from tracer.scipy import special

X = np.concatenate([np.linspace(-60, 60, 1001), [0.0, 1e-300, 1e-8, 18.0, np.nextafter(18, 19), -300.0, 700.0]])
FAR = np.asarray([1e5, -1e300, np.inf, -np.inf, np.nan])
NAMES = ("i0", "i0e", "i1", "i1e")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_values_are_scipys(name: str, way: Any) -> None:
    f, expected = way(getattr(special, name)), getattr(scipy.special, name)
    np.testing.assert_allclose(f(tnp.asarray(X)), expected(X), rtol=4e-15)
    if name.endswith("e"):
        np.testing.assert_allclose(f(tnp.asarray(FAR)), expected(FAR), rtol=4e-15)
    single = X[np.abs(X) < 80].astype("float32")
    np.testing.assert_allclose(f(tnp.asarray(single)), expected(single.astype(float)), rtol=4e-6)
    assert np.signbit(np.asarray(f(tnp.asarray(-0.0)))) == name.startswith("i1")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["i0e", "i1e"])
def test_narrow_floats_do_not_overflow_in_between(name: str, dtype: str) -> None:
    x = tnp.linspace(-300, 300, 61).astype(dtype)
    found = getattr(special, name)(x)
    assert found.dtype == x.dtype
    expected = getattr(scipy.special, name)(np.asarray(x).astype(float))
    np.testing.assert_allclose(np.asarray(found).astype(float), expected, rtol=2e-3 if dtype == "float16" else 1e-2)


def slope(name: str, x: Any) -> Any:
    """DLMF 10.29.2, and 10.29.3 for order 1."""
    zeroth, first = (
        (scipy.special.i0e, scipy.special.i1e) if name.endswith("e") else (scipy.special.i0, scipy.special.i1)
    )
    value = first(x) if name.startswith("i0") else zeroth(x) - first(x) / x
    return value - np.sign(x) * getattr(scipy.special, name)(x) * name.endswith("e")


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name: str) -> None:
    x = np.asarray([-40.0, -17.0, -0.3, 1e-3, 2.0, 17.9, 18.1, 55.0])
    found = jit(vmap(grad(getattr(special, name))))(tnp.asarray(x))
    np.testing.assert_allclose(found, slope(name, x), rtol=1e-11)


@pytest.mark.parametrize(("name", "expected"), [("i0", 0.0), ("i0e", 0.0), ("i1", 0.5), ("i1e", 0.5)])
def test_derivatives_at_zero(name: str, expected: float) -> None:
    assert float(grad(getattr(special, name))(0.0)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_complex_numbers_are_refused(name: str) -> None:
    with pytest.raises(DTypeError, match=f"^{name} at .*takes real numbers"):
        getattr(special, name)(1j)
