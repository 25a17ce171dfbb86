"""A gradient costs a few times what its function does, by the weights of `tracer.runtime.analysis.cost.flops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax
from tracer.runtime.analysis.cost import equation_cost
from tracer.scipy import special

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


def elements_in_scan(x: Any) -> Any:
    return lax.scan(lambda c, i: (c + x[i] * c, None), 1.0, tnp.arange(N))[0]


def elements_in_counted_loop(x: Any) -> Any:
    return lax.fori_loop(0, N, lambda i, c: c + tnp.sin(x[i]), 0.0)


def elements_in_while_loop(x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < N, lambda s: (s[0] + 1, s[1] + x[s[0]] ** 2), (0, 0.0))[1]


def elements_in_branches(x: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        return c + lax.cond(c > 3.0, lambda: x[i] * x[i - 1], lambda: tnp.sin(x[i]))

    return lax.fori_loop(0, N, step, 0.0)


def elements_in_loops_in_loops(x: Any) -> Any:
    inner = lambda i, c: lax.fori_loop(0, 8, lambda j, c: c * x[8 * i + j], c)  # noqa: E731
    return lax.fori_loop(0, N // 8, inner, 1.0)


def elements_carried(x: Any) -> Any:
    step = lambda i, y: y.at[i].set(0.5 * y[i - 1] + tnp.sin(y[i]))  # noqa: E731
    return lax.fori_loop(1, N, step, x).sum()


def windows_in_loop(x: Any) -> Any:
    step = lambda i, c: c + (lax.dynamic_slice(x, (i,), (4,)) ** 2).sum()  # noqa: E731
    return lax.fori_loop(0, N - 4, step, 0.0)


def window(x: Any) -> Any:
    return (lax.dynamic_slice(x, (3,), (4,)) ** 2).sum()


def first_elements(x: Any) -> Any:
    return (x[:4] ** 2).sum()


def product(x: Any) -> Any:
    return x.prod()


def greatest_of_windows(x: Any) -> Any:
    return (lax.reduce_window(x, -tnp.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2).sum()


def greatest_of_windows_that_meet(x: Any) -> Any:
    return (lax.reduce_window(x, -tnp.inf, lax.max, (3, 3), (2, 2), "SAME") ** 2).sum()


def greatest_of_each_half(x: Any) -> Any:
    return (lax.reduce_window(x, -tnp.inf, lax.max, (N, N // 2), (1, N // 2), "VALID") ** 2).sum()


def correlated(x: Any) -> Any:
    return (tnp.correlate(x, x[:-3]) ** 2).sum() + tnp.convolve(x, V, "valid").sum()


def least_of_neighbours(x: Any) -> Any:
    return (lax.reduce_window(x, tnp.inf, lax.min, (3, 3), (1, 1), "SAME") ** 2).sum()


def averages_of_windows(x: Any) -> Any:
    return ((lax.reduce_window(x, 0.0, lax.add, (3, 3), (2, 2), "SAME") / 9.0) ** 2).sum()


def running_maximum(x: Any) -> Any:
    return (lax.cummax(x) ** 2).sum()


def strided_convolution(x: Any) -> Any:
    image = x.reshape(1, 1, N, N)
    kernel = tnp.ones((4, 1, 3, 3)) * x[0, 0]
    return (lax.conv(image, kernel, (2, 2), "SAME") ** 2).sum()


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


# Whole models


def convolutional(p: Any) -> Any:
    """Two convolutions with pooling between, a dense layer, the cross entropy of the classes."""
    h = tracer.nn.relu(lax.conv(IMAGES, p["first"], (1, 1), "SAME"))
    h = lax.reduce_window(h, -tnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    h = tracer.nn.relu(lax.conv(h, p["second"], (1, 1), "SAME"))
    logits = h.reshape(8, -1) @ p["dense"] + p["bias"]
    return -(tracer.nn.log_softmax(logits)[tnp.arange(8), LABELS]).mean()


def perceptron(p: Any) -> Any:
    h = B
    for w, b in p[:-1]:
        h = tracer.nn.gelu(h @ w + b)
    w, b = p[-1]
    return ((h @ w + b) ** 2).mean()


def gated_recurrence(p: Any) -> Any:
    """A GRU over eight inputs, of which everything is learned."""

    def step(h: Any, x: Any) -> Any:
        both = tnp.concatenate([x, h])
        update, reset = tracer.nn.sigmoid(p["update"] @ both), tracer.nn.sigmoid(p["reset"] @ both)
        new = tnp.tanh(p["new"] @ tnp.concatenate([x, reset * h]))
        h = update * h + (1.0 - update) * new
        return h, h.sum()

    return (lax.scan(step, tnp.zeros(N), B)[1] ** 2).sum()


def transformer_block(p: Any) -> Any:
    q, k, v = (B @ p[name] for name in ("q", "k", "v"))
    heads = [tnp.moveaxis(z.reshape(8, 4, N // 4), 1, 0) for z in (q, k, v)]
    weights = tracer.nn.softmax(heads[0] @ heads[1].mT / 4.0, axis=-1)
    mixed = B + tnp.moveaxis(weights @ heads[2], 0, 1).reshape(8, N) @ p["out"]
    centred = mixed - mixed.mean(-1, keepdims=True)
    normal = centred / tnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return ((mixed + tracer.nn.relu(normal @ p["up"]) @ p["down"]) ** 2).mean()


def black_scholes(p: Any) -> Any:
    spot, volatility, rate = p
    root = volatility * tnp.sqrt(1.5)
    d1 = (tnp.log(spot / V) + (rate + 0.5 * volatility**2) * 1.5) / root
    normal = lambda d: 0.5 * lax.erfc(-d / tnp.sqrt(2.0))  # noqa: E731
    return (spot * normal(d1) - V * tnp.exp(-rate * 1.5) * normal(d1 - root)).sum()


def logistic_regression(w: Any) -> Any:
    margins = (M @ w) * tnp.where(V > 1.0, 1.0, -1.0)
    return tnp.logaddexp(0.0, -margins).mean() + 0.01 * (w * w).sum()


def bodies(x: Any) -> Any:
    """The energy of sixteen bodies after ten steps of the leapfrog method."""

    def force(x: Any) -> Any:
        apart = x[:, None, :] - x[None, :, :]
        distance = (apart**2).sum(-1) + 0.1
        return -(apart / (distance * tnp.sqrt(distance))[..., None]).sum(1)

    def step(state: Any, _: Any) -> Any:
        x, v = state
        v = v + 0.01 * force(x)
        return (x + 0.01 * v, v), None

    (x, v), _ = lax.scan(step, (x, tnp.zeros_like(x)), length=10)
    return (v**2).sum() - (1.0 / tnp.sqrt(((x[:, None] - x[None]) ** 2).sum(-1) + 0.1)).sum()


def kalman(p: Any) -> Any:
    """The likelihood of a series under a model of position and speed: two states, written out."""
    q, r = p

    def step(state: Any, z: Any) -> Any:
        mean, cov = state
        mean = A2 @ mean
        cov = A2 @ cov @ A2.T + q * tnp.eye(2)
        spread = cov[0, 0] + r
        gain = cov[:, 0] / spread
        error = z - mean[0]
        state = mean + gain * error, cov - gain[:, None] * cov[0][None, :]
        return state, error**2 / spread + tnp.log(spread)

    return lax.scan(step, (tnp.zeros(2), tnp.eye(2)), V)[1].sum()


def ranking(x: Any) -> Any:
    """A loss of the sorted scores: the area under what the best of them bring."""
    order = tnp.argsort(-x)
    gains = tnp.cumsum(tnp.sort(x)[::-1] * V) / tnp.arange(1.0, N + 1.0)
    return gains.mean() + (x[order] * tnp.arange(N)).mean()


def embedding(p: Any) -> Any:
    rows = p["table"][PLACES]
    return ((tnp.tanh(rows @ p["w"]) - rows) ** 2).mean()


def pendulum(y: Any) -> Any:
    """A swinging pendulum until it has come so far, by Runge and Kutta, in a loop of unknown length."""

    def slope(y: Any) -> Any:
        return tnp.stack([y[1], -tnp.sin(y[0]) * 9.8 - 0.1 * y[1]])

    def step(state: Any) -> Any:
        t, y = state
        a = slope(y)
        b = slope(y + 0.005 * a)
        c = slope(y + 0.005 * b)
        d = slope(y + 0.01 * c)
        return t + 0.01, y + (0.01 / 6.0) * (a + 2.0 * b + 2.0 * c + d)

    return (lax.while_loop(lambda s: s[0] < 0.3, step, (0.0, y))[1] ** 2).sum()


def _normal(*shape: int) -> Any:
    return tnp.asarray(0.2 * rng.normal(size=shape))


def solved(m: Any) -> Any:
    return tnp.linalg.solve(m, V).sum()


def solved_by_a_triangle(m: Any) -> Any:
    return tracer.scipy.linalg.solve_triangular(m, M, lower=True).sum()


def factored(m: Any) -> Any:
    return tnp.linalg.cholesky(m).sum()


def likelihood(m: Any) -> Any:
    """Of a normal variable, by its covariances."""
    factor = tnp.linalg.cholesky(m)
    half = tracer.scipy.linalg.solve_triangular(factor, V, lower=True)
    return (half**2).sum() / 2 + tnp.log(tnp.diagonal(factor)).sum()


def inverse(m: Any) -> Any:
    return tnp.linalg.inv(m).sum()


def log_determinant(m: Any) -> Any:
    return tnp.linalg.slogdet(m)[1]


def scanned_affine_maps(x: Any) -> Any:
    return lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x * x))[1].sum()


def running_logarithms(x: Any) -> Any:
    return lax.cumlogsumexp(x).sum()


def running_minimum(x: Any) -> Any:
    return (lax.cummin(x) * V).sum()


def slice_updated_at(x: Any) -> Any:
    return (lax.dynamic_update_slice(x, x[:4] ** 2, (PLACES[0],)) * V).sum()


def greatest_scattered(x: Any) -> Any:
    return x.at[PLACES].max(V[:40]).sum()


def padded_between(x: Any) -> Any:
    return lax.pad(x * x, 0.0, ((1, 2, 1),)).sum()


def middle_value(x: Any) -> Any:
    return tnp.median(x)


def convolved(x: Any) -> Any:
    return (tnp.convolve(x, V[:9]) ** 2).sum()


IMAGES, LABELS = _normal(8, 3, 16, 16), tnp.asarray(rng.integers(0, 10, 8))
A2 = tnp.asarray([[1.0, 0.1], [0.0, 1.0]])
MODELS: list[tuple[Callable[[Any], Any], Any]] = [
    (convolutional, {
        "first": _normal(8, 3, 3, 3), "second": _normal(16, 8, 3, 3), "dense": _normal(16 * 64, 10), "bias": _normal(10)
    }),
    (perceptron, [(_normal(N, N), _normal(N)), (_normal(N, N), _normal(N)), (_normal(N, 4), _normal(4))]),
    (gated_recurrence, {name: _normal(N, 2 * N) for name in ("update", "reset", "new")}),
    (transformer_block, {
        **{name: _normal(N, N) for name in ("q", "k", "v", "out")}, "up": _normal(N, 4 * N), "down": _normal(4 * N, N)
    }),
    (black_scholes, (V, V, tnp.asarray(0.03))),
    (logistic_regression, V),
    (bodies, _normal(16, 3)),
    (kalman, (tnp.asarray(0.01), tnp.asarray(0.3))),
    (ranking, _normal(N)),
    (embedding, {"table": M, "w": _normal(N, N)}),
    (pendulum, tnp.asarray([1.0, 0.0])),
]  # fmt: skip

PROGRAMS: list[tuple[Callable[[Any], Any], Any]] = [
    *((f, V) for f in (
        polynomial, quotient, log_sum_exp, norm, rosenbrock, variance, sorted_weights, running_sum, running_product,
        values_set, values_added, slice_updated, pieces_joined, padded, differences, heat, recurrence, masked,
        greatest_product, branches, outer_products, pairs, newton_steps, elements_in_scan, elements_in_counted_loop,
        elements_in_while_loop, elements_in_branches, elements_in_loops_in_loops, elements_carried, windows_in_loop,
        window, first_elements, product, scanned_affine_maps, running_logarithms, running_minimum, slice_updated_at,
        greatest_scattered, padded_between, middle_value, convolved, correlated,
    )),
    *((f, M) for f in (
        quadratic_form, network, attention, rows_looked_up, convolution, strided_convolution, greatest_of_windows,
        greatest_of_windows_that_meet, greatest_of_each_half, least_of_neighbours, averages_of_windows,
        running_maximum,
    )),
    *((f, M @ M.T + N * tnp.eye(N)) for f in (
        solved, solved_by_a_triangle, factored, likelihood, inverse, log_determinant,
    )),
    (layer_norm, B),
    *MODELS,
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
        return [(e.primitive.name, equation_cost(e).weight) for e in program.equations if equation_cost(e).weight]

    x, m = tnp.ones(32), tnp.ones((32, 8))
    assert weights(lambda x: tnp.sin(x) + x, x) == [("sin", 16 * 32), ("add", 32)]
    assert weights(lambda x, m: x @ m, x, m) == [("dot_general", 2 * 32 * 8)]
    assert weights(lambda x: x.sum(), x) == [("reduce_sum", 32)]
    assert weights(lambda m: m.T.reshape(-1)[3:9], m) == []
    assert weights(lambda x: lax.scan(lambda c, v: (c * v, None), 1.0, x)[0], x) == [("scan", 32)]


@pytest.mark.parametrize(
    ("function", "times"),
    [
        (lambda x: lax.cummax(x).sum(), 6), (lambda x: lax.cummin(x).sum(), 6),
        (lambda x: special.digamma(x).sum(), 7), (lambda x: (tnp.correlate(x, x[:48]) ** 2).sum(), 6),
    ],
    ids=["cummax", "cummin", "digamma", "correlate"],
)  # fmt: skip
def test_what_the_documents_say_of_dearer_derivatives(function: Callable[[Any], Any], times: int) -> None:
    ratio = optimized_flops(tracer.value_and_grad(function), V) / optimized_flops(function, V)
    assert ratio > MOST
    assert round(ratio) <= times
