"""Checkpoints within checkpoints, loops and branches: what policies reach; effects, once and in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import checkpoint, grad, jit, jvp, lax, vmap
from tracer import checkpoint_policies as policies
from tracer.ad_checkpoint import checkpoint_name, saved_residuals
from tracer.experimental import io_callback
from tracer.ir.visit import equations

Function = Callable[[Any], Any]
X = tnp.asarray([0.3, -0.2, 0.9])
W = tnp.asarray([[0.9, -0.3, 0.2], [0.1, 1.1, -0.4], [0.5, 0.2, 0.8]])


def layer(x: Any) -> Any:
    return tnp.tanh(checkpoint_name(W @ tnp.sin(x), "product"))


def scan(f: Function) -> Function:
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]


def cond(f: Function) -> Function:
    return lambda x: lax.cond(tnp.sum(x) > 0, f, lambda v: 2.0 * v, x)


def repeat(f: Function) -> Function:
    return lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]


def counted(f: Function) -> Function:
    return lambda x: lax.fori_loop(0, tnp.asarray(3), lambda i, c: f(c), x)


KEEPING = {"dots": policies.dots_saveable, "names": policies.save_only_these_names("product")}
INNER = {**KEEPING, "nothing": None}
AROUND: dict[str, Callable[[Function], Function]] = {
    "checkpoint": lambda f: f, "scan": scan, "scan in scan": lambda f: scan(scan(f)), "cond": cond, "jit": jit,
    "cond in scan": lambda f: scan(cond(f)), "scan in cond": lambda f: cond(scan(f)), "while": repeat,
    "scan in cond in while": lambda f: repeat(cond(scan(f))), "counted loop": counted,
}  # fmt: skip


def products(f: Function) -> int:
    program = tracer.make_program(tracer.value_and_grad(lambda x: f(x).sum()))(X)
    return sum(equation.primitive.name == "dot_general" for equation in equations(program))


@pytest.mark.parametrize(("around", "inner", "outer"), covering(AROUND, INNER, KEEPING, least=14))
def test_policies_reach_the_checkpoints_within(outer: str, inner: str, around: str) -> None:
    """What a checkpoint keeps, those within need not compute again, whatever they keep themselves."""
    f = checkpoint(AROUND[around](checkpoint(layer, policy=INNER[inner])), policy=KEEPING[outer])
    plain = AROUND[around](layer)
    assert products(f) == products(plain) == 2
    expected = grad(lambda x: plain(x).sum())(X)
    np.testing.assert_allclose(jit(grad(lambda x: f(x).sum()))(X), expected, rtol=1e-13)


@pytest.mark.parametrize("around", AROUND)
def test_what_nobody_keeps_is_computed_again(around: str) -> None:
    around_it = AROUND[around]
    assert products(checkpoint(around_it(layer))) == 3
    assert products(checkpoint(around_it(checkpoint(layer)), policy=policies.save_only_these_names("other"))) > 2
    twice = checkpoint(checkpoint(around_it(checkpoint(layer, policy=KEEPING["dots"]))))
    found, expected = (
        jvp(grad(lambda x, f=f: f(x).sum()), (X,), (X[::-1],))[1] for f in (twice, around_it(layer))
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_equal_policies_are_joined_once() -> None:
    dots, names = KEEPING.values()
    both = policies.save_from_both_policies(dots, names)
    assert both == dots | names == (dots | names) | dots
    assert repr(both) == "dots_saveable or save_only_these_names('product',)"
    assert dots | dots is dots


def test_residuals_tell_their_names() -> None:
    f = checkpoint(lambda x: layer(layer(x)).sum(), policy=KEEPING["names"])
    origins = [origin for _, origin in saved_residuals(f, X)]
    assert [origin.startswith("named 'product', made at") for origin in origins].count(True) == 2


# Effects

LOG: list[float] = []


def answered(x: Any) -> Any:
    """The host is told a value, and its answer is a factor."""

    def note(value: Any) -> Any:
        LOG.append(float(value))
        return np.float64(2.0 * value)

    return tnp.sin(x) * io_callback(note, tnp.asarray(0.0), lax.stop_gradient(x), ordered=True)


def told(x: Any) -> Any:
    tracer.debug.callback(lambda value: LOG.append(float(value)), x, ordered=True)
    return tnp.sin(x) + 0.1


everything = policies.everything_saveable
WITHIN: dict[str, Callable[[Function], Function]] = {
    "checkpoint of scan": lambda f: checkpoint(scan(f)), "scan of checkpoint": lambda f: scan(checkpoint(f)),
    "scan of which all is kept": lambda f: checkpoint(scan(f), policy=everything),
    "checkpoint of while": lambda f: checkpoint(repeat(f)), "while of checkpoint": lambda f: repeat(checkpoint(f)),
    "while of which all is kept": lambda f: checkpoint(repeat(f), policy=everything),
    "checkpoint of a counted loop": lambda f: checkpoint(counted(f)),
    "checkpoint of scan in while": lambda f: checkpoint(repeat(scan(f))),
    "checkpoints within": lambda f: checkpoint(cond(checkpoint(scan(checkpoint(f))))),
}  # fmt: skip
DERIVATIVES: dict[str, Callable[[Function], Function]] = {
    "grad": grad, "jit": lambda f: jit(grad(f)), "checkpoint": lambda f: grad(checkpoint(f)),
    "forward": tracer.jacfwd, "second": lambda f: jit(grad(grad(f))),
    "limited": lambda f: in_little_memory(jit(grad(f))),
}  # fmt: skip


def in_little_memory(f: Function) -> Function:
    def limited(x: Any) -> Any:
        with tracer.config.using(loop_memory=100):
            return f(x)

    return limited


@pytest.mark.parametrize(("effect", "within", "derivative"), covering([told, answered], WITHIN, DERIVATIVES, least=14))
def test_ordered_effects_happen_once_in_order(effect: Function, within: str, derivative: str) -> None:
    """What runs again for the derivative is silent, and has the answers that came the first time."""
    f = WITHIN[within](effect)
    expected = run_and_log(f, 0.7)
    assert len(expected) >= 3
    LOG.clear()
    DERIVATIVES[derivative](f)(0.7)
    assert expected == LOG


def test_derivatives_have_the_answers_that_came_first() -> None:
    for around in WITHIN.values():
        f = around(answered)
        steps = len(run_and_log(f, 0.7))

        def by_hand(x: Any, steps: int = steps) -> Any:
            for _ in range(steps):
                x = tnp.sin(x) * lax.stop_gradient(2.0 * x)
            return x

        np.testing.assert_allclose(jit(grad(f))(0.7), grad(by_hand)(0.7), rtol=1e-13)


def run_and_log(f: Function, x: float) -> list[float]:
    LOG.clear()
    f(x)
    return list(LOG)


def test_lanes_tell_in_their_order_step_by_step() -> None:
    f = checkpoint(scan(told))
    first, second = run_and_log(f, 0.7), run_and_log(f, 0.2)
    LOG.clear()
    jit(vmap(grad(f)))(tnp.asarray([0.7, 0.2]))
    assert [value for pair in zip(first, second, strict=True) for value in pair] == LOG
