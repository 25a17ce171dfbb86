"""Programs that the transforms are combined over: smooth at their points, of one argument, which is a tree.

Each is a Python function as a user writes it: loops, branches, closures, custom rules, indices, complex numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer import lax

A = tnp.asarray([[0.9, -0.3, 0.2], [0.1, 1.1, -0.4], [0.5, 0.2, 0.8]])
TABLE = tnp.asarray([0.5, -1.5, 2.0, 0.25])
SCALAR = 0.7
VECTOR = np.asarray([0.3, 1.2, -0.6])
MATRIX = np.asarray([[0.4, -0.2, 0.9], [1.1, 0.6, -0.5]])
TREE = {"w": MATRIX, "b": (np.asarray(0.3), np.asarray([0.2, -0.4]))}
COMPLEX = np.asarray([0.4 + 0.3j, -0.2 + 0.8j])


class Example(NamedTuple):
    """A program and its point. forward: whether it has a forward derivative of its own."""

    function: Callable[[Any], Any]
    point: Any
    forward: bool = True


# Straight lines


def polynomial(x: Any) -> Any:
    return x**3 - 2.0 * x * x + x / (1.0 + x * x)


def elementary(x: Any) -> Any:
    return tnp.exp(-x) * tnp.sin(2.0 * x) + tnp.log1p(x * x) + tnp.sqrt(1.0 + x * x) - tnp.arctan2(x, 2.0)


def softmax(x: Any) -> Any:
    return tnp.exp(x - lax.stop_gradient(x.max())) / tnp.exp(x - lax.stop_gradient(x.max())).sum()


def logsumexp(x: Any) -> Any:
    return tnp.log(tnp.exp(A @ x).sum())


def network(p: Any) -> Any:
    hidden = tnp.tanh(p["w"] @ VECTOR + p["b"][1])
    return {"y": hidden * p["b"][0], "loss": (hidden**2).sum()}


def quadratic(x: Any) -> Any:
    return x @ A @ x


def products(m: Any) -> Any:
    return m @ A @ m.T


def outer(x: Any) -> Any:
    return tnp.einsum("i,j,ij->ij", x, x, A)


def normalised(m: Any) -> Any:
    centred = m - m.mean(axis=1, keepdims=True)
    return centred / tnp.sqrt((centred**2).mean(axis=1, keepdims=True) + 0.1)


def products_of_elements(x: Any) -> Any:
    return tnp.prod(x) * x.sum(), x.prod(keepdims=True)


def distances(m: Any) -> Any:
    difference = m[:, None, :] - m[None, :, :]
    return tnp.sqrt((difference**2).sum(-1) + 0.5)


def powers(x: Any) -> Any:
    return (1.5 + x * x) ** tnp.sin(x), tnp.float_power(2.0, x)


# Order, prefixes, places


def sorted_sum(x: Any) -> Any:
    return tnp.sort(x**2) * tnp.arange(1.0, 4.0)


def sorted_by_key(x: Any) -> Any:
    return x[tnp.argsort(tnp.sin(x))] * TABLE[:3]


def largest(x: Any) -> Any:
    return x.max() * x.min() + tnp.abs(x).max()


def prefixes(x: Any) -> Any:
    return tnp.cumsum(x) * tnp.cumprod(1.0 + x * x), lax.cummax(x), lax.cumlogsumexp(x)


def gathered(x: Any) -> Any:
    return x[tnp.asarray([2, 0, 0, -1])] * TABLE


def table_lookup(x: Any) -> Any:
    place = (x.sum() > 0).astype(int) + 1
    return TABLE[place] * x + tnp.take(x, place)


def scattered(x: Any) -> Any:
    return tnp.zeros(4).at[tnp.asarray([1, 3, 1])].add(tnp.sin(x)).at[0].set(x[1])


def scattered_product(x: Any) -> Any:
    return TABLE.at[tnp.asarray([0, 2])].multiply(x[:2])


def updated(x: Any) -> Any:
    y = x.copy()
    y[1] = x[0] * x[2]
    y[0] += y[1]
    return y


def sliced_dynamically(m: Any) -> Any:
    row = (m.sum() > 0).astype(int)
    part = lax.dynamic_slice(m, (row, 0), (1, 2))
    return lax.dynamic_update_slice(m * m, tnp.sin(part), (0, row))


def padded(x: Any) -> Any:
    return lax.pad(x, 0.5, [(1, 2, 1)]) * tnp.concatenate([x, x[::-1], x[:2]])


def chosen(x: Any) -> Any:
    return tnp.where(x > 0, tnp.exp(-x), x * x + 1.0)


def windows(x: Any) -> Any:
    return lax.conv(x[None, None], TABLE[None, None, :2], (1,), "SAME") ** 2


# Loops and branches


def branch(x: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda v: tnp.sin(v) * v, lambda v: v**2, x)


def branch_untaken(x: Any) -> Any:
    return lax.cond(x.sum() > 100, tnp.log, lambda v: v * A[0], x)


def switched(x: Any) -> Any:
    return lax.switch((x[1] > 0).astype(int), [lambda v: v, lambda v: v * tnp.cos(v), lambda v: 2.0 * v], x)


def scanned(x: Any) -> Any:
    return lax.scan(lambda c, v: (tnp.sin(c) + v, c * v), 0.5, x)


def scanned_backwards(m: Any) -> Any:
    last, ys = lax.scan(lambda c, row: (c * row + 0.1, {"c": c.sum()}), VECTOR, m, reverse=True)
    return last, ys["c"]


def recurrence(p: Any) -> Any:
    def step(h: Any, _: None) -> Any:
        return tnp.tanh(p["w"] @ tnp.append(h, p["b"][0]) + p["b"][1]), None

    return lax.scan(step, p["b"][1], length=3)[0]


def counted(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, v: v * x + TABLE[i], x)


def counted_by_value(x: Any) -> Any:
    steps = 2 + (x[0] > 0).astype(int)
    return lax.fori_loop(0, steps, lambda i, v: tnp.sin(v) * x, x)


def newton(x: Any) -> Any:
    target = 1.0 + x * x

    def step(state: Any) -> Any:
        return 0.5 * (state[0] + target / state[0]), state[0]

    return lax.while_loop(lambda s: tnp.abs(s[0] - s[1]) > 1e-13, step, (target, 0.0 * target))[0]


def decay(x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, 0.9 * tnp.sin(s[1]) + x), (0, x))[1]


def loop_in_loop(x: Any) -> Any:
    def inner(v: Any) -> Any:
        return lax.while_loop(lambda s: s[1] < 2, lambda s: (tnp.cos(s[0]) * x, s[1] + 1), (v, 0))[0]

    return lax.scan(lambda c, s: (inner(c) * s, c.sum()), x, TABLE[:2])


def branch_in_loop(x: Any) -> Any:
    def step(i: Any, v: Any) -> Any:
        return lax.cond(i % 2 == 0, lambda: tnp.sin(v) + x, lambda: v * x)

    return lax.fori_loop(0, 3, step, x)


def all_prefixes(x: Any) -> Any:
    return lax.associative_scan(lambda a, b: a * b + 0.1 * (a + b), 1.0 + x * x)


def mapped(m: Any) -> Any:
    return lax.map(lambda row: tnp.sin(row).sum() * row, m)


def mapped_in_batches(x: Any) -> Any:
    return lax.map(lambda v: v**3, x, batch_size=2)


# Custom rules, checkpoints, closures


@tracer.custom_jvp
def log1pexp(x: Any) -> Any:
    return tnp.log1p(tnp.exp(x))


@log1pexp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return log1pexp(primals[0]), tangents[0] / (1.0 + tnp.exp(-primals[0]))


def with_custom_jvp(x: Any) -> Any:
    return log1pexp(x) * x


@tracer.custom_vjp
def scaled_sine(x: Any, scale: Any) -> Any:
    return scale * tnp.sin(x)


scaled_sine.defvjp(
    lambda x, scale: (scale * tnp.sin(x), (x, scale)),
    lambda r, g: (g * r[1] * tnp.cos(r[0]), (g * tnp.sin(r[0])).sum()),
)


def with_custom_vjp(x: Any) -> Any:
    return scaled_sine(x, x[0]) + x


@tracer.custom_gradient
def cubed(x: Any) -> Any:
    return x**3, lambda g: g * 3.0 * x**2


def with_custom_gradient(x: Any) -> Any:
    return cubed(x) * A[1]


def implicit(x: Any) -> Any:
    """A fixed point with a rule that loops itself."""

    @tracer.custom_jvp
    def solve(a: Any) -> Any:
        return lax.while_loop(lambda s: s[1] < 60, lambda s: (0.5 * tnp.cos(s[0]) + a, s[1] + 1), (a, 0))[0]

    @solve.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        y = solve(primals[0])
        return y, tangents[0] / (1.0 + 0.5 * tnp.sin(y))

    return solve(x)


def checkpointed(x: Any) -> Any:
    return tracer.checkpoint(lambda v: tnp.sin(A @ tnp.sin(A @ v)))(x)


def checkpointed_scan(x: Any) -> Any:
    step = tracer.checkpoint(lambda c, v: (tnp.sin(A @ c) + v, None), policy=tracer.checkpoint_policies.dots_saveable)
    return lax.scan(step, x, x)[0]


def jitted(x: Any) -> Any:
    inner = tracer.jit(lambda v, s: tnp.sin(v) * s)
    return inner(inner(x, 2.0), x)


def closed_over(x: Any) -> Any:
    """An inner function over outer tracers, mapped and differentiated."""
    return tracer.vmap(lambda row: row @ x)(A) + tracer.grad(lambda v: (v**3 * x).sum())(x)


def inner_jvp(x: Any) -> Any:
    return tracer.jvp(lambda v: tnp.sin(v) * x, (x,), (x * x,))[1]


def collective(m: Any) -> Any:
    return tracer.vmap(lambda row: row / lax.psum(tnp.exp(row), "i") - lax.pmean(row, "i"), axis_name="i")(m)


def shifted_lanes(m: Any) -> Any:
    return tracer.vmap(lambda row: row * lax.ppermute(row, "i", [(0, 1), (1, 0)]), axis_name="i")(m)


# Callbacks, keys, sets of lanes, nested trees


def through_numpy(x: Any) -> Any:
    """A function of NumPy, which has the derivative that it is given, by NumPy too."""

    @tracer.custom_jvp
    def sine(v: Any) -> Any:
        return tracer.pure_callback(np.sin, v, v, vmap_method="broadcast_all")

    def cosine(v: Any) -> Any:
        return sine(v + 0.5 * np.pi)

    sine.defjvp(lambda primals, tangents: (sine(*primals), cosine(*primals) * tangents[0]))
    return sine(x) * x


def lanes_that_stop(m: Any) -> Any:
    """Every row is halved until it is small: each in its own number of steps."""

    def row(v: Any) -> Any:
        return lax.while_loop(lambda s: (s[0] ** 2).sum() > 0.1, lambda s: (0.5 * tnp.sin(s[0]), s[1] + v), (v, v))[1]

    return tracer.vmap(row)(m)


def lanes_that_part(x: Any) -> Any:
    return tracer.vmap(lambda v: lax.cond(v > 0, lambda u: tnp.log(u) * x, lambda u: tnp.exp(u) + x, v))(x)


def noise(x: Any) -> Any:
    key = tracer.random.key(0)
    draws = tracer.random.normal(key, x.shape)
    return x * draws + tracer.random.uniform(tracer.random.fold_in(key, 1), x.shape, minval=0.5) ** x


def scan_of_trees(p: Any) -> Any:
    def step(carry: Any, u: Any) -> Any:
        h = tnp.tanh(p["w"].T @ carry["h"] * u)[:2]
        return {"h": h, "none": None, "t": (carry["t"][0] + 1,)}, {"y": h.sum(), "none": None}

    start = {"h": p["b"][1], "none": None, "t": (0,)}
    last, ys = lax.scan(step, start, TABLE[:2] * p["b"][0], reverse=True, unroll=2)
    return last["h"], ys["y"]


def switch_in_while(x: Any) -> Any:
    branches = [lambda v: tnp.sin(v) + x, lambda v: v * tnp.cos(x), lambda v: v / (1.0 + v * v)]
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, lax.switch(s[0], branches, s[1])), (0, x))[1]


def while_in_scan_in_cond(x: Any) -> Any:
    def grown(c: Any, v: Any) -> Any:
        end = lax.while_loop(lambda s: s.sum() < 4.0, lambda s: 1.3 * s + 0.2 * x * x, 1.0 + c * c)
        return tnp.sin(end) * v, end.sum()

    return lax.cond(x[0] > 0, lambda v: lax.scan(grown, v, TABLE[:2]), lambda v: (v, TABLE[:2]), x)


def checkpointed_while(x: Any) -> Any:
    @tracer.checkpoint
    def settle(v: Any) -> Any:
        return lax.while_loop(lambda s: s[1] < 3, lambda s: (tnp.cos(s[0] * v), s[1] + 1), (v, 0))[0]

    return settle(settle(x))


def limited_while(x: Any) -> Any:
    """A loop that keeps little, and runs again what it needs."""
    step = lambda s: (s[0] + 1, s[1] + 0.1 * tnp.sin(s[1] * x))  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 12, step, (0, x), memory=100)[1]


def scan_with_prefixes(m: Any) -> Any:
    """A linear recurrence by associative_scan, its transitions from another scan."""
    rates = lax.scan(lambda c, row: (tnp.tanh(c + row), c), VECTOR, m)[1]

    def compose(a: Any, b: Any) -> Any:
        return a[0] * b[0], b[0] * a[1] + b[1]

    return lax.associative_scan(compose, (rates, m), reverse=True)


def integer_counts(x: Any) -> Any:
    """Integers and booleans between: how many are positive, where the greatest is, which bits are set."""
    positive = (x > 0).sum()
    bits = tnp.bitwise_and(tnp.arange(3), positive)
    return x * positive + x[tnp.argmax(x)] * bits + tnp.where(bits == 0, x**2, x)


def scattered_extremes(x: Any) -> Any:
    places = tnp.asarray([0, 1, 0])
    return TABLE[:2].at[places].max(x), TABLE[:2].at[places].min(x * x), tracer.ops.segment_sum(x**2, places, 2)


def strided(m: Any) -> Any:
    y = m[:, ::-2].at[0].multiply(m[1, :2])
    z = lax.dynamic_slice(m, (m[0, 0] > 0).astype(int)[None].repeat(2), (1, 2))
    return tnp.roll(y, 1, axis=1), lax.reduce_window(m, 0.0, lax.add, (1, 2), (1, 1), "VALID"), z


def custom_rule_in_loop(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, v: log1pexp(v) * x, x)


def reverse_rule_in_scan(x: Any) -> Any:
    return lax.scan(lambda c, v: (scaled_sine(c, v), c), x, TABLE[:2])


def inner_gradient(x: Any) -> Any:
    """A step of descent, and a Newton step beside it."""
    loss = lambda v: (tnp.log1p(v * v) * x).sum() + (v**4).sum()  # noqa: E731
    curvature = tracer.hessian(loss)(x) + 10.0 * tnp.eye(3)
    return x - 0.1 * tracer.grad(loss)(x), curvature @ x


def batched_rule(x: Any) -> Any:
    product = tracer.custom_batching.sequential_vmap(lambda a, b: tnp.sin(a) * b)
    return tracer.vmap(product)(x, TABLE[:3])


# Complex numbers


def complex_to_real(z: Any) -> Any:
    return tnp.abs(z**2 + 0.5) + tnp.angle(z + 2.0) + z.real * z.imag


def complex_to_complex(z: Any) -> Any:
    return tnp.exp(z) * z.conj() + tnp.sqrt(z + 3.0)


def complex_scan(z: Any) -> Any:
    return lax.scan(lambda c, v: (c * v + 0.1j, abs(c)), z[0], z)


def complex_while(z: Any) -> Any:
    step = lambda s: (s[0] ** 2 + z, s[1] + 1)  # noqa: E731
    return lax.while_loop(lambda s: (s[1] < 3) & (abs(s[0]).max() < 2.0), step, (z, 0))[0]


def through_complex(x: Any) -> Any:
    z = lax.complex(tnp.sin(x), x * x)
    return (z * z).real + tnp.abs(z + 2.0)


def _steep(x: Any) -> Any:
    """A matrix that is far from singular."""
    return tnp.outer(tnp.sin(x), x) + 3 * tnp.eye(3)


def solved(x: Any) -> Any:
    return tnp.linalg.solve(_steep(x), tnp.cos(x))


def determined(x: Any) -> Any:
    big = tnp.pad(_steep(x), ((0, 1), (0, 1)), constant_values=0.5)
    return tnp.linalg.slogdet(big)[1] + tnp.linalg.det(big) + tnp.linalg.det(_steep(x))


def factored(x: Any) -> Any:
    factor = tnp.linalg.cholesky(_steep(x) @ _steep(x).T)
    return lax.linalg.triangular_solve(factor, x, left_side=True, lower=True, transpose_a=True)


def factors_in_loop(x: Any) -> Any:
    return lax.fori_loop(0, 2, lambda i, v: tnp.sin(lax.linalg.lu(_steep(v))[0] @ v), x)


def linear_by_hand(x: Any) -> Any:
    def solve(matvec: Any, b: Any) -> Any:
        return lax.fori_loop(0, 60, lambda i, v: v + (b - matvec(v)) / 4, b)

    matrix = _steep(x)
    return lax.custom_linear_solve(lambda v: matrix @ v, tnp.cos(x), solve, solve)


def complex_solved(z: Any) -> Any:
    return tnp.linalg.inv(tnp.outer(z, z.conj()) + 3 * tnp.eye(z.size)) @ tnp.exp(z)


PROGRAMS = [
    Example(polynomial, SCALAR), Example(elementary, VECTOR), Example(softmax, VECTOR), Example(logsumexp, VECTOR),
    Example(network, TREE), Example(quadratic, VECTOR), Example(products, MATRIX), Example(outer, VECTOR),
    Example(normalised, MATRIX), Example(products_of_elements, VECTOR), Example(distances, MATRIX),
    Example(powers, SCALAR), Example(sorted_sum, VECTOR), Example(sorted_by_key, VECTOR), Example(largest, VECTOR),
    Example(prefixes, VECTOR), Example(gathered, VECTOR), Example(table_lookup, VECTOR),
    Example(scattered, VECTOR), Example(scattered_product, VECTOR), Example(updated, VECTOR),
    Example(sliced_dynamically, MATRIX), Example(padded, VECTOR), Example(chosen, VECTOR),
    Example(windows, VECTOR), Example(branch, VECTOR), Example(branch_untaken, VECTOR), Example(switched, VECTOR),
    Example(scanned, VECTOR), Example(scanned_backwards, MATRIX), Example(recurrence, TREE),
    Example(counted, VECTOR), Example(counted_by_value, VECTOR), Example(newton, SCALAR), Example(decay, VECTOR),
    Example(loop_in_loop, VECTOR), Example(branch_in_loop, VECTOR), Example(all_prefixes, VECTOR),
    Example(mapped, MATRIX), Example(mapped_in_batches, VECTOR), Example(with_custom_jvp, VECTOR),
    Example(with_custom_vjp, VECTOR, forward=False), Example(with_custom_gradient, VECTOR, forward=False),
    Example(implicit, SCALAR), Example(checkpointed, VECTOR), Example(checkpointed_scan, VECTOR),
    Example(jitted, VECTOR), Example(closed_over, VECTOR), Example(inner_jvp, VECTOR), Example(collective, MATRIX),
    Example(shifted_lanes, MATRIX), Example(through_numpy, VECTOR), Example(lanes_that_stop, MATRIX),
    Example(lanes_that_part, VECTOR), Example(noise, VECTOR), Example(scan_of_trees, TREE),
    Example(switch_in_while, VECTOR),
    Example(while_in_scan_in_cond, VECTOR), Example(checkpointed_while, VECTOR),
    Example(limited_while, VECTOR), Example(scan_with_prefixes, MATRIX), Example(integer_counts, VECTOR),
    Example(scattered_extremes, VECTOR), Example(strided, MATRIX), Example(custom_rule_in_loop, VECTOR),
    Example(reverse_rule_in_scan, VECTOR, forward=False), Example(inner_gradient, VECTOR),
    Example(batched_rule, VECTOR), Example(complex_scan, COMPLEX), Example(complex_while, COMPLEX),
    Example(solved, VECTOR), Example(determined, VECTOR), Example(factored, VECTOR),
    Example(factors_in_loop, VECTOR), Example(linear_by_hand, VECTOR), Example(complex_solved, COMPLEX),
    Example(complex_to_real, COMPLEX), Example(complex_to_complex, COMPLEX), Example(through_complex, VECTOR),
]  # fmt: skip
