"""Exponential, sine, cosine and Fresnel's integrals, Spence's and Dawson's functions and erfcx over all that they are
defined on, beside mpmath; Bernoulli's numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import tracer.numpy as tnp
from tracer import grad, jit, vmap
from tracer.errors import ArgumentError, DTypeError, ShapeError
from tracer.scipy import special

SMALL = 10.0 ** np.linspace(-300, -3, 12)
POSITIVE = np.concatenate(
    [SMALL, np.linspace(0.01, 10, 150), np.linspace(10.1, 60, 40), 10.0 ** np.linspace(2, 2.8, 6)]
)
LARGE = 10.0 ** np.linspace(3, 15, 13)
BOTH = np.concatenate([-LARGE, -POSITIVE, POSITIVE, LARGE])


def dawson(x: Any) -> Any:
    size = abs(x)
    found = (
        mpmath.exp(-size * size) * mpmath.erfi(size) * mpmath.sqrt(mpmath.pi) / 2 if size < 30 else _far_dawson(size)
    )
    return found if x > 0 else -found


def _far_dawson(x: Any) -> Any:
    return sum(mpmath.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(12)) / (2 * x)


def scaled_erfc(x: Any) -> Any:
    if x < 30:
        return mpmath.exp(x * x) * mpmath.erfc(x)
    return sum((-1) ** k * mpmath.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(12)) / (x * mpmath.sqrt(mpmath.pi))


def spence(x: Any) -> Any:
    return mpmath.re(mpmath.polylog(2, 1 - x))


# name: (the exact function, its slope, places, the greatest relative error, the greatest absolute one beside zeros)
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Any, float, float]] = {
    "expi": (mpmath.ei, lambda x: mpmath.exp(x) / x, np.concatenate([-POSITIVE, POSITIVE, [715.0]]), 3e-14, 4e-16),
    "exp1": (mpmath.e1, lambda x: -mpmath.exp(-x) / x, POSITIVE, 2e-14, 0.0),
    "dawsn": (dawson, lambda x: 1 - 2 * x * dawson(x), BOTH, 2e-15, 0.0),
    "erfcx": (scaled_erfc, lambda x: 2 * x * scaled_erfc(x) - 2 / mpmath.sqrt(mpmath.pi),
              np.concatenate([np.linspace(-26, -0.1, 60), POSITIVE, LARGE]), 3e-13, 0.0),
    "spence": (spence, lambda x: mpmath.log(x) / (1 - x), np.concatenate([POSITIVE, LARGE]), 1e-14, 1e-16),
}  # fmt: skip


def errors(found: Any, exact: Callable[[Any], Any], x: Any, absolute: float) -> float:
    with mpmath.workdps(60):
        worst = 0.0
        for value, at in zip(np.asarray(found), x, strict=True):
            true = exact(mpmath.mpf(float(at)))
            away = abs(mpmath.mpf(float(value)) - true)
            if away > absolute and abs(true) > 1e-300:
                worst = max(worst, float(away / abs(true)))
        return worst


@pytest.mark.parametrize("name", CASES)
def test_values_and_slopes_are_exact_everywhere(name: str) -> None:
    exact, slope, x, relative, absolute = CASES[name]
    f = getattr(special, name)
    assert errors(jit(f)(x), exact, x, absolute) < relative
    assert errors(f(x[::7]), exact, x[::7], absolute) < relative
    inner = x[(np.abs(x) > 1e-100) & (np.abs(x) < 1e6) & (x < 700)][::3]
    assert errors(vmap(grad(f))(inner), slope, inner, 1e-15) < 1e-11


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 60, 5000, 10**9])
def test_exponential_integrals_of_every_order(n: int) -> None:
    x = np.concatenate([[1e-9, 1e-3], np.linspace(0.1, 5, 30), [30.0, 300.0]])
    exact = lambda v: mpmath.expint(n, v)  # noqa: E731
    if n > 100:
        expected = scipy.special.expn(n, x)
        np.testing.assert_allclose(jit(special.expn)(n, x), expected, rtol=1e-13)
    else:
        near = x[x < 100]  # mpmath's expint(60, 300) has four digits
        assert errors(jit(special.expn)(n, near), exact, near, 0.0) < 5e-14
        np.testing.assert_allclose(special.expn(n, 300.0), scipy.special.expn(n, 300.0), rtol=1e-13)
    slopes = vmap(grad(lambda v: special.expn(float(n), v)))(x)
    below = special.expn(n - 1, x) if n else np.exp(-x) / x * (1 + 1 / x)
    np.testing.assert_allclose(slopes, -np.asarray(below), rtol=1e-13)
    assert float(grad(lambda k: special.expn(k, 2.0))(3.0)) == 0


@pytest.mark.parametrize(("name", "exact", "slopes"), [
    ("sici", (mpmath.si, mpmath.ci), (lambda x: mpmath.sin(x) / x, lambda x: mpmath.cos(x) / x)),
    ("fresnel", (mpmath.fresnels, mpmath.fresnelc),
     (lambda x: mpmath.sin(mpmath.pi * x * x / 2), lambda x: mpmath.cos(mpmath.pi * x * x / 2))),
])  # fmt: skip
def test_sine_cosine_and_fresnel_integrals(name: str, exact: Any, slopes: Any) -> None:
    x = np.concatenate([POSITIVE, LARGE[:7]])
    f = getattr(special, name)
    for k in range(2):
        found = jit(f)(x)[k]
        assert errors(found, exact[k], x, 3e-15) < 3e-15
        inner = x[(x > 1e-100) & (x < 1e5)][::5]
        assert errors(vmap(grad(lambda v: f(v)[k]))(inner), slopes[k], inner, 1e-13) < 1e-12  # noqa: B023
    for k in range(2):
        np.testing.assert_allclose(f(-x)[k], (np.asarray(f(x)[k]) * (1 if (name, k) == ("sici", 1) else -1)))


def test_ends_are_those_of_scipy() -> None:
    ends = np.asarray([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan])
    for name in ("expi", "exp1", "dawsn", "erfcx", "spence", "sici", "fresnel"):
        f, expected = getattr(special, name), getattr(scipy.special, name)(ends)
        for found in (f(ends), jit(f)(ends)):
            if name == "spence":
                expected[3] = -np.inf  # the limit, where SciPy has NaN
            if name == "exp1":
                expected = np.asarray([np.inf, np.inf, expected[2], 0, np.nan, np.nan])
            np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert np.isnan(special.spence(-1.0))
    assert np.isnan(special.exp1(-1.0))
    assert np.isnan(special.expn(tnp.asarray([1.5, -1.0, 1.0]), tnp.asarray([1.0, 1.0, -1.0]))).all()
    np.testing.assert_array_equal(special.expn([0, 1, 2, 5], 0.0), [np.inf, np.inf, 1.0, 0.25])


def test_slopes_at_the_ends_and_of_second_order() -> None:
    for way in (lambda f: f, jit):
        assert way(grad(special.expi))(np.inf) == np.inf
        assert way(grad(special.spence))(np.inf) == 0
        slope = float(way(grad(special.expi))(715.0))  # whose exponential alone is beyond all floats
        assert slope == pytest.approx(float(mpmath.exp(715) / 715), rel=1e-13)
    x = np.asarray([0.5, 0.998, 0.9995, 1.0, 1.0 + 1e-8, 1.0005, 1.002, 3.0])
    with mpmath.workdps(60):
        exact = [float(mpmath.diff(lambda v: mpmath.log1p(v) / -v, mpmath.mpf(at) - 1)) if at != 1 else 0.5 for at in x]
    np.testing.assert_allclose(vmap(grad(grad(special.spence)))(x), exact, rtol=1e-9)


def test_dtypes() -> None:
    for name in ("expi", "exp1", "dawsn", "erfcx", "spence", "sici", "fresnel"):
        f = getattr(special, name)
        for dtype in ("float32", "float16", "bfloat16"):
            x = tnp.asarray([0.5, 3.0], dtype)
            found, exact = np.asarray(f(x), float), np.asarray(f(x.astype(float)))
            np.testing.assert_allclose(found, exact, rtol=float(tnp.finfo(dtype).eps))
            assert np.asarray(f(x)[0]).dtype == x.dtype
        with pytest.raises(DTypeError, match=rf"^{name} at .* takes real numbers"):
            f(1j)


def test_bernoulli_s_numbers() -> None:
    exact = [float(mpmath.bernoulli(k)) for k in range(259)]
    exact[1] = -0.5
    np.testing.assert_allclose(special.bernoulli(258), exact, rtol=2e-16)
    for n in range(4):
        assert special.bernoulli(n).shape == (n + 1,)
    assert [abs(float(b)) for b in special.bernoulli(262)[259:]] == [0.0, math.inf, 0.0, math.inf]
    with pytest.raises(ArgumentError, match=r"^bernoulli at .*: n is at least 0"):
        special.bernoulli(-1)


def test_bernoulli_s_numbers_of_any_count() -> None:
    many = np.asarray(special.bernoulli(100_001))
    np.testing.assert_array_equal(many[260:], np.resize([-np.inf, 0.0, np.inf, 0.0], many.size - 260))
    with pytest.raises(ShapeError, match="the result is too large"):
        special.bernoulli(2**200)
