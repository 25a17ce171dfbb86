"""A gradient costs a few times what its function does, by the weights of `tracer.runtime.flops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax
from tracer.runtime.flops import equation_flops

MOST = 5
N = 64

rng = np.random.default_rng(0)
V = tnp.asarray(rng.uniform(0.5, 1.5, N))
M = tnp.asarray(rng.uniform(0.5, 1.5, (N, N)))
B = tnp.asarray(rng.uniform(0.5, 1.5, (8, N)))
PLACES = tnp.asarray(rng.integers(0, N, 40))


def polynomial(x: Any) -> Any:
    return (3.0 * x**3 - x * x + 2.0 * x).sum()


def quotient(x: Any) -> Any:
    return ((x + 1.0) / (x * x + 2.0)).sum()


def log_sum_exp(x: Any) -> Any:
    return tnp.log(tnp.exp(x - x.max()).sum())


def norm(x: Any) -> Any:
    return tnp.sqrt((x * x).sum())


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def quadratic_form(m: Any) -> Any:
    return V @ (m @ V)


def network(w: Any) -> Any:
    hidden = tnp.tanh(B @ w)
    return ((hidden @ w - B) ** 2).mean()


def attention(w: Any) -> Any:
    q = B @ w
    scores = q @ q.T / 8.0
    weights = tracer.nn.softmax(scores, axis=-1)
    return (weights @ B).sum()


def layer_norm(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return (centred / tnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * B).sum()


def variance(x: Any) -> Any:
    return ((x - x.mean()) ** 2).mean()


def sorted_weights(x: Any) -> Any:
    return (tnp.sort(x) * V).sum()


def running_sum(x: Any) -> Any:
    return (tnp.cumsum(x) ** 2).sum()


def running_product(x: Any) -> Any:
    return tnp.cumprod(x).sum()


def rows_looked_up(m: Any) -> Any:
    return (m[PLACES] ** 2).sum()


def values_set(x: Any) -> Any:
    return (x.at[PLACES].set(0.0) * V * x).sum()


def values_added(x: Any) -> Any:
    return (x.at[PLACES].add(1.5 * x[:40]) ** 2).sum()


def slice_updated(x: Any) -> Any:
    return (lax.dynamic_update_slice(x, x[:8] * 2.0, (10,)) * V).sum()


def pieces_joined(x: Any) -> Any:
    return (tnp.concatenate([x[:20] * 2.0, x[20:] ** 2, x * V]) ** 2).sum()


def padded(x: Any) -> Any:
    return (tnp.pad(x, 3) ** 2).sum()


def differences(x: Any) -> Any:
    return (tnp.diff(x) ** 2).sum()


def heat(x: Any) -> Any:
    def step(u: Any, _: Any) -> Any:
        return u + 0.1 * (tnp.roll(u, 1) - 2.0 * u + tnp.roll(u, -1)), None

    return (lax.scan(step, x, None, length=20)[0] ** 2).sum()


def recurrence(x: Any) -> Any:
    def step(c: Any, v: Any) -> Any:
        c = tnp.tanh(c * 0.9 + v)
        return c, c * v

    return lax.scan(step, 0.5, x)[1].sum()


def masked(x: Any) -> Any:
    return tnp.where(x > 1.0, x * x, -x).sum()


def greatest_product(x: Any) -> Any:
    return (x * V * (x + 1.0)).max() ** 2


def branches(x: Any) -> Any:
    return lax.cond(x.sum() > 1.0, lambda v: (v**2).sum(), lambda v: tnp.sin(v).sum(), x)


def convolution(x: Any) -> Any:
    image = x.reshape(1, 1, N, N)
    kernel = tnp.ones((4, 1, 3, 3)) * x[0, 0]
    return (lax.conv(image, kernel, (1, 1), "SAME") ** 2).sum()


def outer_products(x: Any) -> Any:
    return (x[:, None] * V[None, :] + tnp.sin(x)[None, :]).sum()


def pairs(x: Any) -> Any:
    distances = (x[:, None] - x[None, :]) ** 2
    return tnp.exp(-distances).sum()


def newton_steps(x: Any) -> Any:
    step = lambda c: (c[0] + 1, 0.5 * (c[1] + x / c[1]))  # noqa: E731
    return lax.while_loop(lambda c: c[0] < 9, step, (0, x))[1].sum()


PROGRAMS: list[tuple[Callable[[Any], Any], Any]] = [
    *((f, V) for f in (
        polynomial, quotient, log_sum_exp, norm, rosenbrock, variance, sorted_weights, running_sum, running_product,
        values_set, values_added, slice_updated, pieces_joined, padded, differences, heat, recurrence, masked,
        greatest_product, branches, outer_products, pairs, newton_steps,
    )),
    *((f, M) for f in (quadratic_form, network, attention, rows_looked_up, convolution)),
    (layer_norm, B),
]  # fmt: skip


def optimized_flops(function: Callable[..., Any], *arguments: Any) -> int:
    return tracer.jit(function).lower(*arguments).flops()


@pytest.mark.parametrize(("function", "argument"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_a_gradient_costs_at_most_five_times_its_function(function: Callable[[Any], Any], argument: Any) -> None:
    forward = optimized_flops(function, argument)
    both = optimized_flops(tracer.value_and_grad(function), argument)
    assert 0 < both <= MOST * forward, f"{both / forward:.2f} times"


def test_the_weights_are_those_of_the_table() -> None:
    def weights(function: Callable[..., Any], *arguments: Any) -> list[tuple[str, int]]:
        program = tracer.jit(function).lower(*arguments).program()
        return [(e.primitive.name, equation_flops(e)) for e in program.equations if equation_flops(e)]

    x, m = tnp.ones(32), tnp.ones((32, 8))
    assert weights(lambda x: tnp.sin(x) + x, x) == [("sin", 16 * 32), ("add", 32)]
    assert weights(lambda x, m: x @ m, x, m) == [("dot_general", 2 * 32 * 8)]
    assert weights(lambda x: x.sum(), x) == [("reduce_sum", 32)]
    assert weights(lambda m: m.T.reshape(-1)[3:9], m) == []
    assert weights(lambda x: lax.scan(lambda c, v: (c * v, None), 1.0, x)[0], x) == [("scan", 32)]
