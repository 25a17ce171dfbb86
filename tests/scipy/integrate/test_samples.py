"""Integrals of samples and functions beside SciPy's, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import tracer
import tracer.numpy as tnp
from tracer import errors
from tracer.scipy.integrate import cumulative_trapezoid, quad, simpson


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_samples_are_scipy_s(n: int, rng: np.random.Generator) -> None:
    for shape, axis, kind in (((n,), -1, float), ((3, n), 1, complex), ((n, 2), 0, float)):
        y = rng.normal(size=shape).astype(kind) * (1 + (1j if kind is complex else 0))
        places = np.cumsum(rng.uniform(0.5, 1, size=n))
        full = np.moveaxis(np.broadcast_to(places, np.moveaxis(y, axis, -1).shape), -1, axis)
        for options in ({"dx": 0.5}, {"x": places}, {"x": full}):
            for way in (lambda f: f, tracer.jit):
                found = way(lambda y, o=options, a=axis: simpson(y, **o, axis=a))(y)
                np.testing.assert_allclose(found, scipy.integrate.simpson(y, **options, axis=axis), rtol=1e-10)
            if n > 1:
                for initial in (None, 0):
                    mine, theirs = (f.cumulative_trapezoid(y, **options, axis=axis, initial=initial)
                                    for f in (tracer.scipy.integrate, scipy.integrate))  # fmt: skip
                    np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-14)


def test_integers_become_floats_and_single_stays() -> None:
    assert float(simpson([0, 1, 4])) == pytest.approx(8 / 3)
    assert simpson(np.ones(4, "float32")).dtype == cumulative_trapezoid(np.ones(4, "float32")).dtype == np.float32


def test_gradients_of_samples(rng: np.random.Generator) -> None:
    y, x = tnp.asarray(rng.normal(size=6)), tnp.asarray(np.cumsum(rng.uniform(0.5, 1, size=6)))
    for f in (simpson, lambda y, x: (cumulative_trapezoid(y, x) ** 2).sum()):
        tracer.test_util.check_grads(f, (y, x), 2)


FUNCTIONS = [
    (lambda x: tnp.sin(x) * x, 0.0, 3.0), (lambda x: 1 / (1e-4 + (x - 0.3) ** 2), 0.0, 1.0),
    (lambda x: tnp.exp(-x * x), -np.inf, np.inf), (lambda x: tnp.exp(-x), 1.0, np.inf),
    (lambda x: 1 / (1 + x * x), -np.inf, 0.0), (tnp.sqrt, 2.0, 0.0),
    (lambda x: tnp.exp(-x), np.inf, 1.0), (lambda x: tnp.abs(x - 1 / 3), 0.0, 1.0),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(FUNCTIONS)))
def test_integrals_of_functions_are_scipy_s(case: int) -> None:
    f, low, high = FUNCTIONS[case]
    expected, _ = scipy.integrate.quad(lambda x: float(f(x)), low, high)
    value, error = quad(f, low, high)
    assert float(value) == pytest.approx(expected, abs=1e-8, rel=1e-8)
    assert abs(float(value) - expected) <= float(error) + 1e-7
    assert float(error) < 1e-6


def test_complex_batched_and_differentiated_integrals() -> None:
    assert complex(quad(lambda x: tnp.exp(1j * x), 0.0, np.pi)[0]) == pytest.approx(2j)
    ends = tracer.jit(lambda a: quad(lambda x: a * tnp.exp(-x), 0, np.inf)[0])  # an integer beside infinity
    assert float(ends(2.0)) == pytest.approx(2.0)
    peaks = tracer.jit(tracer.vmap(lambda c: quad(lambda x: 1 / (1e-3 + (x - c) ** 2), 0.0, 1.0)[0]))
    at = np.array([0.0, 0.5])
    w = np.sqrt(1e-3)
    np.testing.assert_allclose(peaks(at), (np.arctan((1 - at) / w) + np.arctan(at / w)) / w, rtol=1e-8)

    def area(a: Any, b: Any, k: Any) -> Any:
        return quad(lambda x, k: tnp.sqrt(tnp.abs(x - 0.2)) * tnp.sin(k * x), a, b, (k,))[0]

    tracer.test_util.check_grads(area, (0.3, 2.0, 1.5), 1)
    assert float(tracer.grad(area, 1)(0.3, 2.0, 1.5)) == pytest.approx(np.sqrt(1.8) * np.sin(3.0), rel=1e-6)
    assert float(quad(lambda x: x**-0.5, 0.0, 1.0, limit=3)[1]) > 1e-3  # the limit is reached, and said


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(errors.ShapeError, match=r"^simpson at test_samples.py:.*: x has one place for each sample"):
        simpson(np.ones(3), x=np.ones(4))
    with pytest.raises(errors.ArgumentError, match="initial is 0 or None"):
        cumulative_trapezoid(np.ones(3), initial=1)
    with pytest.raises(errors.ShapeError, match="samples have an axis"):
        simpson(1.0)
    with pytest.raises(errors.ShapeError, match="at least one sample"):
        simpson(np.ones(0))
