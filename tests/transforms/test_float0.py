"""Gradients of integers, arrays of float0, go wherever arrays go: into and out of what traces, stacked, and carried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import jit, lax, vmap
from tracer.dtypes import float0

NOTHING = np.zeros((), float0)


def power(n: Any, x: Any) -> Any:
    return n * x**2


both = tracer.grad(power, (0, 1), allow_int=True)


def is_nothing(leaf: Any, shape: tuple[int, ...]) -> None:
    assert isinstance(leaf, np.ndarray)
    assert (leaf.dtype, leaf.shape) == (float0, shape)


MAKERS: dict[str, Callable[[], Any]] = {
    "jit": lambda: jit(both)(3, 2.0),
    "jit, again": lambda: [jit(both)(n, 2.0) for n in (2, 3)][-1],
    "jit of jit": lambda: jit(jit(both))(3, 2.0),
    "checkpoint": lambda: tracer.checkpoint(both)(3, 2.0),
    "cond": lambda: lax.cond(tnp.asarray(True), both, lambda n, x: both(2 * n, x), 3, 2.0),
    "switch": lambda: jit(lambda i: lax.switch(i, [both, both], 3, 2.0))(1),
    "pullback": lambda: jit(lambda n, x: tracer.vjp(power, n, x)[1](1.0))(3, 2.0),
    "value": lambda: jit(tracer.value_and_grad(power, (0, 1), allow_int=True))(3, 2.0)[1],
    "closure": lambda: jit(lambda x: both(3, x))(2.0),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_they_leave_what_traces(make: Callable[[], Any]) -> None:
    nothing, slope = make()
    is_nothing(nothing, ())
    assert float(slope) == 12.0


def test_they_are_stacked() -> None:
    n, x = np.arange(6).reshape(3, 2), np.arange(6.0).reshape(3, 2)
    for found in (vmap(vmap(both))(n, x), jit(vmap(vmap(both)))(n, x)):
        is_nothing(found[0], (3, 2))
        np.testing.assert_allclose(found[1], 2 * n * x)
    is_nothing(vmap(vmap(both), out_axes=1)(n, x)[0], (2, 3))
    row = tracer.grad(lambda m, v: (m * v).sum(), 0, allow_int=True)
    is_nothing(vmap(row, out_axes=1)(n, x), (2, 3))
    _, (nothing, slopes) = lax.scan(lambda c, each: (c, both(*each)), 0, (n[:, 0], x[:, 0]))
    is_nothing(nothing, (3,))
    np.testing.assert_allclose(slopes, 2 * n[:, 0] * x[:, 0])
    is_nothing(lax.map(lambda each: both(*each), (n[:, 0], x[:, 0]))[0], (3,))


def test_they_are_taken() -> None:
    def pushed(t: Any) -> Any:
        return tracer.jvp(power, (3, 2.0), (t, 1.0))[1]

    assert float(jit(pushed)(NOTHING)) == 12.0
    np.testing.assert_allclose(vmap(pushed)(np.zeros(3, float0)), [12.0] * 3)
    np.testing.assert_allclose(lax.scan(lambda c, t: (c, pushed(t)), 0, np.zeros(3, float0))[1], [12.0] * 3)
    assert float(tracer.checkpoint(pushed)(NOTHING)) == 12.0
    pulled = jit(lambda n, ct: tracer.vjp(lambda m: m + 1, n)[1](ct))(3, NOTHING)
    is_nothing(pulled[0], ())
    call = jit(lambda t: pushed(t["n"]))
    assert [float(call({"n": NOTHING})) for _ in range(3)] == [12.0] * 3
    assert str(call.explain()).startswith("lambda compiled once")


def test_they_are_carried() -> None:
    def step(i: Any, state: Any) -> Any:
        _, slope = both(i, 2.0)
        return NOTHING, state[1] + slope

    for run in (lambda s: lax.fori_loop(0, 4, step, s), jit(lambda s: lax.fori_loop(0, s[1].astype(int), step, s))):
        nothing, total = run((NOTHING, tnp.asarray(4.0)))
        is_nothing(nothing, ())
        assert float(total) == 4.0 + 4.0 * 6
    state = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, np.zeros(2, float0)))
    is_nothing(state[1], (2,))
    (last, _), _ = lax.scan(lambda c, x: (c, x), (NOTHING, 1.0), tnp.arange(3.0))
    is_nothing(last, ())


def test_their_shapes_count() -> None:
    with pytest.raises(tracer.errors.ArgumentError, match=r"expected float0\[\], got float0\[2\]"):
        jit(lambda t: tracer.jvp(power, (3, 2.0), (t, 1.0)))(np.zeros(2, float0))
    assert tracer.eval_shape(both, 3, 2.0)[0].shape == ()


def test_forward_derivatives_beside_them() -> None:
    (_, slope), (nothing, second) = jit(lambda x: tracer.jvp(lambda v: both(3, v), (x,), (1.0,)))(2.0)
    is_nothing(nothing, ())
    assert (float(slope), float(second)) == (12.0, 6.0)
    assert float(tracer.grad(lambda v: jit(both)(3, v)[1])(2.0)) == 6.0


@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_results_are_cotangents_of_themselves_where_some_are_integers(way: Any) -> None:
    def f(init: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: ((c[0] * x, c[1] + 1), (x, c[1], 0)), (init, 0), xs)

    def both(init: Any, xs: Any) -> Any:
        results, pullback = tracer.vjp(f, init, xs)
        return results, pullback(results)

    xs = tnp.asarray([2.0, 3.0])
    ((last, count), (rows, counts, zeros)), (by_init, by_xs) = way(both)(5.0, xs)
    assert (float(last), int(count), rows.tolist()) == (30.0, 2, [2.0, 3.0])
    assert (counts.tolist(), zeros.tolist()) == ([0, 1], [0, 0])
    assert float(by_init) == 30.0 * 6.0
    assert by_xs.tolist() == [30.0 * 15.0 + 2.0, 30.0 * 10.0 + 3.0]
