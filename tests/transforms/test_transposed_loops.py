"""Transposes of loops beside carries that depend on nothing linear: counters, and what is computed from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax

X = np.array([1.0, 2.0])


def counted(x: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, c: c * (i + 1.0) + x, x)


def powers(x: Any) -> Any:
    def step(c: Any, k: Any) -> Any:
        i, p, y = c
        return (i + 1, 0.5 * p + k, y * p + i * x), {"y": y, "p": p * y}

    (_, _, y), ys = lax.scan(step, (0, 1.0, x), tnp.arange(4.0))
    return y, ys


def backwards(x: Any) -> Any:
    def step(c: Any, _: None) -> Any:
        i, y = c
        return (i * 2, y + i * x), y * i

    (_, y), ys = lax.scan(step, (1, x), None, length=4, reverse=True)
    return y, ys


def nested(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(0, 2, lambda j, d: d * (i + j) + x, c), x)


@pytest.mark.parametrize("f", [counted, powers, backwards, nested])
@pytest.mark.parametrize("wrap", [lambda f: f, tracer.jit], ids=["plain", "jit"])
def test_transposes_are_adjoints(f: Callable[[Any], Any], wrap: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(0)
    y = f(X)
    cotangents = tracer.tree.map(lambda v: tnp.asarray(rng.standard_normal(v.shape)), y)
    (found,) = wrap(tracer.linear_transpose(f, X))(cotangents)
    (expected,) = tracer.vjp(f, X)[1](cotangents)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_batched_and_differentiated_transposes() -> None:
    transposed = tracer.linear_transpose(counted, 1.0)
    np.testing.assert_allclose(tracer.vmap(lambda ct: transposed(ct)[0])(X), 326.0 * X)
    assert float(tracer.grad(lambda ct: transposed(ct)[0])(1.0)) == 326.0
