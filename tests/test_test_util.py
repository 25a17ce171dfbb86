"""Checks of derivatives: right ones pass, in every dtype and tree; wrong ones are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import data, jit, nn, optim, random, test_util
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


def test_tolerances_by_dtype() -> None:
    """A dtype that is not in a dict has its usual tolerance."""
    wide, narrow = {np.float64: 0.1, "float32": 1e-9}, {tnp.float32: 0.1}
    for f in (wrong_forward, lambda x: wrong_backward(x)["y"] * 1e-2):
        test_util.check_grads(f, (X,), order=1, modes=["fwd" if f is wrong_forward else "rev"], atol=wide, rtol=wide)
    with pytest.raises(AssertionError, match="beside differences"):
        test_util.check_grads(wrong_forward, (X,), order=1, modes=["fwd"], atol=narrow, rtol=narrow)


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


@each(
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


@jit(donate_argnums=0)
def trained(state: Any, x: Any, y: Any) -> Any:
    """A step with dropout, batch statistics, a schedule and a key in the state."""

    def loss(model: Any, key: Any) -> Any:
        model = model.training(key)
        return nn.cross_entropy(model(x), y).mean(), model.inference()

    key = random.fold_in(state["key"], state["step"])
    (value, model), slopes = tracer.value_and_grad(loss, has_aux=True)(state["model"], key)
    updates, opt = TX.update(slopes, state["opt"], model)
    model = optim.apply_updates(model, updates)
    return {"model": model, "opt": opt, "key": state["key"], "step": state["step"] + 1}, value


TX = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(optim.cosine_decay_schedule(1e-2, 20)))


def start() -> Any:
    keys = nn.Keys(random.key(0))
    model = nn.Sequential(nn.Linear(6, 64, key=next(keys)), nn.BatchNorm(64), nn.relu, nn.Dropout(0.2),
                          nn.Linear(64, 3, key=next(keys)))  # fmt: skip
    return {"model": model, "opt": TX.init(model), "key": random.key(2), "step": tnp.asarray(0)}


def batches(prefetch: int = 2) -> data.Loader:
    x = np.random.default_rng(0).standard_normal((40, 6)).astype("float32")
    return data.Loader((x, (x.sum(1) > 0).astype("int32")), 8, key=random.key(1), prefetch=prefetch)


@pytest.mark.parametrize("prefetch", [0, 3])
def test_training_keeps_its_bits_by_threads_files_and_scans(prefetch: int) -> None:
    loader = batches(prefetch).seek({"epoch": 1, "batch": 3})
    test_util.check_training(start, trained, loader, 7)
    assert loader.state == {"epoch": 1, "batch": 3}


def test_what_training_depends_on_besides_its_state_is_found() -> None:
    """A count outside of the state, a rate that explodes, donation that fails, a batch that is missing."""
    calls = []

    def counting(w: Any, x: Any) -> Any:
        calls.append(0)
        return w + len(calls) * x.sum()

    x = np.ones((6, 2))
    with pytest.raises(
        AssertionError, match=r"check_training at .*: the loop again, the state has other bits\n  2 of 2"
    ):
        test_util.check_training(lambda: tnp.zeros(2), counting, data.Loader(x, 2), 3)
    with pytest.raises(AssertionError, match=r"the state is not finite after 3 steps"):
        test_util.check_training(lambda: tnp.ones(2), jit(lambda w, x: w * 1e200), data.Loader(x, 2), 3)
    once = jit(lambda s, x: {"w": s["w"] * 2 + x.sum(), "v": s["w"] * 1}, donate_argnums=0)
    test_util.check_training(lambda: {"w": tnp.ones(2), "v": tnp.ones(2)}, once, data.Loader(x, 2), 2)
    twice = jit(lambda s, x: {"w": s["w"], "v": s["w"]}, donate_argnums=0)
    with pytest.raises(AssertionError, match="the step donates the state, and 2,400 bytes of the next one are in new"):
        test_util.check_training(lambda: {"w": tnp.ones(300), "v": tnp.ones(300)}, twice, data.Loader(x, 2), 2)
    with pytest.raises(ArgumentError, match="got 4 steps for 3 batches"):
        test_util.check_training(start, trained, data.Loader(x, 2, epochs=1), 4)
    with pytest.raises(ArgumentError, match="step returns the next state, or a tuple that begins with it"):
        test_util.check_training(lambda: tnp.ones(2), lambda w, x: [w], data.Loader(x, 2), 2)
