"""Checks of derivatives: right ones pass, in every dtype and tree; wrong ones are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import test_util
from tracer.errors import ArgumentError

X = np.linspace(0.5, 1.5, 3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_right_derivatives_pass(dtype: str) -> None:
    x = tnp.asarray(X).astype(dtype)
    test_util.check_grads(lambda x: x * tnp.sin(x), (x,), order=1 if dtype == "float16" else 2)


def test_trees_and_orders() -> None:
    def f(p: Any, x: Any) -> Any:
        return {"y": tnp.tanh(p["w"] @ x + p["b"]), "n": (p["w"] ** 3).sum()}

    test_util.check_grads(f, ({"w": np.ones((2, 3)), "b": np.zeros(2)}, X), order=3)


@tracer.custom_jvp
def wrong_forward(x: Any) -> Any:
    return tnp.sin(x)


wrong_forward.defjvp(lambda xs, dxs: (tnp.sin(xs[0]), 1.01 * tnp.cos(xs[0]) * dxs[0]))


@tracer.custom_vjp
def wrong_backward(x: Any) -> Any:
    return {"y": x * x}


wrong_backward.defvjp(lambda x: ({"y": x * x}, x), lambda x, g: (g["y"] * x,))


@tracer.custom_jvp
def wrong_second(x: Any) -> Any:
    return x**3


@tracer.custom_jvp
def slope(x: Any) -> Any:
    return 3 * x**2


slope.defjvp(lambda xs, dxs: (slope(xs[0]), 5 * xs[0] * dxs[0]))
wrong_second.defjvp(lambda xs, dxs: (wrong_second(xs[0]), slope(xs[0]) * dxs[0]))


@pytest.mark.parametrize(
    ("f", "order", "modes", "what"),
    [
        (wrong_forward, 1, ("fwd",), "jvp: tangents beside differences"),
        (wrong_forward, 1, ("rev",), "vjp beside differences"),
        (wrong_backward, 1, ("rev",), "vjp beside differences"),
        (wrong_second, 2, ("fwd",), "jvp of jvp: tangents"),
        (wrong_second, 2, ("rev",), "vjp of vjp beside differences"),
        (lambda x: wrong_forward(x) * 2.0, 1, ("fwd", "rev"), "jvp: tangents"),
    ],
)
def test_wrong_derivatives_are_named(f: Any, order: int, modes: tuple[str, ...], what: str) -> None:
    if order > 1:
        test_util.check_grads(f, (X,), 1, modes)
    with pytest.raises(AssertionError, match=what):
        test_util.check_grads(f, (X,), order, modes)


def test_wrong_results_and_leaves_are_named() -> None:
    with pytest.raises(AssertionError, match="mine: results"):
        test_util.check_jvp(tnp.sin, lambda xs, dxs: (xs[0], tnp.cos(xs[0]) * dxs[0]), (X,), err_msg="mine")
    with pytest.raises(AssertionError, match="vjp: results"):
        test_util.check_vjp(tnp.sin, lambda x: (x, lambda g: (g * tnp.cos(x),)), (X,))


def test_tolerances_and_steps_are_the_callers() -> None:
    test_util.check_grads(wrong_forward, (X,), 1, atol=0.1, rtol=0.1)
    with pytest.raises(AssertionError):
        test_util.check_grads(tnp.exp, (X,), 1, eps=0.5)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: test_util.check_grads(tnp.sin, (X,), 1, modes=("forward",)), "modes are 'fwd' and 'rev'"),
        (lambda: test_util.check_grads(tnp.sin, (X,), 0), "got order 0"),
        (lambda: test_util.check_grads(lambda x: x * 2.0, (3,), 1), "floats or complex numbers"),
    ],
)
def test_mistakes_are_told(call: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call()
