"""Transposes of loops beside carries that depend on nothing linear: counters, and what is computed from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import lax
from tracer.errors import NoRuleError

X = np.array([1.0, 2.0])
W = tnp.asarray([[0.5, -0.2], [0.3, 0.4]])


def counted(x: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, c: c * (i + 1.0) + x, x)


def powers(x: Any) -> Any:
    def step(c: Any, k: Any) -> Any:
        i, p, y = c
        return (i + 1, 0.5 * p + k, y * p + i * x), {"y": y, "p": p * y}

    (_, _, y), ys = lax.scan(step, (0, 1.0, x), tnp.arange(4.0))
    return y, ys


def backwards(x: Any) -> Any:
    def step(c: Any, _: None) -> Any:
        i, y = c
        return (i * 2, y + i * x), y * i

    (_, y), ys = lax.scan(step, (1, x), None, length=4, reverse=True)
    return y, ys


def nested(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(0, 2, lambda j, d: d * (i + j) + x, c), x)


def beside(c: Any, v: Any) -> Any:
    return tnp.sin(c), c * v


def called(x: Any) -> Any:
    a, b = tracer.jit(beside)(2.0, x)
    return a * b


def branched(x: Any) -> Any:
    a, b = lax.cond(tnp.asarray(3.0) > 2, beside, lambda c, v: (c, v), 2.0, x)
    return a * b


def again(x: Any) -> Any:
    a, b = tracer.checkpoint(beside)(2.0, x)
    return a * b


def carried(x: Any) -> Any:
    (a, b), (ps, qs) = lax.scan(lambda s, _: ((s[0] * 0.5, s[1] * s[0]), s), (2.0, x), None, length=3)
    return a * b, tnp.sum(ps[:, None] * qs, axis=0)


def turned(s: Any, k: Any) -> Any:
    """Linear in s, beside what depends on k alone."""
    return s * k + s[::-1], tnp.sin(k) + 1.0


def lanes(s: Any, k: Any) -> Any:
    """Where lanes stop on their own, and share an array."""
    step = lambda c: (c[0] + 1, c[1] * k + 0.3 * W[0] * c[1], c[2] * 0.9 + W[1] @ W[0] * 0.1)  # noqa: E731
    end = lax.while_loop(lambda c: (c[0] < 3) & (c[2] < 0.8), step, (0, s * W[0], k))
    return lax.cond(k > 0, lambda u: u.sum(), lambda u: u @ W[1], end[1]), end[2]


@tracer.custom_jvp
def halved(s: Any, k: Any) -> Any:
    return s * k, 0.5 * k


halved.defjvp(lambda p, t: (halved(*p), (t[0] * p[1] + p[0] * t[1], 0.5 * t[1])))


def sloping(s: Any, k: Any) -> Any:
    """The gradient of a loop at k beside its tangent: one loop backwards, with stacks of its own, makes both."""
    power = lambda v: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, tnp.sin(c[1]) * v), (0, v))[1].sum()  # noqa: E731
    slope, moved = tracer.jvp(tracer.grad(power), (k,), (s,))
    return moved, slope


BESIDE: dict[str, Callable[[Any, Any], Any]] = {
    "plain": turned,
    "jit": tracer.jit(turned),
    "call in a call": tracer.jit(tracer.jit(turned)),
    "checkpoint": tracer.checkpoint(tracer.jit(turned)),
    "custom_jvp": halved,
    "barrier": lambda s, k: lax.optimization_barrier(turned(s, k)),
    "lanes that part": tracer.vmap(lanes),
    "cond": lambda s, k: lax.cond(k.sum() > 2.0, turned, lambda s, k: (s, k), s, k),
    "scan": lambda s, k: lax.scan(lambda c, _: (tracer.jit(turned)(*c), None), (s, k), None, length=2)[0],
    "while": lambda s, k: lax.while_loop(lambda c: c[1].sum() < 3.0, lambda c: (c[0] * c[1], c[1] + 0.4), (s, k)),
    "loop backwards": sloping,
    "fori of unknown length": lambda s, k: lax.fori_loop(0, 1 + (k[0] > 0), lambda i, c: turned(*c), (s, k)),
}
K = tnp.asarray([0.7, -0.3])


def scanning(step: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda s: lax.scan(lambda c, _: (step(*c), c[0].sum()), (s, K), None, length=3)


def repeating(step: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda s: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, *step(c[1], c[2])), (0, s, K))[1:]


def counting(step: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda s: lax.fori_loop(0, tnp.asarray(3), lambda i, c: step(c[0] * (i + 1), c[1]), (s, K))


def within_limits(step: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    body = lambda c: (c[0] + 1, *step(0.5 * c[1], c[2]))  # noqa: E731
    return lambda s: lax.while_loop(lambda c: c[0] < 20, body, (0, s, K), memory=200)[1]


IN_LOOPS = {
    f"{step} in {loop.__name__}": loop(BESIDE[step])
    for step, loop in covering(BESIDE, (scanning, repeating, counting, within_limits))
}


@pytest.mark.parametrize("name", IN_LOOPS)
def test_loops_pass_known_values_beside_linear_ones(name: str) -> None:
    """Through calls, branches, rules and loops within; transposed, compiled, batched, and differentiated once more."""
    f, rng = IN_LOOPS[name], np.random.default_rng(0)
    cotangents = tracer.tree.map(lambda v: tnp.asarray(rng.standard_normal(v.shape)), f(X))
    transposed = tracer.linear_transpose(f, X)
    (expected,) = tracer.vjp(f, X)[1](cotangents)
    np.testing.assert_allclose(transposed(cotangents)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(tracer.jit(transposed)(cotangents)[0], expected, rtol=1e-12)
    lanes = tracer.tree.map(lambda v: tnp.stack([v, -2.0 * v]), cotangents)
    np.testing.assert_allclose(tracer.vmap(transposed)(lanes)[0], tnp.stack([expected, -2.0 * expected]), rtol=1e-12)
    np.testing.assert_allclose(tracer.jvp(transposed, (cotangents,), (cotangents,))[1][0], expected, rtol=1e-12)


def test_carries_that_a_loop_makes_linear() -> None:
    """One enters with a value that is known, and takes the other's place in every step."""
    step = lambda c: (c[0] + 1, c[1] + c[2], 2.0 * c[1])  # noqa: E731
    f = lambda s: lax.while_loop(lambda c: c[0] < 3, step, (0, s, tnp.zeros(2)))[1:]  # noqa: E731
    np.testing.assert_allclose(tracer.linear_transpose(f, X)((X, X))[0], tracer.vjp(f, X)[1]((X, X))[0], rtol=1e-13)


