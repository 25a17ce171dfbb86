"""`x[i] = v` beside transforms: derivatives keep the values that they read, and results can be written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, jvp, lax, linearize, value_and_grad, vjp, vmap

X = tnp.asarray([1.0, 2.0, 3.0])
TABLE = np.arange(3.0)


def read_then_written(x: Any) -> Any:
    y = tnp.asarray(TABLE)
    z = y * x
    y[1] = 100.0
    return z


def written_with_traced(x: Any) -> Any:
    y = tnp.asarray(TABLE)
    z = y * x
    y[1] = x[0]
    return y * x + z


def indices_written(x: Any) -> Any:
    values, places = lax.top_k(x, 2)
    places[0] = 0
    return values * x[places]


def copied_in_a_loop(x: Any) -> Any:
    twice = 2.0 * x

    def step(i: Any, total: Any) -> Any:
        y = x.copy()
        first = y + 1.0
        y[...] = twice
        return total + first * y

    return lax.fori_loop(0, 2, step, 0.0 * x)


def made_in_a_loop(x: Any) -> Any:
    def step(i: Any, total: Any) -> Any:
        y = tnp.asarray(TABLE)
        first = y * x
        y[1] = total[0]
        return total + first * y

    return lax.fori_loop(0, 2, step, 0.0 * x + 1.0)


def copied_for_two(x: Any) -> Any:
    def written(v: Any) -> Any:
        y = v.copy()
        y[1] = 5.0
        return y

    return lax.fori_loop(0, 2, lambda i, total: total + written(x), 0.0 * x) + written(x)


# value, and gradient of the sum, in NumPy
CASES: dict[Callable[[Any], Any], tuple[list[float], list[float]]] = {
    read_then_written: ([0.0, 2.0, 6.0], [0.0, 1.0, 2.0]),
    written_with_traced: ([0.0, 4.0, 12.0], [2.0, 2.0, 4.0]),
    indices_written: ([3.0, 4.0], [3.0, 4.0, 1.0]),
    copied_in_a_loop: ([8.0, 24.0, 48.0], [12.0, 20.0, 28.0]),
    made_in_a_loop: ([1.0, 5.0, 25.0], [0.0, 2.0, 8.0]),
    copied_for_two: ([3.0, 15.0, 9.0], [3.0, 0.0, 3.0]),
}


@pytest.mark.parametrize("way", [lambda f: f, jit])
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_what_was_read_is_what_it_was(f: Any, way: Any) -> None:
    value, gradient = CASES[f]
    assert way(f)(X).tolist() == value
    assert way(grad(lambda x: f(x).sum()))(X).tolist() == gradient
    assert way(grad(lambda x: jit(f)(x).sum()))(X).tolist() == gradient
    assert way(vmap(f))(tnp.stack([X, X]))[1].tolist() == value
    assert way(vmap(grad(lambda x: f(x).sum())))(tnp.stack([X, X]))[0].tolist() == gradient
    assert float(way(lambda x: jvp(f, (x,), (tnp.ones(3),))[1].sum())(X)) == sum(gradient)


def test_pullbacks_and_pushforwards_stay_at_their_point() -> None:
    x, w = X.copy(), tnp.asarray([3.0, 4.0, 5.0])
    y, pullback = vjp(lambda v: v * v * w, x)
    _, pushforward = linearize(lambda v: v * v * w, x)
    x[0], w[0], y[0] = 100.0, 50.0, -1.0
    assert pullback(tnp.ones(3))[0].tolist() == [6.0, 16.0, 30.0]
    assert pushforward(tnp.ones(3)).tolist() == [6.0, 16.0, 30.0]
    root, pullback = vjp(tnp.exp, tnp.zeros(2))
    root[0] = 7.0
    assert pullback(tnp.ones(2))[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_results_of_transforms_can_be_written_to(way: Any) -> None:
    def use(x: Any) -> Any:
        value, (dx,) = (lambda pair: (pair[0], pair[1](tnp.ones(3))))(vjp(lambda v: v * v, x))
        pushed, tangent = jvp(lambda v: v * v, (x,), (x,))
        (_, aux), gradient = value_and_grad(lambda v: ((v * v).sum(), v), has_aux=True)(x)
        one = tnp.ones(3)
        (passed,) = vjp(lambda v: v, x)[1](one)
        moved = linearize(lambda v: v, x)[1](one)
        results = [value, dx, pushed, tangent, aux, gradient, passed, moved]
        results += [vmap(lambda v: v)(x), tracer.jacfwd(lambda v: v)(x)[0]]
        for result in results:
            result[0] = -1.0
        return (x, one), results

    (x, one), results = way(use)(X)
    assert x.tolist() == X.tolist() == [1.0, 2.0, 3.0]
    assert one.tolist() == [1.0] * 3
    assert all(float(result[0]) == -1.0 for result in results)
