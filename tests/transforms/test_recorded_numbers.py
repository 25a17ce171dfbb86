"""Numbers of Python's among what is differentiated as it runs: one record for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer.transforms import residuals, run

X = np.linspace(0.55, 2.15, 4)  # away from the numbers below
FUNCTIONS: dict[str, Any] = {
    "product": (lambda xp, x, s: xp.sin(x * s), lambda x, s: np.cos(x * s) * s),
    "sum": (lambda xp, x, s: (x + s) ** 2, lambda x, s: 2.0 * (x + s)),
    "quotient": (lambda xp, x, s: x / s + s / x, lambda x, s: 1.0 / s - s / x**2),
    "power": (lambda xp, x, s: xp.power(x, s), lambda x, s: s * x ** (s - 1.0)),
    "of a number": (lambda xp, x, s: xp.power(s, x), lambda x, s: np.log(s) * s**x),
    "maximum": (lambda xp, x, s: xp.maximum(x, s) * x, lambda x, s: np.where(x > s, 2.0 * x, s)),
    "choice": (lambda xp, x, s: xp.where(x > s, x * s, s), lambda x, s: np.where(x > s, s, 0.0)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_that_change_are_recorded_as_one_operation(name: str) -> None:
    function, slope = FUNCTIONS[name]
    for order in (1, 2):
        known: list[tuple[int, int]] = []
        for s in (1.25, 3.0, 0.75, 1.0, 2.0):

            def loss(x: Any, s: float = s) -> Any:
                return tnp.sum(function(tnp, x, s))

            derivative = tracer.grad(loss) if order == 1 else tracer.grad(lambda x: tnp.sum(tracer.grad(loss)(x)))
            found = derivative(tnp.asarray(X))
            if order == 1:
                np.testing.assert_allclose(found, slope(X, s), rtol=1e-12)
            else:
                step = 1e-6
                expected = (slope(X + step, s) - slope(X - step, s)) / (2 * step)
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
            known.append((len(run._recipes), len(residuals._reads)))
        assert known[1:] == known[:1] * 4