def test_carries_of_python_numbers() -> None:
    halvings = lambda v: lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] // 2, 0.5 * s[1]), (8, v))[1]  # noqa: E731
    assert tracer.linear_transpose(halvings, 1.0)(1.0) == (0.125,)
    scaled = lambda v: lax.fori_loop(0, tnp.asarray(3), lambda i, s: (0.5 * s[0] * s[1], s[1] + 1.0), (v, 1.0))[0]  # noqa: E731
    assert tracer.jit(tracer.linear_transpose(scaled, 1.0))(1.0) == (0.75,)


def test_tangents_of_a_reversed_loop_have_a_transpose() -> None:
    """The loop backwards carries values beside their tangents."""

    def f(t: Any) -> Any:
        power = lambda v: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, tnp.sin(c[1]) * v), (0, v))[1].sum()  # noqa: E731
        return tracer.jvp(tracer.grad(power), (K,), (t,))[1]

    for wrap in (lambda g: g, tracer.jit):
        (found,) = tracer.linear_transpose(wrap(f), X)(X)
        np.testing.assert_allclose(found, f(X), rtol=1e-12)  # a Hessian is its own transpose


def test_while_loops_that_linear_values_end_have_no_transpose() -> None:
    def f(s: Any) -> Any:
        return lax.while_loop(lambda c: c.sum() < 10.0, lambda c: 2.0 * c, s)

    with pytest.raises(NoRuleError) as error:
        tracer.linear_transpose(f, X)(X)
    place = f"test_transposed_loops.py:{f.__code__.co_firstlineno + 1}"
    assert str(error.value) == (
        f"transpose of while_loop at {place}: while_loop is not linear\n"
        "  its condition reads transposed values\n"
        "  help: vjp differentiates functions that are not linear"
    )


@pytest.mark.parametrize("f", [counted, powers, backwards, nested, called, branched, again, carried])
@pytest.mark.parametrize("wrap", [lambda f: f, tracer.jit], ids=["plain", "jit"])
def test_transposes_are_adjoints(f: Callable[[Any], Any], wrap: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(0)
    y = f(X)
    cotangents = tracer.tree.map(lambda v: tnp.asarray(rng.standard_normal(v.shape)), y)
    (found,) = wrap(tracer.linear_transpose(f, X))(cotangents)
    (expected,) = tracer.vjp(f, X)[1](cotangents)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_batched_and_differentiated_transposes() -> None:
    transposed = tracer.linear_transpose(counted, 1.0)
    np.testing.assert_allclose(tracer.vmap(lambda ct: transposed(ct)[0])(X), 326.0 * X)
    assert float(tracer.grad(lambda ct: transposed(ct)[0])(1.0)) == 326.0


@pytest.mark.parametrize(("wrap", "within"), covering([lambda f: f, tracer.jit], ["call", "scan"]))
def test_second_derivatives_of_calls_within_a_loop_in_bounded_memory(wrap: Callable[[Any], Any], within: str) -> None:
    """What a call computes beside the linear results depends on known values alone."""

    @tracer.custom_vjp
    def sine(x: Any) -> Any:
        return tnp.sin(x)

    sine.defvjp(lambda x: (tnp.sin(x), x), lambda x, ct: (ct * tnp.cos(x),))

    def within_call(v: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, tracer.jit(sine)(s[1])), (0, v))[1]

    def within_scan(v: Any) -> Any:
        step = lambda c, _: (sine(c), None)  # noqa: E731
        return lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, lax.scan(step, s[1], None, length=2)[0]), (0, v)
        )[1]

    f, count = {"call": (within_call, 5), "scan": (within_scan, 6)}[within]
    with tracer.config.using(loop_memory=200):
        found = wrap(tracer.grad(tracer.grad(f)))(0.3)
    expected = tracer.grad(tracer.grad(lambda v: lax.fori_loop(0, count, lambda _, x: tnp.sin(x), v)))(0.3)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("start", [1.0, tnp.asarray(1.0)], ids=["weak", "an array"])
def test_known_carries_of_loops_within_loops_stay_as_weak_as_they_were(start: Any) -> None:
    """The inner loop's known carry begins as a Python number, and as the outer loop's afterwards."""

    def inner(c: Any) -> Any:
        return lax.fori_loop(0, 2, lambda i, s: (s[0] * s[1], s[1] + 1.0), c)[0]

    def f(v: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, inner(s[1:]), s[2] * 2.0), (0, v, 1.5))[1]

    factor = 1.5 * 2.5 * 3.0 * 4.0 * 6.0 * 7.0
    for transposed in (tracer.linear_transpose(f, start), tracer.jit(tracer.linear_transpose(f, start))):
        assert float(transposed(2.0)[0]) == 2.0 * factor
