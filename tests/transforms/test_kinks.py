"""Values, gradients and second derivatives at kinks are JAX's, or differ for a reason that is written here."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as jnp
from tests.transforms.kink_cases import KINKS
from tracer import lax, nn
from tracer.scipy import special

JAX: dict[str, list[str]] = json.loads(Path(__file__).with_name("jax_kinks.json").read_text())
NAMES = {"jnp": jnp, "lax": lax, "nn": nn, "special": special}
CASES = [(name, point) for name, (_, points) in KINKS.items() for point in points]

NO_DIRECTION = "at the tip of a cone no direction is better than another: 0, and not an end or the middle of the slopes"
DEFINED = "the formula is defined there, and so are its derivatives"
NOT_FINITE = "x log(x) at 0 has no finite slope; gradients of sums of such terms stay finite"

# name at point -> (the gradient and the second derivative here, why)
DIFFERENT: dict[str, tuple[float, float, str]] = {
    "abs at 0.0": (0.0, 0.0, NO_DIRECTION),
    "abs at -0.0": (0.0, 0.0, NO_DIRECTION),
    "abs complex at 0.0": (0.0, 0.0, NO_DIRECTION),
    "abs**2 at 0.0": (0.0, 0.0, "the square of abs, whose slope at 0 is 0 here; write x**2, which has 2"),
    "hypot at 0.0": (0.0, 0.0, NO_DIRECTION),
    "hypot xx at 0.0": (0.0, 0.0, NO_DIRECTION),
    "norm at 0.0": (0.0, 0.0, NO_DIRECTION),
    "fmax at 1.0": (0.5, 0.0, "ties are shared half and half, as by maximum"),
    "pow1 at 0.0": (1.0, 0.0, DEFINED),
    "pow0 at 0.0": (0.0, 0.0, DEFINED),
    "x**x at 0.0": (0.0, 0.0, NOT_FINITE),
    "xlogy at 0.0": (0.0, 0.0, NOT_FINITE),
    "entr at 0.0": (0.0, 0.0, NOT_FINITE),
    "cummax at 0.0": (2.0, 0.0, "equal elements share equally, as in a reduction; JAX halves at every step"),
}


def orders(name: str, point: float) -> list[float]:
    """The value, the gradient, and the gradient of that."""
    function: Any = eval(f"lambda x: {KINKS[name][0]}", dict(NAMES))
    x = jnp.asarray(point)
    return [float(f(x)) for f in (function, tracer.grad(function), tracer.jit(tracer.grad(tracer.grad(function))))]


@pytest.mark.parametrize(("name", "point"), CASES, ids=[f"{name} at {point}" for name, point in CASES])
def test_derivatives_at_kinks_are_jaxs_or_differ_for_a_reason(name: str, point: float) -> None:
    found, jaxs = orders(name, point), [float(text) for text in JAX[f"{name} at {point}"]]
    different = DIFFERENT.get(f"{name} at {point}")
    wanted = jaxs if different is None else [jaxs[0], *different[:2]]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)
    if different is not None:
        assert not np.array_equal(wanted, jaxs, equal_nan=True), "no difference any more"


def test_smooth_functions_are_smooth_where_their_formulas_change() -> None:
    third = tracer.grad(tracer.grad(tracer.grad(nn.softplus)))
    np.testing.assert_allclose(float(third(0.0)), 0.0, atol=1e-15)
    np.testing.assert_allclose(float(third(0.5)), -0.0575567, rtol=1e-5)
    mixed = tracer.grad(tracer.grad(special.xlogy, 0), 1)
    assert float(mixed(0.0, 2.0)) == 0.5
    assert float(tracer.grad(special.xlogy)(0.0, 2.0)) == pytest.approx(math.log(2.0))
    assert float(tracer.grad(tracer.grad(special.xlog1py, 0), 1)(0.0, 1.0)) == 0.5
