"""Derivatives of every order and kind of functions with reverse rules, in loops whose length nobody knows.

The oracle is the same program without a rule, whose derivatives are those of the operations; for rules whose backward
function is not linear, the steps written one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import custom_vjp, grad, hessian, hvp, jacfwd, jacrev, jit, jvp, lax, vmap
from tracer.errors import NoRuleError

Step = Callable[[Any, Any], Any]
X = 0.7


def plain(c: Any, w: Any) -> Any:
    return tnp.sin(c) * w


@custom_vjp
def ruled(c: Any, w: Any) -> Any:
    return tnp.sin(c) * w


ruled.defvjp(
    lambda c, w: (ruled(c, w), (c, w)),  # itself a function with a rule
    lambda r, g: (g * tnp.cos(r[0]) * r[1], g * tnp.sin(r[0])),
)


@custom_vjp
def bent(c: Any, w: Any) -> Any:
    return tnp.sin(c) * w


bent.defvjp(
    lambda c, w: (tnp.sin(c) * w, (c, w)),
    lambda r, g: (tnp.tanh(g) * tnp.cos(r[0]) * r[1], tnp.clip(g, -0.1, 3.0) * tnp.sin(r[0])),
)


def unrolled(step: Step) -> Callable[[Any], Any]:
    return lambda x: step(step(step(step(x, x), x), x), x)


def uncounted(step: Step) -> Callable[[Any], Any]:
    return lambda x: lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, step(s[1], x)), (0, x))[1]


def counted(step: Step) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        return lax.fori_loop(0, (x > 0).astype(int) * 4, lambda i, c: step(c, x), x)

    return run


def nested(step: Step) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        inner = lambda c: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, step(s[1], x)), (0, c))[1]  # noqa: E731
        return lax.scan(lambda c, _: (inner(c), None), x, None, length=2)[0]

    return run


def branched(step: Step) -> Callable[[Any], Any]:
    return lambda x: lax.cond(x > 0, uncounted(step), lambda x: x, x)


PROGRAMS = [uncounted, counted, nested, branched]
SECOND: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "hessian": hessian,
    "hvp": lambda f: lambda x: hvp(f, (x,), (1.0,))[0],
    "grad of grad": lambda f: grad(grad(f)),
    "jacrev of jacrev": lambda f: jacrev(jacrev(f)),
    "jvp of grad": lambda f: lambda x: jvp(grad(f), (x,), (1.0,))[1],
}
FORWARD: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "grad of jacfwd": lambda f: grad(jacfwd(f)),
    "jacfwd of jacfwd": lambda f: jacfwd(jacfwd(f)),
}
WAYS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "define by run": lambda f: f,
    "batch, compiled": lambda f: lambda x: jit(vmap(f))(tnp.full(2, x))[1],
}


def value(function: Callable[[Any], Any], memory: int | None) -> float:
    with tracer.config.using(loop_memory=memory):
        return float(function(X))


@cache
def true_value(transform: str) -> float:
    """Of the steps written out, without a rule."""
    return value((SECOND | FORWARD)[transform](unrolled(plain)), None)


@pytest.mark.parametrize(
    ("program", "transform", "memory"), covering(PROGRAMS, [*SECOND, *FORWARD], [None, 4096], least=12)
)
def test_a_true_rule_changes_no_derivative(program: Any, transform: str, memory: int | None) -> None:
    derivative = (SECOND | FORWARD)[transform]
    expected = true_value(transform)
    for name, way in WAYS.items():
        found = value(way(derivative(program(ruled))), memory)
        assert found == pytest.approx(expected, rel=1e-12), name


@pytest.mark.parametrize("program", [uncounted, counted], ids=lambda p: p.__name__)
@pytest.mark.parametrize("transform", SECOND)
def test_rules_that_are_not_linear_are_followed_as_written(program: Any, transform: str) -> None:
    expected = value(grad(grad(unrolled(bent))), None)
    found = value(WAYS["batch, compiled"](SECOND[transform](program(bent))), None)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("way", [lambda f: f, jit, lambda f: lambda x: jit(vmap(f))(tnp.full(2, x))])
def test_forward_derivatives_ask_for_a_linear_rule(way: Any) -> None:
    with pytest.raises(NoRuleError, match=r"forward derivative of custom_vjp bent at .*not linear"):
        way(lambda x: jvp(unrolled(bent), (x,), (1.0,))[1])(X)


def test_forward_derivatives_of_arrays_aux_and_integers() -> None:
    """Forwards as the transpose of backward: shapes that differ, integer results and unused arguments included."""

    @custom_vjp
    def f(a: Any, v: Any, n: Any) -> Any:
        return a @ v * n, n + 1, v.sum()

    f.defvjp(
        lambda a, v, n: (f(a, v, n), (a, v, n)),
        lambda r, g: (r[2] * tnp.outer(g[0], r[1]), r[2] * (g[0] @ r[0]) + g[2], None),
    )
    a, v = tnp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), tnp.asarray([0.5, -1.0, 2.0])
    da, dv = tnp.ones((2, 3)), tnp.asarray([1.0, 0.0, -1.0])
    (_, m, _), (dy, dm, ds) = jvp(lambda a, v: f(a, v, 3), (a, v), (da, dv))
    np.testing.assert_allclose(np.asarray(dy), 3 * (np.asarray(da) @ v + np.asarray(a) @ dv))
    assert dm.dtype == tracer.dtypes.float0
    assert int(m) == 4
    assert float(ds) == 0.0
    np.testing.assert_allclose(np.asarray(jacfwd(lambda v: f(a, v, 3)[0])(v)), 3 * np.asarray(a))
    np.testing.assert_allclose(np.asarray(jit(jacfwd(lambda v: f(a, v, 3)[0]))(v)), 3 * np.asarray(a))
