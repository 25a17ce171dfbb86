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


def beside(c: Any, v: Any) -> Any:
    return tnp.sin(c), c * v


def called(x: Any) -> Any:
    a, b = tracer.jit(beside)(2.0, x)
    return a * b


def branched(x: Any) -> Any:
    a, b = lax.cond(tnp.asarray(3.0) > 2, beside, lambda c, v: (c, v), 2.0, x)
    return a * b


def again(x: Any) -> Any:
    a, b = tracer.checkpoint(beside)(2.0, x)
    return a * b


def carried(x: Any) -> Any:
    (a, b), (ps, qs) = lax.scan(lambda s, _: ((s[0] * 0.5, s[1] * s[0]), s), (2.0, x), None, length=3)
    return a * b, tnp.sum(ps[:, None] * qs, axis=0)


@pytest.mark.parametrize("f", [counted, powers, backwards, nested, called, branched, again, carried])
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


@pytest.mark.parametrize("wrap", [lambda f: f, tracer.jit], ids=["plain", "jit"])
def test_second_derivatives_of_calls_within_a_loop_in_bounded_memory(wrap: Callable[[Any], Any]) -> None:
    """What a call computes beside the linear results depends on known values alone."""

    @tracer.custom_vjp
    def sine(x: Any) -> Any:
        return tnp.sin(x)

    sine.defvjp(lambda x: (tnp.sin(x), x), lambda x, ct: (ct * tnp.cos(x),))

    def within_call(v: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, tracer.jit(sine)(s[1])), (0, v))[1]

    def within_scan(v: Any) -> Any:
        step = lambda c, _: (sine(c), None)  # noqa: E731
        return lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, lax.scan(step, s[1], None, length=2)[0]), (0, v)
        )[1]

    for f, count in ((within_call, 5), (within_scan, 6)):
        with tracer.config.using(loop_memory=200):
            found = wrap(tracer.grad(tracer.grad(f)))(0.3)
        expected = tracer.grad(tracer.grad(lambda v, n=count: lax.fori_loop(0, n, lambda _, x: tnp.sin(x), v)))(0.3)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
