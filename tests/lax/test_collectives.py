"""Operations across the lanes of a named axis, and stop_gradient."""

from __future__ import annotations

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax
from tracer.errors import ArgumentError, NoRuleError

X = np.array([1.0, 2.0, 5.0])


def across(function: object) -> list[object]:
    return tracer.vmap(function, axis_name="i")(X).tolist()  # type: ignore[arg-type, no-any-return]


def test_reductions_see_all_lanes() -> None:
    assert across(lambda x: lax.psum(x, "i")) == [8.0] * 3
    assert across(lambda x: lax.pmean(x, "i")) == [8.0 / 3] * 3
    assert across(lambda x: lax.pmax(x, "i")) == [5.0] * 3
    assert across(lambda x: lax.pmin(x, "i")) == [1.0] * 3
    assert across(lambda x: lax.all_gather(x, "i")) == [X.tolist()] * 3
    assert across(lambda x: x * lax.axis_index("i")) == [0.0, 2.0, 10.0]


def test_what_is_the_same_in_all_lanes_is_multiplied_or_kept() -> None:
    assert across(lambda x: x + lax.psum(tnp.asarray(2.0), "i")) == [7.0, 8.0, 11.0]
    assert across(lambda x: x + lax.psum(1, "i")) == [4.0, 5.0, 8.0]
    assert across(lambda x: x + lax.pmax(tnp.asarray(2.0), "i")) == [3.0, 4.0, 7.0]


def test_trees_and_several_axes() -> None:
    def inner(x: tracer.Array, y: tracer.Array) -> tracer.Array:
        return lax.psum({"p": x * y}, ("i", "j"))["p"]

    rows = tracer.vmap(lambda x: tracer.vmap(lambda y: inner(x, y), axis_name="j")(tnp.arange(3.0)), axis_name="i")(X)
    assert rows.tolist() == [[24.0] * 3] * 3


def test_collectives_inside_loops_and_branches() -> None:
    def body(x: tracer.Array) -> tracer.Array:
        return lax.fori_loop(0, 2, lambda _, y: y + lax.psum(y, "i"), x)

    assert across(body) == [1 + 8 + 32.0, 2 + 8 + 32.0, 5 + 8 + 32.0]


def test_gradients_cross_lanes() -> None:
    assert across(tracer.grad(lambda x: x * lax.psum(x, "i"))) == [16.0] * 3
    weights = tnp.asarray([1.0, 10.0, 100.0])
    gradient = tracer.grad(lambda x: (lax.all_gather(x, "i") * weights).sum())
    assert across(gradient) == [3.0, 30.0, 300.0]


def test_an_unknown_axis_says_which_there_are() -> None:
    with pytest.raises(ArgumentError) as caught:
        across(lambda x: lax.psum(x, "j"))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("psum at ")
    assert lines[0].endswith(": no batch axis is called 'j'")
    assert lines[1:] == ["  there are 'i'", "  help: map the function by vmap(f, axis_name='j')"]


def test_pmax_has_no_derivative_and_says_so() -> None:
    with pytest.raises(NoRuleError, match="pmax has no derivative"):
        across(tracer.grad(lambda x: lax.pmax(x, "i")))


def test_stop_gradient_holds_values_constant_in_every_mode() -> None:
    def f(x: tracer.Array) -> tracer.Array:
        return x * lax.stop_gradient(x)

    assert float(tracer.grad(f)(3.0)) == 3.0
    assert float(tracer.jit(tracer.grad(f))(3.0)) == 3.0
    assert float(tracer.jvp(f, (3.0,), (1.0,))[1]) == 3.0
    assert float(tracer.grad(tracer.grad(f))(3.0)) == 0.0
    assert lax.stop_gradient({"a": 1, "b": tnp.ones(2)})["b"].tolist() == [1.0, 1.0]
