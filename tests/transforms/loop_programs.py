"""More programs that the transforms are combined over: loops and branches in each other, as people write them.

Conditions read elements and trees, steps read and write elements, carries are of many dtypes, weak ones among them, and
bodies call functions with rules, checkpoints, and other loops.
"""

from __future__ import annotations

from typing import Any

import tracer
import tracer.numpy as tnp
from tests.transforms.programs import MATRIX, SCALAR, TREE, VECTOR, A, Example, log1pexp, scaled_sine
from tracer import lax
from tracer.ad_checkpoint import checkpoint_name

STEPS = tnp.asarray([0.5, 1.5, 0.8])


def until_one_element_is_large(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 3.0, lambda c: 1.2 * c + 0.4 * tnp.cos(c[::-1] * x), x)


def until_another_than_grows(x: Any) -> Any:
    """The element that ends the loop moves with the others; the number of steps depends on the point alone."""
    step = lambda c: tnp.sin(c[[1, 2, 0]]) + tnp.stack([x[0], 0.7, 1.1 * c[2]])  # noqa: E731
    return lax.while_loop(lambda c: c.sum() < 3.0 + x[0], lambda c: c + 0.5 * tnp.abs(step(c)), x)


def while_over_trees(p: Any) -> Any:
    def more(state: Any) -> Any:
        return (state["n"][0] < 4) & (state["v"]["a"][0] < 5.0)

    def step(state: Any) -> Any:
        a, b = state["v"]["a"], state["v"]["b"]
        return {"n": (state["n"][0] + 1,), "v": {"a": tnp.tanh(p["w"] @ b) + a, "b": 0.9 * b + p["b"][0]}, "none": None}

    start = {"n": (0,), "v": {"a": p["b"][1], "b": p["w"][0]}, "none": None}
    return lax.while_loop(more, step, start)["v"]


def elements_one_by_one(x: Any) -> Any:
    """A recurrence that reads two elements and writes a third."""
    return lax.fori_loop(1, 3, lambda i, c: c.at[i].set(tnp.sin(c[i - 1]) * x[i] + c[i]), tnp.asarray(x))


def elements_of_rows(m: Any) -> Any:
    def step(i: Any, total: Any) -> Any:
        row = lax.dynamic_index_in_dim(m, i, keepdims=False)
        return total.at[i, i].add(row @ row).at[1 - i].multiply(tnp.cos(row[0]))

    return lax.fori_loop(0, 2, step, tnp.sin(m))


def sieve(x: Any) -> Any:
    """Elements are exchanged as their order asks: a bubble sort that ends when nothing moved."""

    def sweep(state: Any) -> Any:
        def exchanged(i: Any, s: Any) -> Any:
            v, count = s
            swap = v[i] > v[i + 1]
            pair = tnp.where(swap, lax.dynamic_slice(v, (i,), (2,))[::-1], lax.dynamic_slice(v, (i,), (2,)))
            return lax.dynamic_update_slice(v, pair, (i,)), count + swap.astype(count.dtype)

        return lax.fori_loop(0, 2, exchanged, (state[0], 0 * state[1]))

    return lax.while_loop(lambda s: s[1] > 0, sweep, (x * x, tnp.asarray(1, "int32")))[0] * STEPS


def carries_of_every_kind(x: Any) -> Any:
    """Integers, a bool, a weak number, single precision and complex numbers beside the values that move."""

    def step(c: Any, s: Any) -> Any:
        k, odd, weak, single, z, v = c
        v = v * weak + tnp.where(odd, s, single.astype(float)) * x
        z = z * (0.5 + 0.1j) + v[0]
        new = (k + 1, ~odd, weak * 0.5, single + 1, z, tnp.sin(v) + z.imag)
        return new, (k * s, z.real)

    start = (0, False, 1.0, tnp.asarray(0.25, "float32"), 1j + x[1], x)
    (_, _, weak, _, z, v), ys = lax.scan(step, start, STEPS)
    return v * weak, abs(z), ys


