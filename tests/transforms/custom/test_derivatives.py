"""Custom rules that call other transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax


def chosen(x: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda a: tnp.sin(a) * a, lambda a: a * 2.0, x)


def looped(x: Any) -> Any:
    return lax.while_loop(lambda a: a.sum() < 9, lambda a: a * a + 1.0, x)


def scanned(x: Any) -> Any:
    return lax.scan(lambda a, b: (a * b, a + b), x, tnp.stack([x, x]))[1][1]


@pytest.mark.parametrize("inner", [chosen, looped, scanned, tracer.jit(chosen)])
@pytest.mark.parametrize("outer", [lambda f: f, tracer.jit])
def test_a_rule_may_differentiate_control_flow_whose_results_are_used_again(
    inner: Callable[[Any], Any], outer: Callable[[Any], Any]
) -> None:
    def plain(x: Any) -> Any:
        return (inner(x) ** 2).sum()

    ruled = tracer.custom_jvp(plain)
    ruled.defjvp(lambda primals, tangents: tracer.jvp(plain, primals, tangents))
    x = tnp.asarray([0.5, 1.25])
    expected = np.asarray(tracer.grad(plain)(x))
    np.testing.assert_allclose(np.asarray(outer(tracer.grad(ruled))(x)), expected, rtol=1e-14)
    np.testing.assert_allclose(np.asarray(outer(tracer.jacfwd(ruled))(x)), expected, rtol=1e-14)


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("kind", ["vjp", "jvp"])
def test_rules_know_the_batch_axes_that_their_functions_ran_under(kind: str, way: Any) -> None:
    """They are staged later, when the axis is no longer open."""

    def centred(x: Any) -> Any:
        return x - lax.pmean(x, "lanes")

    if kind == "vjp":
        f = tracer.custom_vjp(centred)
        f.defvjp(lambda x: (centred(x), None), lambda _, ct: (3.0 * centred(ct),))
    else:
        f = tracer.custom_jvp(centred)
        f.defjvp(lambda xs, dxs: (centred(xs[0]), 3.0 * centred(dxs[0])))
    x = np.array([1.0, 2.0, 4.0])
    found = way(tracer.grad(lambda x: (tracer.vmap(f, axis_name="lanes")(x) ** 2).sum()))(x)
    np.testing.assert_allclose(found, 6.0 * (x - x.mean()), rtol=1e-14)


def test_a_rule_may_be_the_forward_derivative_of_anything() -> None:
    """Results of the rule are not tangled with tangents, whatever it differentiates: sorts and loops, too."""

    def f(x: Any) -> Any:
        ends = lax.while_loop(lambda y: y.sum() < 50.0, lambda y: 2.0 * y, tnp.sort(x) * x)
        return lax.cond(ends[0] > 1.0, tnp.sin, tnp.cos, lax.sort((ends, x), num_keys=1)[1])

    g = tracer.custom_jvp(f)
    g.defjvp(lambda primals, tangents: tracer.jvp(f, primals, tangents))
    x = np.asarray([1.5, -0.5, 0.25, 2.0])
    for transform in (tracer.jacrev, tracer.jacfwd, lambda h: tracer.jit(tracer.jacrev(h))):
        np.testing.assert_allclose(transform(g)(x), tracer.jacfwd(f)(x))


@pytest.mark.parametrize("f", [chosen, looped, scanned, lambda x: tnp.sort(x * x)])
def test_a_rule_in_a_batch_may_differentiate_control_flow(f: Any) -> None:
    g = tracer.custom_jvp(f)
    g.defjvp(lambda primals, tangents: tracer.jvp(f, primals, tangents))
    xs = np.asarray([[1.5, -0.5, 0.25], [0.3, 0.9, 1.1]])
    expected = np.stack([np.asarray(tracer.jacfwd(f)(x)) for x in xs])
    for jacobians in (tracer.vmap(tracer.jacrev(g)), tracer.jit(tracer.vmap(tracer.jacfwd(g)))):
        np.testing.assert_allclose(jacobians(xs), expected)
    pulled = tracer.grad(lambda v: tracer.vmap(g)(v).sum())(xs)
    np.testing.assert_allclose(pulled, expected.sum(1))
