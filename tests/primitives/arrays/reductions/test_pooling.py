"""Derivatives of pooling beside loops over windows: which element moves an extreme, and what flows back to it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import lax

RNG = np.random.default_rng(4)
# sizes, window, and what is not the default
SETTINGS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((6, 8), (2, 2), {"strides": (2, 2)}),
    ((7, 9), (2, 3), {"strides": (3, 3)}),
    ((7, 7), (3, 3), {"strides": (2, 2), "pads": ((1, 1), (0, 1))}),
    ((6, 6), (3, 3), {"pads": ((1, 1), (1, 1))}),
    ((5, 6), (2, 2), {"strides": (2, 2), "pads": ((2, 1), (3, 2))}),
    ((8, 5), (3, 2), {"strides": (2, 1), "dilations": (2, 3)}),
    ((4, 3), (2, 2), {"strides": (2, 1), "base": (2, 3), "pads": ((1, 0), (0, 1))}),
    ((9, 9), (3, 3), {"strides": (2, 2), "pads": ((-1, 0), (-2, -1))}),
    ((5, 7), (5, 7), {}),
    ((2, 4, 6), (1, 2, 3), {"strides": (1, 2, 1)}),
    ((2, 4, 4, 3), (1, 2, 2, 1), {"strides": (1, 2, 2, 1)}),
    ((2, 5, 5, 3), (1, 3, 3, 1), {"strides": (1, 1, 2, 1)}),
    ((4, 3, 5), (2, 1, 3), {"strides": (2, 1, 1)}),
    ((90,), (70,), {"strides": (5,)}),
    ((9, 9), (9, 9), {"dilations": (1, 1)}),
    ((80, 2), (80, 1), {}),
]


def arguments(setting: Any) -> tuple[Any, ...]:
    sizes, window, given = setting
    ones = (1,) * len(sizes)
    rest = (given.get("strides", ones), given.get("pads", ((0, 0),) * len(sizes)))
    return window, *rest, given.get("base", ones), given.get("dilations", ones)


def pooled(x: Any, kind: str, setting: Any) -> Any:
    start, function = {"max": (-np.inf, lax.max), "min": (np.inf, lax.min), "sum": (0.0, lax.add)}[kind]
    return lax.reduce_window(x, start, function, *arguments(setting))


def elements(place: tuple[int, ...], setting: Any) -> list[tuple[int, ...]]:
    """The operand's elements in one window, row by row."""
    window, strides, pads, base, dilations = arguments(setting)
    rows = []
    for p, n, w, s, (low, _), b, d in zip(place, setting[0], window, strides, pads, base, dilations, strict=True):
        at = [p * s + k * d - low for k in range(w)]
        rows.append([q // b for q in at if q % b == 0 and 0 <= q // b < n])
    return list(itertools.product(*rows))


def flows_back(x: Any, ct: Any, kind: str, setting: Any) -> Any:
    result = np.zeros_like(x)
    for place in np.ndindex(*ct.shape):
        inside = elements(place, setting)
        if kind == "sum":
            for index in inside:
                result[index] += ct[place]
        elif inside:
            result[(max if kind == "max" else min)(inside, key=lambda index: x[index])] += ct[place]
    return result


@pytest.mark.parametrize(
    ("jitted", "kind", "setting"), covering([False, True], ["max", "min", "sum"], SETTINGS, least=32), ids=str
)
def test_the_first_of_equal_extremes_has_the_cotangent(setting: Any, kind: str, jitted: bool) -> None:
    x = RNG.integers(-2, 3, setting[0]).astype(np.float64)
    ct = RNG.integers(-9, 10, np.shape(pooled(x, kind, setting))).astype(np.float64)
    way = tracer.jit if jitted else lambda f: f
    found = way(lambda x, ct: tracer.vjp(lambda v: pooled(v, kind, setting), x)[1](ct)[0])(x, ct)
    np.testing.assert_array_equal(found, flows_back(x, ct, kind, setting))


@pytest.mark.parametrize(("kind", "setting"), covering(["max", "min"], SETTINGS, least=16), ids=str)
def test_tangents_are_those_of_the_same_elements(setting: Any, kind: str) -> None:
    x = RNG.integers(-2, 3, setting[0]).astype(np.float64)
    dx = RNG.normal(size=x.shape)
    y, dy = tracer.jit(lambda x, dx: tracer.jvp(lambda v: pooled(v, kind, setting), (x,), (dx,)))(x, dx)
    np.testing.assert_array_equal(y, pooled(x, kind, setting))
    ct = RNG.normal(size=dy.shape)
    np.testing.assert_allclose((dy * ct).sum(), (dx * flows_back(x, ct, kind, setting)).sum(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("setting", "kind"), covering(SETTINGS[:10], ["max", "min", "sum"], least=12), ids=str)
def test_batches_and_second_derivatives(setting: Any, kind: str) -> None:
    xs = RNG.normal(size=(3, *setting[0]))
    gradient = tracer.grad(lambda x: (pooled(x, kind, setting) ** 3).sum())
    expected = np.stack([np.asarray(gradient(x)) for x in xs])
    np.testing.assert_allclose(tracer.jit(tracer.vmap(gradient))(xs), expected, rtol=1e-12)
    np.testing.assert_allclose(tracer.jit(tracer.vmap(gradient, 1))(np.moveaxis(xs, 0, 1)), expected, rtol=1e-12)
    x, v = xs[0], xs[1]
    turned = tracer.jit(lambda x, v: tracer.grad(lambda x: (gradient(x) * v).sum())(x))(x, v)
    moved = tracer.jvp(lambda v: pooled(v, kind, setting), (x,), (v,))[1]
    wanted = flows_back(x, np.asarray(6 * pooled(x, kind, setting) * moved), kind, setting)
    np.testing.assert_allclose(turned, wanted, rtol=1e-9, atol=1e-12)


def test_windows_that_see_no_element_owe_nothing() -> None:
    """Padding alone: no element of the operand is the greatest."""
    value, gradient = tracer.value_and_grad(
        lambda x: tnp.minimum(lax.reduce_window(x, -tnp.inf, lax.max, (2,), (2,), ((4, 0),)), 7.0).sum()
    )(tnp.asarray([1.0, 2.0]))
    assert value == -np.inf
    np.testing.assert_array_equal(gradient, [0.0, 1.0])
