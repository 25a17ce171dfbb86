"""First and second derivatives of elementwise functions at 0, 1, -1, infinity and NaN, by every pair of modes.

Both modes, and all four pairs of them, are to give one answer; it is JAX's, or stands below with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as jnp
from tests.transforms.singular_cases import FUNCTIONS, ORDERS, POINTS
from tracer import lax, nn
from tracer.scipy import special

JAX: dict[str, list[str]] = json.loads(Path(__file__).with_name("jax_singular.json").read_text())

RIGHT = "the derivative that there is; JAX has a limit that is another, or none"
OUTSIDE = "outside of the domain the value is NaN, and so is what follows from it"
NO_DIRECTION = "|x| has slope 0 at 0 here, and not 1"
FINITE = "x log(x) at 0 has no finite slope; gradients of sums of such terms stay finite"
ENDLESS = "the formula divides infinity by infinity there"

# name -> points -> why derivatives are not JAX's
DIFFERENT: dict[str, dict[str, str]] = {
    "jnp.arccosh": {"-1.0": OUTSIDE, "-inf": OUTSIDE, "inf": RIGHT},
    "jnp.arctanh": {"1.0": RIGHT, "-1.0": RIGHT, "inf": OUTSIDE, "-inf": OUTSIDE},
    "jnp.i0": {"0.0": RIGHT, "-0.0": RIGHT},
    "lax.lgamma": {"inf": RIGHT},
    "lax.digamma": {"inf": RIGHT},
    "special.gammaln": {"inf": RIGHT},
    "special.digamma": {"inf": RIGHT},
    "special.log_ndtr": {"-inf": RIGHT},
    "special.ndtri": {"0.0": RIGHT, "-0.0": RIGHT, "1.0": RIGHT},
    "special.entr": {"0.0": FINITE, "-0.0": FINITE, "inf": ENDLESS, "-inf": ENDLESS},
    "nn.soft_sign": {"0.0": NO_DIRECTION, "-0.0": NO_DIRECTION},
    "hypot(x, 1)": {"1.0": RIGHT, "-1.0": RIGHT, "inf": ENDLESS, "-inf": ENDLESS},
    "xlogy(x, 2)": {"inf": RIGHT, "-inf": RIGHT, "nan": RIGHT},
    "xlogy(2, x)": {"0.0": RIGHT, "-0.0": RIGHT, "-1.0": RIGHT, "inf": RIGHT, "-inf": RIGHT},
    "xlog1py(2, x)": {"-1.0": RIGHT, "inf": RIGHT, "-inf": RIGHT},
}


# name -> points where values are not JAX's either
LIMITS: dict[str, tuple[str, ...]] = {"jnp.i0": ("inf", "-inf")}  # infinite, as SciPy's; JAX divides and has NaN


def forwards(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: tracer.jvp(f, (x,), (jnp.ones_like(x),))[1]


def backwards(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: tracer.vjp(f, x)[1](jnp.ones_like(x))[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_at_singular_points_are_jaxs_or_differ_for_a_reason(name: str) -> None:
    scope: dict[str, Any] = {"jnp": jnp, "lax": lax, "nn": nn, "special": special, "jvp": forwards, "grad": backwards}
    scope["f"] = eval(f"lambda x: {FUNCTIONS[name]}", scope)
    scope["x"] = jnp.asarray([float(point) for point in POINTS])
    found = np.stack([np.asarray(eval(order, scope)) for order in ORDERS.values()], axis=1)
    differ = DIFFERENT.get(name, {})
    for point, ours in zip(POINTS, found, strict=True):
        jaxs = [float(text) if text != "-" else np.nan for text in JAX[f"{name} at {point}"]]
        known = [text != "-" for text in JAX[f"{name} at {point}"]]
        same = np.isclose(ours, jaxs, rtol=1e-9, atol=1e-12, equal_nan=True) | ~np.asarray(known)
        assert same[0] != (point in LIMITS.get(name, ())), f"value at {point}: {ours[0]}, JAX's {jaxs[0]}"
        shown = dict(zip(ORDERS, zip(ours.tolist(), jaxs, strict=True), strict=True))
        assert same[1:].all() != (point in differ), f"at {point}, (ours, JAX's): {shown}"


@pytest.mark.parametrize(("name", "point", "slope", "bend"), [
    ("jnp.arctanh", 1.0, np.inf, np.inf),
    ("jnp.i0", 0.0, 0.0, 0.5),
    ("special.digamma", np.inf, 0.0, 0.0),
    ("special.ndtri", 0.0, np.inf, -np.inf),
    ("special.log_ndtr", -np.inf, np.inf, -1.0),
    ("special.entr", 0.0, 0.0, 0.0),
    ("nn.soft_sign", 0.0, 1.0, 0.0),
    ("hypot(x, 1)", 1.0, 0.5**0.5, 0.5**1.5),
    ("xlogy(2, x)", 0.0, np.inf, -np.inf),
    ("xlog1py(2, x)", np.inf, 0.0, 0.0),
])  # fmt: skip
def test_what_differs_is_as_it_should_be(name: str, point: float, slope: float, bend: float) -> None:
    """By forward mode; reverse mode may have NaN where it multiplies a zero by an infinite slope."""
    f = eval(f"lambda x: {FUNCTIONS[name]}", {"jnp": jnp, "special": special, "nn": nn})
    x = jnp.asarray(point)
    np.testing.assert_allclose([float(forwards(f)(x)), float(forwards(forwards(f))(x))], [slope, bend], rtol=1e-12)
