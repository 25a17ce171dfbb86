"""Custom rules may make arrays while loops and branches are transformed; programs hold them as literals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, lax, vmap
from tracer.errors import ArgumentError


def with_rule(factor: Any) -> Any:
    @tracer.custom_jvp
    def f(x: Any) -> Any:
        return tnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(primals[0]), tangents[0] * factor()))
    return f


def in_scan(f: Any) -> Any:
    return lambda x: lax.scan(lambda c, v: (c + f(v), None), tnp.zeros(3), tnp.stack([x, x]))[0].sum()


def in_branch(f: Any) -> Any:
    return lambda x: lax.cond(x.sum() > 0, lambda v: f(v).sum(), lambda v: v.sum(), x)


FACTORS = {
    "a scalar": lambda: tnp.asarray(3.0),
    "equal elements": lambda: tnp.asarray(np.full(3, 3.0)),
    "several elements": lambda: tnp.asarray([1.0, -2.0, 7.0]),
    "two at once": lambda: tnp.asarray([1.0, -2.0, 4.0]) * tnp.asarray(0.5),
}


@pytest.mark.parametrize("factor", FACTORS.values(), ids=FACTORS)
@pytest.mark.parametrize("place", [in_scan, in_branch])
@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_arrays_made_in_a_rule_are_right_in_every_transform(factor: Any, place: Any, way: Any) -> None:
    x = tnp.asarray([0.1, 0.5, 1.2])
    expected = np.asarray(factor()) * np.ones(3) * (2 if place is in_scan else 1)
    f = place(with_rule(factor))
    np.testing.assert_array_equal(way(grad(f))(x), expected)
    np.testing.assert_array_equal(way(vmap(grad(f)))(tnp.stack([x, x]))[1], expected)
    np.testing.assert_array_equal(way(tracer.jacfwd(f))(x), expected)


def test_a_large_array_made_in_a_rule_is_named() -> None:
    f = in_branch(with_rule(lambda: tnp.asarray(np.arange(3000.0)).sum() + tnp.asarray(np.arange(3000.0))[:3]))
    with pytest.raises(ArgumentError) as caught:
        jit(grad(f))(tnp.ones(3))
    first, *rest = str(caught.value).splitlines()
    assert first.startswith("a custom rule at test_rules_that_make_arrays.py:")
    assert rest == [
        "  got f64[3000]",
        "  help: make it outside the rule, which may close over it, or pass it as an argument",
    ]


def test_zeros_of_an_outer_derivative_are_not_those_of_an_inner_one() -> None:
    """The tangents move on while the gradient within writes its linear part: a rule's zeros belong to the tangents."""
    table = tnp.asarray([1.0, 2.0, 3.0, 4.0])

    def f(x: Any) -> Any:
        return (table.at[tnp.asarray([0, 2])].multiply(x[:2]) ** 2).sum()

    x = tnp.asarray([0.5, 1.5, 2.0])
    np.testing.assert_allclose(tracer.hvp(f, (x,), (x,))[0], [1.0, 27.0, 0.0])
    np.testing.assert_allclose(tracer.jvp(grad(f), (x,), (x,))[1], [1.0, 27.0, 0.0])
