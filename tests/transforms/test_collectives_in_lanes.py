"""Collectives in branches and loops whose lanes part: what lanes put in that do not count counts in derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import grad, jit, lax, vmap

Function = Callable[[Any], Any]
X = np.asarray([0.5, -1.2, 2.3])
W = np.asarray([[0.9, -0.3], [0.5, 0.8]])
WEIGHTS = np.asarray([1.0, -0.5, 0.3])
STEP = 1e-6

COLLECTIVES: dict[str, Function] = {
    "psum": lambda y: lax.psum(y, "i"),
    "pmean": lambda y: lax.pmean(tnp.sin(y), "i") + y,
    "ppermute": lambda y: lax.ppermute(y, "i", [(0, 1), (1, 2), (2, 0)]) * y,
    "all_gather": lambda y: lax.all_gather(y, "i").sum(0) * tnp.cos(y),
    "psum_scatter": lambda y: lax.psum_scatter(lax.all_gather(tnp.sin(y), "i") * y, "i"),
    "psum in a call": jit(lambda y: lax.psum(y * y, "i")),
}


def parting(across: Function, w: Any, v: Any) -> Any:
    return lax.cond(v > 0, lambda u: across(u * w[0, 0] + w[1].sum()) * 0.5, lambda u: u * u, v)


def switching(across: Function, w: Any, v: Any) -> Any:
    branches = [lambda u: across(tnp.sin(u)) * w[0, 0], lambda u: u * u * w[0, 1], lambda u: u + across(u * w[1, 1])]
    return lax.switch((v > 0).astype(int) + (v > 1), branches, v)


def parting_in_scan(across: Function, w: Any, v: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        return lax.cond(c > 0.3, lambda u: across(u * row[0]) * 0.4, lambda u: u + 0.5 * row[1], c), None

    return lax.scan(tracer.checkpoint(step), v, w)[0]


def stopping(across: Function, w: Any, v: Any) -> Any:
    def step(s: Any) -> Any:
        return s[0] + 1, s[1] + 0.3 + 0.2 * tnp.abs(across(s[1] * w[0, 0]))

    return lax.while_loop(lambda s: (s[0] < 4) & (s[1] < 2.0), step, (0, v))[1]


def counted(across: Function, w: Any, v: Any) -> Any:
    return lax.fori_loop(0, (v > 0).astype(int) + 1, lambda i, s: across(s * w[0, 0]) * 0.4 + v, v)


LANES = [parting, switching, parting_in_scan, stopping, counted]


@pytest.mark.parametrize(("across", "lane"), covering(COLLECTIVES, LANES, least=15))
def test_derivatives_are_differences(across: str, lane: Callable[..., Any]) -> None:
    """By the lanes' own values and by an array that they share."""

    def loss(point: Any) -> Any:
        x, w = point
        return vmap(lambda v: lane(COLLECTIVES[across], w, v), axis_name="i")(x) @ WEIGHTS

    def difference(place: int, index: Any) -> float:
        values = []
        for step in (STEP, -STEP):
            point = [X.copy(), W.copy()]
            point[place][index] += step
            values.append(float(compiled(point)))
        return (values[0] - values[1]) / (2 * STEP)

    compiled = jit(loss)
    found, forward = jit(grad(loss))([X, W]), tracer.jacfwd(loss)([X, W])
    for place, values in enumerate((X, W)):
        expected = np.reshape([difference(place, index) for index in np.ndindex(values.shape)], values.shape)
        np.testing.assert_allclose(found[place], expected, atol=1e-7)
        np.testing.assert_allclose(forward[place], expected, atol=1e-7)
