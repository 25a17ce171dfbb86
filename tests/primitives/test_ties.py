"""Derivatives where several elements are the extreme one, and where an exponent is 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_operand_and_updates_that_tie_share_equally(name: str, way: Callable[..., Any]) -> None:
    def extremes(x: Any, u: Any) -> Any:
        return getattr(x.at[np.array([0, 0, 1, 2])], name)(u)

    x, u = tnp.asarray([2.0, 5.0, 7.0, 1.0]), tnp.asarray([2.0, 2.0, 5.0, 7.0])
    weights = np.array([6.0, 8.0, 10.0, 3.0])
    dx, du = way(tracer.grad(lambda x, u: tnp.sum(weights * extremes(x, u)), argnums=(0, 1)))(x, u)
    np.testing.assert_allclose(dx, [2.0, 4.0, 5.0, 3.0])
    np.testing.assert_allclose(du, [2.0, 2.0, 4.0, 5.0])
    moved = way(lambda x, u: tracer.jvp(extremes, (x, u), (tnp.ones(4), tnp.zeros(4)))[1])(x, u)
    np.testing.assert_allclose(moved, [1 / 3, 0.5, 0.5, 1.0])


@pytest.mark.parametrize("base", [2.0, 0.5, 1e-100, 1e200])
def test_second_derivatives_of_powers_at_exponent_0(base: float) -> None:
    hessian = np.asarray(tracer.hessian(lambda v: lax.pow(v[0], v[1]))(tnp.asarray([base, 0.0])))
    np.testing.assert_allclose(hessian, [[0.0, 1 / base], [1 / base, np.log(base) ** 2]])
    assert tracer.grad(lambda x: lax.pow(x, tnp.asarray(0.0)))(tnp.asarray(0.0)) == 0.0
