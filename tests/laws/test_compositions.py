"""Laws of transforms in compositions, by the public functions: against finite differences and stacked calls.

Every function is written once, with loops and branches in it; a composition is checked on every second that it is for,
thoroughly on each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.laws.sampling import THOROUGH
from tests.laws.tolerances import DIFFERENCE
from tracer import lax

Array = np.ndarray[Any, Any]
Function = Callable[[Any], Any]

X = np.array([0.7, -0.4, 1.3])
V = np.array([0.3, 1.1, -0.8])
ROWS = np.stack([X, X[::-1] + 0.1, 0.5 * X - 0.2, X * X])


# Functions of a vector, with a scalar result


def smooth(x: Any) -> Any:
    return tnp.sum(tnp.sin(x) * tnp.exp(x[::-1])) + x[0] * x[1] ** 3


def scans(x: Any) -> Any:
    def step(carry: Any, v: Any) -> Any:
        carry = tnp.tanh(carry * v + 0.5)
        return carry, carry * v

    total, ys = lax.scan(step, tnp.sum(x), x)
    return total * tnp.sum(ys * ys)


def loops(x: Any) -> Any:
    """As many steps as the value takes to pass a limit."""

    def more(state: Any) -> Any:
        return tnp.sum(state[1] ** 2) < 30.0

    def step(state: Any) -> Any:
        count, v = state
        return count + 1, v * 1.5 + tnp.cos(v)

    count, v = lax.while_loop(more, step, (0, x))
    return tnp.sum(tnp.sin(v)) * (1.0 + count)


def counts(x: Any) -> Any:
    return tnp.sum(lax.fori_loop(0, 4, lambda i, v: tnp.sin(v) * (i + 1.0) + v[::-1], x))


def branches(x: Any) -> Any:
    return lax.cond(x[0] > 0.35, lambda v: tnp.sum(v**3), lambda v: tnp.prod(tnp.cos(v)), x)


def switches(x: Any) -> Any:
    index = tnp.argmax(x)
    return lax.switch(index, [lambda v: v[0] * v[1], lambda v: tnp.sum(tnp.exp(v)), lambda v: v[2] ** 2 * v[0]], x)


def sorts(x: Any) -> Any:
    return tnp.dot(tnp.sort(x), tnp.array([1.0, 2.0, 4.0])) * tnp.max(x) + tnp.cumsum(x)[1] ** 2


def gathers(x: Any) -> Any:
    picked = x[tnp.array([2, 0, 2])]
    return tnp.sum(picked.at[1].multiply(3.0) * x) + tnp.sum(tnp.outer(x, picked) @ x)


def calls(x: Any) -> Any:
    inner = tracer.jit(lambda v: (tnp.sin(v), v * v))
    a, b = inner(x)
    return tnp.sum(inner(a)[1] * b)


@tracer.custom_jvp
def cubed(x: Any) -> Any:
    return x**3


cubed.defjvp(lambda primals, tangents: (cubed(primals[0]), 3.0 * primals[0] ** 2 * tangents[0]))


@tracer.custom_vjp
def sine(x: Any) -> Any:
    return tnp.sin(x)


sine.defvjp(lambda x: (tnp.sin(x), x), lambda x, ct: (tnp.cos(x) * ct,))


def has_a_jvp(x: Any) -> Any:
    return tnp.sum(cubed(x) * x)


def has_a_vjp(x: Any) -> Any:
    return tnp.sum(sine(x) * sine(x * x))


FUNCTIONS: list[Function] = [
    smooth, scans, loops, counts, branches, switches, sorts, gathers, calls, has_a_jvp, has_a_vjp,
]  # fmt: skip


def each(turn: int) -> Any:
    """Every second function, from the first or the second on; thoroughly, all."""
    chosen = FUNCTIONS if THOROUGH else FUNCTIONS[turn::2]
    return pytest.mark.parametrize("f", chosen, ids=lambda f: f.__name__)


# Differences and stacks


def value(y: Any) -> Array:
    return np.asarray(y, np.float64)


def along(f: Function, x: Array, v: Array, step: float = 1e-4) -> Array:
    """The derivative of f at x along v, by central differences of fourth order."""

    def at(multiple: float) -> Array:
        return value(f(tnp.asarray(x + multiple * step * v)))

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)


def slopes(f: Function, x: Array) -> Array:
    """All partial derivatives, along a last axis."""
    return np.stack([along(f, x, e) for e in np.eye(len(x))], -1)


def near(got: Any, expected: Array) -> None:
    np.testing.assert_allclose(value(got), expected, rtol=20 * DIFFERENCE, atol=20 * DIFFERENCE)


def equal(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(value(got), value(expected), rtol=1e-11, atol=1e-11)


def stacked(f: Function, rows: Array) -> Array:
    return np.stack([value(f(tnp.asarray(row))) for row in rows])


# First derivatives


@each(0)
def test_grad_is_the_slopes_and_jit_of_it_is_the_same(f: Function) -> None:
    gradient = tracer.grad(f)(X)
    near(gradient, slopes(f, X))
    equal(tracer.jit(tracer.grad(f))(X), gradient)
    equal(tracer.grad(tracer.jit(f))(X), gradient)
    v, same = tracer.value_and_grad(f)(X)
    equal(v, f(tnp.asarray(X)))
    equal(same, gradient)


@each(1)
def test_jvp_is_the_slope_along_a_direction_and_jit_of_it_is_the_same(f: Function) -> None:
    y, slope = tracer.jvp(f, (X,), (V,))
    equal(y, f(tnp.asarray(X)))
    near(slope, along(f, X, V))
    equal(tracer.jit(lambda x, v: tracer.jvp(f, (x,), (v,))[1])(X, V), slope)
    equal(tracer.linearize(f, X)[1](tnp.asarray(V)), slope)
    equal(tnp.dot(tracer.grad(f)(X), V), slope)


@each(0)
def test_vmap_is_the_stack_of_calls_under_jit_too(f: Function) -> None:
    expected = stacked(f, ROWS)
    equal(tracer.vmap(f)(ROWS), expected)
    equal(tracer.jit(tracer.vmap(f))(ROWS), expected)
    equal(tracer.vmap(tracer.jit(f))(ROWS), expected)
    equal(tracer.vmap(f, in_axes=1)(ROWS.T.copy()), expected)


# Second derivatives


@each(1)
def test_grad_of_grad(f: Function) -> None:
    through = lambda x: tnp.dot(tracer.grad(f)(x), V)  # noqa: E731
    expected = slopes(tracer.grad(f), X).T @ V
    near(tracer.grad(through)(X), expected)
    equal(tracer.jit(tracer.grad(through))(X), tracer.grad(through)(X))


@each(0)
def test_jvp_of_grad(f: Function) -> None:
    expected = along(tracer.grad(f), X, V)
    near(tracer.jvp(tracer.grad(f), (X,), (V,))[1], expected)
    near(tracer.jit(lambda x: tracer.jvp(tracer.grad(f), (x,), (V,))[1])(X), expected)


@each(1)
def test_grad_of_jvp(f: Function) -> None:
    pushed = lambda x: tracer.jvp(f, (x,), (tnp.asarray(V),))[1]  # noqa: E731
    near(tracer.grad(pushed)(X), along(tracer.grad(f), X, V))


@each(0)
def test_jvp_of_jvp(f: Function) -> None:
    pushed = lambda x: tracer.jvp(f, (x,), (tnp.asarray(V),))[1]  # noqa: E731
    near(tracer.jvp(pushed, (X,), (V,))[1], along(pushed, X, V))


@each(1)
def test_hessians_are_symmetric_and_the_slopes_of_the_gradient(f: Function) -> None:
    hessian = value(tracer.hessian(f)(X))
    near(hessian, slopes(tracer.grad(f), X))
    equal(hessian, hessian.T)


# With vmap and jit


@each(0)
def test_vmap_of_grad_of_jit(f: Function) -> None:
    equal(tracer.vmap(tracer.grad(tracer.jit(f)))(ROWS), stacked(tracer.grad(f), ROWS))


@each(1)
def test_jit_of_vmap_of_grad(f: Function) -> None:
    equal(tracer.jit(tracer.vmap(tracer.grad(f)))(ROWS), stacked(tracer.grad(f), ROWS))


@each(0)
def test_grad_of_vmap(f: Function) -> None:
    total = lambda rows: tnp.sum(tracer.vmap(f)(rows) * tnp.arange(1.0, 5.0))  # noqa: E731
    equal(tracer.grad(total)(ROWS), stacked(tracer.grad(f), ROWS) * np.arange(1.0, 5.0)[:, None])


@each(1)
def test_jit_of_vmap_of_jvp(f: Function) -> None:
    pushed = lambda x: tracer.jvp(f, (x,), (tnp.asarray(V),))[1]  # noqa: E731
    equal(tracer.jit(tracer.vmap(pushed))(ROWS), stacked(pushed, ROWS))


@each(0)
def test_vmap_of_hessian(f: Function) -> None:
    equal(tracer.vmap(tracer.hessian(f))(ROWS), stacked(tracer.hessian(f), ROWS))


@each(1)
def test_vmap_of_vmap(f: Function) -> None:
    cube = np.stack([ROWS, ROWS + 0.25])
    equal(tracer.vmap(tracer.vmap(f))(cube), np.stack([stacked(f, rows) for rows in cube]))


# Named by what was promised


def test_jit_of_vmap_of_the_forward_gradient_of_a_while_loop() -> None:
    gradient = tracer.jacfwd(loops)
    near(tracer.jit(tracer.vmap(gradient))(ROWS), np.stack([slopes(loops, row) for row in ROWS]))


def test_vmap_of_cond_with_a_batched_predicate_selects_lane_by_lane() -> None:
    rows = np.stack([X, -X, X + 1, -X - 1])
    assert len({bool(row[0] > 0.35) for row in rows}) == 2
    equal(tracer.vmap(branches)(rows), stacked(branches, rows))
    equal(tracer.vmap(tracer.grad(branches))(rows), stacked(tracer.grad(branches), rows))


def test_vmap_of_cond_with_one_predicate_for_all_lanes_stays_a_branch() -> None:
    chosen = lambda p, x: lax.cond(p, tnp.sin, tnp.cos, x)  # noqa: E731
    for p in (True, False):
        equal(tracer.vmap(chosen, in_axes=(None, 0))(p, X), np.sin(X) if p else np.cos(X))
    text = str(tracer.make_program(tracer.vmap(chosen, in_axes=(None, 0)))(True, X))
    assert "cond(" in text


def test_an_inner_derivative_does_not_confuse_its_perturbation_with_an_outer_one() -> None:
    """d/dx [x d/dy (x + y)] is 1, not 2: Siskind & Pearlmutter 2005."""
    for outer in (tracer.grad, lambda f: lambda x: tracer.jvp(f, (x,), (1.0,))[1]):
        for inner in (tracer.grad, lambda f: lambda y: tracer.jvp(f, (y,), (1.0,))[1]):
            equal(outer(lambda x, inner=inner: x * inner(lambda y, x=x: x + y)(1.0))(1.0), np.float64(1.0))
