"""Minima and roots of functions of one number, beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import tracer
import tracer.numpy as tnp
from tracer import errors
from tracer.scipy.optimize import minimize_scalar, root_scalar

MINIMA = [
    (lambda x: (x - 2) ** 2 * x * (x + 2) ** 2, {}), (lambda x: (x - 2) ** 2 * x * (x + 2) ** 2, {"bracket": (1, 3)}),
    (lambda x: x**4 - x, {"bracket": (-3.0, 0.1, 4.0)}), (tnp.cos, {"bounds": (0.0, 5.0)}),
    (lambda x: abs(x - 0.3), {"bounds": (0.0, 1.0)}), (lambda x: x, {"bounds": (-1.0, 1.0)}),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(MINIMA)))
def test_minima_are_scipy_s(case: int) -> None:
    f, options = MINIMA[case]
    found = minimize_scalar(f, **options)
    expected = scipy.optimize.minimize_scalar(lambda x: float(f(x)), **options)
    assert bool(found.success)
    assert float(found.x) == pytest.approx(expected.x, abs=1e-5)
    assert float(found.fun) == pytest.approx(float(f(found.x)))


@pytest.mark.parametrize("method", ["brentq", "bisect"])
def test_roots_in_brackets_are_scipy_s(method: str) -> None:
    for f, ends in ((lambda x: x**3 - x - 1, (1.0, 2.0)), (lambda x: tnp.exp(x) - 5, (4.0, -2.0)), (tnp.sin, (3, 4)),
                    (lambda x: x**3 + x, (-1.0, 2.0))):  # fmt: skip
        found = root_scalar(f, method=method, bracket=ends)
        expected = scipy.optimize.root_scalar(lambda x, f=f: float(f(x)), method=method, bracket=ends)
        assert float(found.root) == pytest.approx(expected.root, abs=1e-10)
        assert bool(found.converged)
        assert abs(int(found.iterations) - expected.iterations) <= 2
    same_sign = root_scalar(lambda x: x * x + 1, method=method, bracket=(0.0, 1.0))
    assert np.isnan(same_sign.root)
    assert same_sign.flag == "not converged"


def test_newton_and_derivatives_and_batches() -> None:
    assert float(root_scalar(lambda x: x**3 - x - 1, x0=1.0).root) == pytest.approx(1.324717957244746)

    def root(a: Any) -> Any:
        return root_scalar(lambda x: x * x - a, bracket=(0.0, 5.0)).root

    assert float(tracer.grad(tracer.grad(root))(4.0)) == pytest.approx(-1 / 32)
    np.testing.assert_allclose(tracer.jit(tracer.vmap(root))(tnp.asarray([1.0, 2.0])), np.sqrt([1, 2]))
    lowest = tracer.grad(lambda a: minimize_scalar(lambda x: (x - a) ** 2 + x**4).x)
    x = float(minimize_scalar(lambda x: (x - 1) ** 2 + x**4).x)
    assert float(lowest(1.0)) == pytest.approx(2 / (2 + 12 * x * x), rel=1e-5)


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match=r"^root_scalar at test_scalars.py:.*with a bracket, or"):
        root_scalar(lambda x: x, method="brentq")
    with pytest.raises(errors.ArgumentError, match=r'minimize_scalar at .*: method is "brent", or "bounded"'):
        minimize_scalar(lambda x: x, method="golden")
    with pytest.raises(errors.ArgumentError, match="bounds are two numbers"):
        minimize_scalar(lambda x: x, bounds=(0, 1, 2))
