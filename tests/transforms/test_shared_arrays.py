"""Arrays that all lanes share have the gradients of the lanes that live, whatever dead lanes would divide by.

Every function divides by zero, takes the logarithm of zero, or overflows where a lane is done or took another branch.
What decides is the sum over lanes of the function's own derivative, which runs one branch and stops in time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, lax, vmap
from tracer.ir.types import StackType
from tracer.ir.visit import equations

Function = Callable[[Any, Any], Any]
A = tnp.asarray([[1.0, 2.0], [0.5, 3.0]])
LANES = tnp.asarray([0.0, 1.0, 4.0, 2.0])


def branch(a: Any, x: Any) -> Any:
    return lax.cond(x > 0, lambda v: (a @ tnp.stack([tnp.sqrt(v), 1 / v])).sum(), lambda v: 0.0 * v, x)


def switch(a: Any, x: Any) -> Any:
    branches = (
        lambda v: v * a[0, 0],
        lambda v: (a * tnp.log(v)).sum() + (a / v).sum(),
        lambda v: (a / (v - 1.0) ** 2).sum() + (a ** (1 / v)).sum(),
    )
    return lax.switch(tnp.where(x > 0, (x > 1) * 1 + 1, 0), branches, x)


def loop(a: Any, x: Any) -> Any:
    def step(state: Any) -> Any:
        n, y = state
        slopes = (a @ tnp.stack([tnp.sqrt(n), 1 / n]) * tnp.log(n)).sum()
        return n - 1.0, y * 0.3 + slopes * 0.01 + a[0, 1] * y / n

    return lax.while_loop(lambda state: state[0] > 0.5, step, (x, x + 1.0))[1]


def counted(a: Any, x: Any) -> Any:
    count = x.astype(int)

    def step(i: Any, y: Any) -> Any:
        return y * 0.5 + (a / (count - i)).sum() * 0.1 * y + (a * tnp.log(1.0 * (count - i))).sum() * 0.01

    return lax.fori_loop(0, count, step, x)


def overflowing(a: Any, x: Any) -> Any:
    def step(state: Any) -> Any:
        n, y = state
        return n + 1.0, y * tnp.exp(-((a * y) ** 2).sum() + 0.0 * tnp.exp(400.0 * (n - x)) ** 2)

    return lax.while_loop(lambda state: state[0] < x, step, (0.0 * x, 0.3))[1]


def nested(a: Any, x: Any) -> Any:
    def step(state: Any) -> Any:
        n, y = state

        def inner(s: Any) -> Any:
            return s[0] + 1, s[1] + (a / (n - s[0])).sum() * 0.01

        z = branch(a, n) * 0.1 + lax.while_loop(lambda s: s[0] < n, inner, (0.0, y))[1]
        return n - 1.0, y + z * 0.1

    return lax.while_loop(lambda state: state[0] > 0.5, step, (x, x + 1.0))[1]


def in_scan(a: Any, x: Any) -> Any:
    return lax.scan(lambda y, s: (y * 0.9 + 0.1 * branch(a * s, y - s), None), x, tnp.asarray([1.0, 0.5]))[0]


def nowhere(a: Any, x: Any) -> Any:
    """A branch that no lane takes."""
    return lax.cond(x > 100, lambda v: (a / (v - v)).sum(), lambda v: v * (a**2).sum(), x)


FUNCTIONS = (branch, switch, loop, counted, overflowing, nested, in_scan, nowhere)
functions = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
ways = pytest.mark.parametrize("way", [lambda f: f, jit], ids=["outside jit", "jit"])


def over_lanes(function: Function) -> Function:
    return lambda a, xs: vmap(function, in_axes=(None, 0))(a, xs).sum()


def summed(function: Function) -> np.ndarray[Any, Any]:
    alone = jit(function)
    return np.sum([np.asarray(alone(A, x)) for x in LANES], axis=0)


def agree(found: Any, wanted: Any) -> None:
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


@ways
@functions
def test_a_shared_array_has_the_gradient_of_the_lanes_that_live(function: Function, way: Any) -> None:
    by_array, by_lane = way(grad(over_lanes(function), argnums=(0, 1)))(A, LANES)
    agree(by_array, summed(grad(function)))
    alone = jit(grad(function, argnums=1))
    agree(by_lane, [float(alone(A, x)) for x in LANES])


@functions
def test_second_derivatives_too(function: Function) -> None:
    twice = jit(grad(lambda a: grad(over_lanes(function))(a, LANES)[0].sum()))(A)
    agree(twice, summed(grad(lambda a, x: grad(function)(a, x)[0].sum())))
    mixed = jit(grad(lambda a: grad(over_lanes(function), argnums=1)(a, LANES).sum()))(A)
    agree(mixed, summed(grad(grad(function, argnums=1))))


@functions
def test_gradients_of_batched_gradients(function: Function) -> None:
    def squares(a: Any, x: Any) -> Any:
        return (grad(function)(a, x) ** 2).sum()

    agree(jit(grad(over_lanes(squares)))(A, LANES), summed(grad(squares)))


@pytest.mark.parametrize("function", [branch, loop, nested], ids=lambda f: f.__name__)
def test_batches_of_batches_share_arrays_at_either_level(function: Function) -> None:
    rows = tnp.stack([LANES, tnp.asarray([0.0, 0.0, 0.0, 0.0]), LANES[::-1]])
    arrays = tnp.stack([A, 0.5 * A, 2.0 * A])
    by_row = lambda a, x: vmap(vmap(function, in_axes=(None, 0)), in_axes=(0, 0))(a, x).sum()  # noqa: E731
    by_all = lambda a, x: vmap(vmap(function, in_axes=(None, 0)), in_axes=(None, 0))(a, x).sum()  # noqa: E731
    alone = jit(grad(function))
    each = [[np.asarray(alone(a, x)) for x in row] for a, row in zip(arrays, rows, strict=True)]
    agree(jit(grad(by_row))(arrays, rows), np.sum(each, axis=1))
    agree(jit(grad(by_all))(A, rows), np.sum([np.asarray(alone(A, x)) for x in rows.reshape(-1)], axis=0))


@pytest.mark.parametrize("function", [loop, nested], ids=lambda f: f.__name__)
def test_a_limit_on_memory_changes_nothing(function: Function) -> None:
    with tracer.config.using(loop_memory=4096):
        agree(jit(grad(over_lanes(function)))(A, LANES), summed(grad(function)))


def test_a_shared_array_is_not_kept_for_every_step() -> None:
    program = tracer.make_program(grad(over_lanes(loop)))(A, LANES)
    items = [v.type.item for e in equations(program) for v in e.outputs if isinstance(v.type, StackType)]
    assert items
    assert not [item for item in items if item.shape == A.shape]


def test_what_is_not_differentiated_computes_as_if_there_were_no_dead_lanes() -> None:
    def plain(x: Any) -> Any:
        return over_lanes(loop)(A, x)

    operations = {e.primitive.name for e in equations(jit(plain).lower(LANES).optimized())}
    assert not {"argmax", "dynamic_slice", "stand_in"} & operations