def while_in_scan_in_branch_in_loop(x: Any) -> Any:
    def settled(v: Any, s: Any) -> Any:
        end = lax.while_loop(lambda c: c[1][0] < 1.7, lambda c: (c[0] * 0.8 + s, c[1] + tnp.abs(x) + 0.2), (v, 0.0 * v))
        return end[0], end[1].sum()

    def step(i: Any, v: Any) -> Any:
        return lax.cond(i == 1, lambda u: u * x, lambda u: lax.scan(settled, u, STEPS[:2])[0], v)

    return lax.fori_loop(0, 3, step, x)


def rules_in_while_in_scan(x: Any) -> Any:
    def settled(v: Any, s: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, log1pexp(c[1]) * s - x), (0, v))[1], v[0]

    return lax.scan(settled, x, STEPS, reverse=True)


def reverse_rules_in_branches_in_while(x: Any) -> Any:
    def step(c: Any) -> Any:
        return c[0] + 1, lax.cond(c[0] % 2 == 0, lambda v: scaled_sine(v, x[0]), lambda v: 0.5 * v + x, c[1])

    return lax.while_loop(lambda c: c[0] < 3, step, (0, x))[1]


def checkpoints_in_loops_in_checkpoints(x: Any) -> Any:
    policy = tracer.checkpoint_policies.dots_with_no_batch_dims_saveable
    inner = tracer.checkpoint(lambda c, s: (tnp.sin(A @ c) * s, c.sum()), policy=policy)

    @tracer.checkpoint
    def outer(v: Any) -> Any:
        twice = lambda i, c: lax.scan(inner, c, STEPS[:2] + v[0])[0]  # noqa: E731
        return lax.fori_loop(0, 2, twice, v)

    return outer(x)


def kept_names_in_loops(x: Any) -> Any:
    policy = tracer.checkpoint_policies.save_only_these_names("h")

    def step(c: Any, s: Any) -> Any:
        h = checkpoint_name(tnp.sin(A @ c), "h")
        return lax.cond(s > 0.6, lambda v: v * tnp.cos(h), lambda v: v + h, c), None

    settle = lambda v: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, lax.scan(step, c[1], STEPS)[0]), (0, v))  # noqa: E731
    return tracer.checkpoint(lambda v: settle(v)[1], policy=policy)(x)


def empty_and_absent(x: Any) -> Any:
    """Carries and rows without leaves, and without elements."""

    def step(c: Any, s: Any) -> Any:
        nothing, moved, (none,) = c
        return (nothing * 2.0, moved * s + nothing.sum(), (none,)), ((), None, nothing)

    (nothing, y, _), ys = lax.scan(step, (tnp.zeros((0, 2)), x, (None,)), STEPS)
    end = lax.cond(x[0] > 0, lambda t: t, lambda t: t, {"y": y, "none": None, "nothing": nothing})
    return end["y"], lax.while_loop(lambda t: t[0] < 1, lambda t: (t[0] + 1, (), t[2] * x), (0, (), x))[2], ys[0]


def lanes_of_loops_of_lanes(m: Any) -> Any:
    """Batches within loops within batches: each row as long as it wants, its elements, too."""

    def element(v: Any, u: Any) -> Any:
        return lax.while_loop(lambda c: c < 2.0, lambda c: c * 1.5 + 0.3 * u * u, tnp.abs(v) + 0.3)

    def row(r: Any) -> Any:
        step = lambda c: (c[0] + 0.5 * tracer.vmap(element)(c[0], r) / 5.0, c[1] + 1)  # noqa: E731
        return lax.while_loop(lambda c: (c[0].sum() < 2.5) & (c[1] < 6), step, (r, 0))[0]

    return tracer.vmap(row)(m)


