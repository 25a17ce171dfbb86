"""What `vjp`, `linearize` and `linear_transpose` return is a tree: it goes wherever arrays go."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH
from tests.mistakes.told import fails
from tracer import errors, jit, lax, linear_transpose, linearize, tree, tree_util, vjp, vmap

X = np.array([0.3, -0.4, 0.9])


def f(v: Any) -> Any:
    return tnp.sin(v) * v


def slope(v: Any) -> Any:
    return np.cos(v) * v + np.sin(v)


def loop(v: Any) -> Any:
    """v sin(v sin(v sin v)) by a loop of a length that no program knows."""
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, tnp.sin(s[1]) * v), (0, v))[1]


def nested_loops(v: Any) -> Any:
    def step(s: Any) -> Any:
        inner = lax.while_loop(lambda t: t[0] < s[0] + 2, lambda t: (t[0] + 1, tnp.sin(t[1]) * v), (0, s[1]))
        return s[0] + 1, inner[1] * s[1]

    return lax.while_loop(lambda s: s[0] < 3, step, (0, v))[1]


@tracer.custom_vjp
def scaled(v: Any) -> Any:
    return v * v


scaled.defvjp(lambda v: (v * v, v), lambda v, ct: (10.0 * v * ct,))

MAKERS: dict[str, Callable[[Any], Any]] = {
    "vjp": lambda v: vjp(f, v)[1],
    "linearize": lambda v: linearize(f, v)[1],
    "linear_transpose": lambda v: linear_transpose(lambda u: u * (tnp.cos(v) * v + tnp.sin(v)), v),
}


def product(made: Any) -> Any:
    (found,) = made if isinstance(made, tuple) else (made,)
    return found


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_linear_functions_go_through_jit_vmap_scan_and_maps(make: Callable[[Any], Any]) -> None:
    expected = slope(X) * X
    call = jit(lambda linear, v: product(linear(v)))
    for linear in (make(tnp.asarray(X)), jit(make)(X), tree.map(np.asarray, jit(make)(X))):
        np.testing.assert_allclose(product(linear(X)), expected)
        np.testing.assert_allclose(call(linear, X), expected)
    np.testing.assert_allclose(vmap(lambda linear, v: product(linear(v)))(vmap(make)(X), X), expected)
    rows = np.stack([X, 2 * X])
    turned = vmap(make, out_axes=1)(rows)
    found = vmap(lambda linear, v: product(linear(v)), in_axes=(1, 0))(turned, rows)
    np.testing.assert_allclose(found, slope(rows) * rows)
    one = vmap(lambda linear, v: product(linear(v)), in_axes=(None, 0))(make(X), rows)
    np.testing.assert_allclose(one, slope(X) * rows)
    _, stacked = lax.scan(lambda c, v: (c, make(v)), 0, X)
    np.testing.assert_allclose(lax.map(lambda pair: product(pair[0](pair[1])), (stacked, X)), expected)
    carried = lax.fori_loop(0, 3, lambda _, linear: linear, make(0.3))
    np.testing.assert_allclose(product(carried(1.0)), slope(0.3))
    chosen = jit(lambda v: lax.cond(v > 0, make, lambda u: make(2 * u), v))(-0.2)
    np.testing.assert_allclose(product(chosen(1.0)), slope(-0.4))


def test_equal_programs_are_compiled_once() -> None:
    call = jit(lambda pullback, ct: pullback(ct))
    for point in (0.1, 0.2, 0.3):
        (found,) = call(vjp(f, point)[1], 1.0)
        np.testing.assert_allclose(found, slope(point))
    assert str(call.explain()).startswith("lambda compiled once")
    call(vjp(tnp.tanh, 0.1)[1], 1.0)
    assert str(call.explain()).startswith("lambda compiled 2 times")


def test_the_structure_tells_programs_apart_and_nothing_else() -> None:
    kinds = [
        tree.structure(vjp(g, v)[1]) for g, v in ((f, 0.1), (f, 0.2), (lambda v: tnp.sin(v) * v, 0.3), (tnp.tanh, 0.1))
    ]
    assert kinds[0] == kinds[1] == kinds[2]
    assert kinds[0] != kinds[3]
    assert tree.structure(linearize(f, 0.1)[1]) != kinds[0]
    assert tree.structure(vjp(f, X)[1]) != kinds[0]


@tracer.custom_jvp
def looped_rule(v: Any) -> Any:
    return loop(v)


looped_rule.defjvp(lambda primals, tangents: tracer.jvp(loop, primals, tangents))
LOOPS = [
    loop, nested_loops, tracer.checkpoint(loop), scaled, tracer.grad(loop), looped_rule,
    lambda v: tracer.jvp(tracer.grad(loop), (v,), (1.0,))[1],
    *([tracer.grad(nested_loops), tracer.grad(tracer.grad(loop))] if THOROUGH else []),
]  # fmt: skip


@pytest.mark.parametrize("g", LOOPS, ids=range(len(LOOPS)))
def test_loops_and_rules_pass_as_programs(g: Callable[[Any], Any]) -> None:
    expected = [float(vjp(g, v)[1](1.0)[0]) for v in X]
    pulling = jit(lambda v: vjp(g, v)[1])
    np.testing.assert_allclose([float(pulling(v)(1.0)[0]) for v in X], expected)
    _, stacked = lax.scan(lambda c, v: (c, vjp(g, v)[1]), 0, X)
    np.testing.assert_allclose(lax.map(lambda pullback: pullback(1.0)[0], stacked), expected)
    _, tangent = jit(lambda v: tracer.jvp(lambda u: vjp(g, u)[1](u)[0], (v,), (1.0,)))(0.7)
    np.testing.assert_allclose(tangent, tracer.grad(lambda v: tracer.grad(g)(v) * v)(0.7), rtol=1e-9)
    np.testing.assert_allclose(vmap(lambda pullback: pullback(1.0)[0])(vmap(lambda v: vjp(g, v)[1])(X)), expected)
    pushing = jit(lambda v: linearize(g, v)[1])
    np.testing.assert_allclose([pushing(v)(1.0) for v in X], expected)
    second = tracer.grad(lambda v: jit(lambda u: vjp(g, u)[1])(v)(1.0)[0])(0.7)
    np.testing.assert_allclose(second, tracer.grad(tracer.grad(g))(0.7), rtol=1e-9)


def test_gradients_pass_through_what_linear_functions_keep() -> None:
    through = tracer.grad(lambda v: jit(lambda pullback: pullback(1.0)[0])(vjp(f, v)[1]))
    np.testing.assert_allclose(through(0.3), 2 * np.cos(0.3) - 0.3 * np.sin(0.3))
    gradient = tracer.grad(lambda pullback: pullback(2.0)[0])(vjp(lambda v: v * v, 3.0)[1])
    assert [float(leaf) for leaf in tree.leaves(gradient)] == [4.0]  # of 2 r ct in the residual r


def test_trees_and_integers_keep_their_places() -> None:
    def g(n: Any, p: Any) -> Any:
        return {"y": n * p["a"] ** 2, "n": n}

    pullback = jit(lambda n, p: vjp(g, n, p)[1])(3, {"a": 2.0})
    dn, dp = pullback({"y": 1.0, "n": np.zeros((), tracer.dtypes.float0)})
    assert dn.dtype == tracer.dtypes.float0
    assert float(dp["a"]) == 12.0
    outputs, pullback, aux = jit(lambda v: vjp(lambda u: (u * u, u + 1), v, has_aux=True))(2.0)
    assert (float(outputs), float(pullback(1.0)[0]), float(aux)) == (4.0, 4.0, 3.0)


def test_leaves_that_are_written_to_leave_the_function_as_it_was() -> None:
    pullback = vjp(lambda v: v * v, tnp.asarray(X))[1]
    leaves, structure = tree.flatten(pullback)
    again = tree.unflatten(structure, leaves)
    for leaf in leaves:
        leaf[0] = 7.0
    np.testing.assert_allclose([pullback(X)[0], again(X)[0]], [2 * X * X] * 2)


def test_what_is_first_called_within_another_transform_is_kept_for_all() -> None:
    def uses(v: Any) -> list[Any]:
        _, pushforward = linearize(f, v)
        batched = vmap(pushforward)(tnp.asarray(X))
        steps = lax.scan(lambda c, t: (c, pushforward(t)), 0.0, X)[1]
        branch = lax.cond(tnp.asarray(True), pushforward, lambda t: t, v)
        return [batched, steps, branch, jit(pushforward)(v), pushforward(v)]

    for found in (uses(0.3), jit(uses)(0.3)):
        for each, t in zip(found, (X, X, 0.3, 0.3, 0.3), strict=True):
            np.testing.assert_allclose(each, slope(0.3) * t)


def test_they_say_what_they_are() -> None:
    pullback, transposed = vjp(f, 1.0)[1], linear_transpose(lambda v: 2 * v, 1.0)
    assert [repr(g) for g in (pullback, linearize(f, 1.0)[1], transposed)] == [
        "<pullback of f>", "<pushforward of f>", "<pullback of lambda>",
    ]  # fmt: skip
    assert "Pullback[vjp of f]" in str(tree.structure(pullback))
    assert repr(jit(pullback)) == "<jit of pullback>"


LIKE = "  help: tangents and cotangents have the shape and dtype of the values they belong to"


def test_mistakes_with_cotangents_say_the_same_after_a_passage_through_jit() -> None:
    pullback = jit(lambda v: vjp(f, v)[1])(X)
    fails(
        errors.ArgumentError,
        lambda: pullback(1.0),  # here
        f"vjp of f at @here: cotangents has the wrong type\n  expected f64[3], got f64*[]\n{LIKE}",
    )


def test_mistakes_with_tangents_say_the_same_after_a_passage_through_jit() -> None:
    pushforward = jit(lambda v: linearize(lambda p: p["a"], v)[1])({"a": X})
    fails(
        errors.ArgumentError,
        lambda: pushforward({"a": 1.0}),  # here
        "linearize of lambda at @here: tangents[0]['a'], the tangent of argument 0, p['a'], has the wrong type\n"
        f"  expected f64[3], got f64*[]\n{LIKE}",
    )


def test_a_batch_of_functions_is_not_called_as_one() -> None:
    batched = vmap(lambda v: vjp(f, v)[1])(np.stack([X, X]))
    fails(
        errors.ArgumentError,
        lambda: batched(X),  # here
        "vjp of f at @here: a residual of its result has another type than it was made with\n"
        "  expected f64[3], got f64[2,3]\n"
        "  help: call it under vmap if it was returned through one, as vmap(lambda f, x: f(x))(f, xs)",
    )


def test_partials_are_trees_of_their_arguments_and_keep_inner_partials_whole() -> None:
    def g(mode: str, a: Any, b: Any, c: Any = 0.0) -> Any:
        return a * b + c if mode == "plus" else a * b - c

    inner = functools.partial(g, "plus")
    partial = tree_util.Partial(inner, 3.0, c=1.0)
    assert tree.leaves(partial) == [3.0, 1.0]
    assert float(jit(lambda p, x: p(x))(partial, 2.0)) == 7.0
    assert float(jit(lambda a: tree_util.Partial(inner, a))(3.0)(2.0)) == 6.0
    assert tree.structure(partial) == tree.structure(tree_util.Partial(inner, 4.0, c=2.0))
    assert tree.structure(partial) != tree.structure(tree_util.Partial(functools.partial(g, "plus"), 3.0, c=1.0))
    assert tree.leaves(tree_util.Partial(tree_util.Partial(g, "minus"), 5.0)) == [5.0]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("inner", [loop, tracer.checkpoint(loop), lambda v: jit(lambda u: vjp(loop, u))(v)[1](v)[0]])
def test_what_loops_gave_outside_jit_enters_it(inner: Callable[[Any], Any], order: int) -> None:
    """The loops that a checkpoint or a passage through jit run again leave no stacks among values."""

    def g(v: Any) -> Any:
        return inner(v) if order == 1 else vjp(inner, v)[1](v)[0]

    point = tnp.asarray(X)
    expected = jit(lambda v: vjp(g, v)[1](v)[0])(point)
    pullback = vjp(g, point)[1]
    np.testing.assert_allclose(pullback(point)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(jit(lambda ct: pullback(ct)[0])(point), expected, rtol=1e-12)
    np.testing.assert_allclose(jit(lambda f, ct: f(ct)[0])(pullback, point), expected, rtol=1e-12)