def collectives_in_loops(m: Any) -> Any:
    def lane(r: Any) -> Any:
        def step(c: Any, s: Any) -> Any:
            shared = lax.pmean(tnp.sin(c), "i") + lax.ppermute(c, "i", [(0, 1), (1, 0)]) * s
            return shared * r, lax.axis_index("i") * shared.sum()

        last, ys = lax.scan(step, r, STEPS[:2])
        return lax.fori_loop(0, 2, lambda i, v: v * lax.psum(v, "i") * 0.2 + last, r), ys

    return tracer.vmap(lane, axis_name="i")(m)


def gradient_within_loop(x: Any) -> Any:
    """Gradient descent, as a loop, on a loss that is a loop."""

    def loss(v: Any) -> Any:
        return lax.scan(lambda c, s: (tnp.sin(c * s) + v, None), v, STEPS)[0] @ x

    return lax.while_loop(lambda c: c[1] < 2, lambda c: (c[0] - 0.1 * tracer.grad(loss)(c[0]), c[1] + 1), (x, 0))[0]


def tangents_within_scan(x: Any) -> Any:
    f = lambda v: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, tnp.sin(c[1]) * x), (0, v))[1]  # noqa: E731

    def step(c: Any, s: Any) -> Any:
        y, dy = tracer.jvp(f, (c,), (s * c,))
        _, pull = tracer.vjp(f, y)
        return y + dy, pull(dy)[0].sum()

    return lax.scan(step, x, STEPS[:2])


def transposed_within_loop(x: Any) -> Any:
    """A linear loop with factors that are computed beside it, run backwards."""

    def linear(s: Any) -> Any:
        step = lambda c: (c[0] + 1, tnp.sin(c[1]) + 1.0, c[2] * c[1] + s)  # noqa: E731
        return lax.while_loop(lambda c: c[0] < 3, step, (0, x, s))[2]

    return lax.fori_loop(0, 2, lambda i, v: tracer.linear_transpose(linear, v)(0.3 * v)[0], x)


def switch_of_loops(x: Any) -> Any:
    branches = [
        lambda v: lax.fori_loop(0, 2, lambda i, c: c * x, v),
        lambda v: lax.while_loop(lambda c: c[0] < 2.0, lambda c: c + tnp.abs(x) + 0.1, v),
        lambda v: lax.scan(lambda c, s: (c * s, c), v, STEPS)[0],
    ]
    step = lambda c, n: (lax.switch(n, branches, c), c.sum())  # noqa: E731
    return lax.scan(step, x, tnp.asarray([2, 0, 1, 7], "int32"))


def scalar_ode(x: Any) -> Any:
    """Steps of adaptive length, kept between bounds, until a time is reached."""

    def step(state: Any) -> Any:
        t, y, h = state
        slope = tnp.sin(y) + t * x
        h = tnp.clip(0.6 / (1.0 + tnp.abs(slope)), 0.2, 0.5)
        h = tnp.minimum(h, 1.0 - t)
        return t + h, y + h * slope, h

    return lax.while_loop(lambda s: s[0] < 1.0 - 1e-9, step, (0.0 * x, x, 0.1))[1]


LOOPS = [
    Example(until_one_element_is_large, VECTOR), Example(until_another_than_grows, VECTOR),
    Example(while_over_trees, TREE), Example(elements_one_by_one, VECTOR), Example(elements_of_rows, MATRIX),
    Example(sieve, VECTOR), Example(carries_of_every_kind, VECTOR), Example(while_in_scan_in_branch_in_loop, VECTOR),
    Example(rules_in_while_in_scan, VECTOR), Example(reverse_rules_in_branches_in_while, VECTOR, forward=False),
    Example(checkpoints_in_loops_in_checkpoints, VECTOR), Example(kept_names_in_loops, VECTOR),
    Example(empty_and_absent, VECTOR), Example(lanes_of_loops_of_lanes, MATRIX), Example(collectives_in_loops, MATRIX),
    Example(gradient_within_loop, VECTOR), Example(tangents_within_scan, VECTOR),
    Example(transposed_within_loop, VECTOR), Example(switch_of_loops, VECTOR), Example(scalar_ode, SCALAR),
]  # fmt: skip
