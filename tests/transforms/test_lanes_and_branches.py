"""Control flow in batches: which branches run, finished lanes, and where NaN must not go."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, lax, vmap
from tracer.errors import ArgumentError

WAYS = {"outside jit": lambda f: f, "jit": jit}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
X = tnp.asarray([0.0, 1.0, 4.0])


@ways
@pytest.mark.parametrize("flag", [True, False])
def test_a_cond_whose_predicate_is_the_same_for_all_lanes_runs_one_branch(way: Any, flag: bool) -> None:
    ran: list[str] = []

    def branch(name: str, factor: float) -> Any:
        def run(x: Any) -> Any:
            tracer.debug.callback(lambda _: ran.append(name), x)
            return factor * x

        return run

    f = way(vmap(lambda p, x: lax.cond(p, branch("true", 2.0), branch("false", 3.0), x), in_axes=(None, 0)))
    np.testing.assert_array_equal(f(tnp.asarray(flag), X), (2.0 if flag else 3.0) * np.asarray(X))
    assert ran == ["true" if flag else "false"] * 3


@ways
def test_a_gradient_of_such_a_cond_runs_one_branch(way: Any) -> None:
    ran: list[str] = []

    def noted(name: str) -> Any:
        return lambda x: (tracer.debug.callback(lambda _: ran.append(name), x), tnp.sin(x))[1]

    def f(p: Any, x: Any) -> Any:
        return lax.cond(p, noted("true"), noted("false"), x)

    way(vmap(grad(f, argnums=1), in_axes=(None, 0)))(tnp.asarray(True), X)
    assert set(ran) == {"true"}


@ways
def test_vmap_of_while_freezes_finished_lanes(way: Any) -> None:
    limits = tnp.asarray([0, 3, 1, 7])
    count = lambda n: lax.while_loop(lambda i: i < n, lambda i: i + 1, 0)  # noqa: E731
    np.testing.assert_array_equal(way(vmap(count))(limits), limits)


@ways
def test_lanes_that_are_done_do_not_fault(way: Any) -> None:
    table = tnp.asarray([1.0, 2.0, 4.0])

    def f(n: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + table[s[0]]), (0, 0.0))[1]

    np.testing.assert_array_equal(way(vmap(f))(tnp.asarray([3, 0, 1])), [7.0, 0.0, 1.0])


@ways
def test_a_lane_keeps_the_infinities_of_the_branch_it_did_not_take(way: Any) -> None:
    f = lambda x: lax.cond(x > 0, tnp.sqrt, lambda v: 0.0 * v, x)  # noqa: E731
    np.testing.assert_array_equal(way(vmap(grad(f)))(X), [0.0, 0.5, 0.25])


@ways
def test_infinite_slopes_of_branches_not_taken_stay_out_of_gradients_of_batches(way: Any) -> None:
    f = lambda x, s: lax.cond(x > 0, lambda v: s * tnp.sqrt(v), lambda v: 0.0 * v, x)  # noqa: E731
    batched = lambda x, s: vmap(f, in_axes=(0, None))(x, s).sum()  # noqa: E731
    dx, ds = way(grad(batched, argnums=(0, 1)))(X, 3.0)
    np.testing.assert_array_equal(dx, [0.0, 1.5, 0.75])
    assert float(ds) == 3.0
    np.testing.assert_array_equal(way(vmap(grad(f), in_axes=(0, None)))(X, 3.0), dx)


@ways
def test_infinite_slopes_of_lanes_that_are_done_stay_out_of_gradients_of_batches(way: Any) -> None:
    def f(x: Any, s: Any) -> Any:
        def step(state: Any) -> Any:
            return state[0] - 1.0, s * state[1] * tnp.sqrt(state[0])

        return lax.while_loop(lambda state: state[0] > 0.5, step, (x, x + 1.0))[1]

    xs = tnp.asarray([0.0, 1.0, 2.0, 3.0])
    expected = [float(grad(f)(x, 1.5)) for x in xs]
    by_scale = sum(float(grad(f, argnums=1)(x, 1.5)) for x in xs)
    batched = lambda x, s: vmap(f, in_axes=(0, None))(x, s).sum()  # noqa: E731
    dx, ds = way(grad(batched, argnums=(0, 1)))(xs, 1.5)
    np.testing.assert_allclose(dx, expected, rtol=1e-14)
    np.testing.assert_allclose(ds, by_scale, rtol=1e-14)
    np.testing.assert_allclose(way(vmap(grad(f), in_axes=(0, None)))(xs, 1.5), expected, rtol=1e-14)
    pushed = way(lambda x: tracer.jvp(lambda v: batched(v, 1.5), (x,), (tnp.ones(4),))[1])(xs)
    assert float(pushed) == pytest.approx(sum(expected))


@ways
def test_infinite_slopes_of_lanes_that_are_done_stay_out_of_second_derivatives(way: Any) -> None:
    """The loop backwards has lanes that are done, too, and finds nothing on the stacks beyond their steps."""

    def f(x: Any, s: Any) -> Any:
        step = lambda state: (state[0] - 1.0, tnp.sin(state[1]) * s / state[0])  # noqa: E731
        return lax.while_loop(lambda state: state[0] > 0.5, step, (x, x + 1.0))[1]

    xs = tnp.asarray([0.0, 1.0, 2.0, 3.0])
    for argument in (0, 1):
        slopes = lambda s, n=argument: vmap(grad(f, n), in_axes=(0, None))(xs, s).sum()  # noqa: E731
        alone = sum(float(grad(lambda s, x=x, n=argument: grad(f, n)(x, s))(1.5)) for x in xs)
        assert float(way(grad(slopes))(1.5)) == pytest.approx(alone, rel=1e-12)


@ways
def test_where_lets_infinities_of_what_it_did_not_choose_through_and_apply_where_does_not(way: Any) -> None:
    trap = grad(lambda x: tnp.where(x > 0, tnp.sqrt(x), 0.0).sum())
    assert np.isnan(np.asarray(way(trap)(X))[0])
    safe = grad(lambda x: tnp.apply_where(x > 0, x, tnp.sqrt, fill_value=0.0).sum())
    np.testing.assert_array_equal(way(safe)(X), [0.0, 0.5, 0.25])
    np.testing.assert_array_equal(way(vmap(grad(safe_sqrt)))(X), [1.0, 0.5, 0.25])


def safe_sqrt(x: Any) -> Any:
    return tnp.apply_where(x > 0, x, tnp.sqrt, lambda v: v - 1.0)


def test_apply_where_takes_several_arguments_and_gives_values_like_where() -> None:
    x, y = tnp.asarray([1.0, 0.0, 2.0]), tnp.asarray([3.0, 5.0, 0.0])
    found = tnp.apply_where((x > 0) & (y > 0), (x, y), lambda a, b: tnp.log(a) / b, lambda a, b: a - b)
    np.testing.assert_allclose(found, [0.0, -5.0, 2.0])
    integers = tnp.apply_where(tnp.asarray([True, False]), tnp.asarray([4, 5]), lambda v: v * 2, fill_value=0)
    assert (integers.dtype, integers.tolist()) == (np.int64, [8, 0])
    with pytest.raises(ArgumentError, match="got neither a function nor a fill_value"):
        tnp.apply_where(x > 0, x, tnp.log)


# Define by run


def test_outside_jit_python_branches_and_loops_follow_the_values() -> None:
    def f(x: Any) -> Any:
        while x < 10.0:
            x = x * x if x > 1.5 else 2.0 * x
        return x

    assert float(grad(f)(1.0)) == pytest.approx(4 * (2.0) ** 3 * 2)
    assert float(grad(grad(f))(3.0)) == pytest.approx(12 * 3.0**2)


def test_printing_inside_a_gradient_shows_values(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        print(y)
        return (y * y).sum()

    grad(f)(tnp.asarray([1.0, 2.0]))
    assert capsys.readouterr().out == "[2. 4.]\n"


def test_functional_updates_are_differentiated_as_they_run() -> None:
    def f(x: Any) -> Any:
        y = x.at[0].multiply(x[1]).at[2].set(0.0)
        return (y * y).sum() if y[0] > 0 else -y.sum()

    np.testing.assert_allclose(grad(f)(tnp.asarray([1.0, 2.0, 3.0])), [8.0, 8.0, 0.0])
    np.testing.assert_allclose(grad(f)(tnp.asarray([-1.0, 2.0, 3.0])), [-2.0, 0.0, 0.0])


def test_values_that_backward_does_not_read_are_freed_as_it_runs() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        y = x + 1.0
        kept.append(weakref.ref(y))
        z = y * 3.0
        del y
        gc.collect()
        kept.append(kept[0]() is None)
        return z.sum()

    grad(f)(tnp.ones(1000))
    assert kept[1]


# Integers and booleans


def test_gradients_of_integers_are_refused_or_float0() -> None:
    f = lambda n, x: n * x  # noqa: E731
    with pytest.raises(tracer.errors.DTypeError, match=r"argument 0 has no gradient\n  expected a floating or complex"):
        grad(f)(3, 2.0)
    assert grad(f, allow_int=True)(3, 2.0).dtype == tracer.dtypes.float0
    _, pullback = tracer.vjp(f, 3, 2.0)
    dn, dx = pullback(1.0)
    assert (dn.dtype, float(dx)) == (tracer.dtypes.float0, 3.0)
    zero = np.zeros((), tracer.dtypes.float0)
    assert float(tracer.jvp(f, (3, 2.0), (zero, 1.0))[1]) == 3.0


def test_errors_name_the_path_in_the_tree() -> None:
    def loss(x: Any, params: Any) -> Any:
        return x * params["w"][2]

    with pytest.raises(tracer.errors.DTypeError) as caught:
        grad(loss, argnums=1)(1.0, {"w": [1.0, 2.0, 3]})
    assert ": argument 1, params['w'][2] has no gradient\n" in str(caught.value)
    with pytest.raises(ArgumentError) as wrong:
        jit(loss)(1.0, {"w": [1.0, 2.0, {"three"}]})
    assert ": argument 1, params['w'][2] is not an array\n" in str(wrong.value)


SHARING: dict[str, Any] = {
    "cond": lambda x, w: lax.cond(x > 0, lambda u: tnp.sqrt(w * u), lambda u: u, x),
    "while": lambda x, w: lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] + tnp.sqrt(w * c[0])), (x, x))[
        1
    ],
    "fori": lambda x, w: lax.fori_loop(0, x.astype(int), lambda i, c: c + tnp.sqrt(w * x), x),
}


@ways
@pytest.mark.parametrize("f", SHARING.values(), ids=SHARING)
def test_a_shared_number_is_each_lanes_own_where_its_slope_is_infinite(way: Any, f: Any) -> None:
    lanes = tnp.asarray([-1.0, 1.0, 2.0])
    slope = way(grad(lambda w: vmap(f, in_axes=(0, None))(lanes, w).sum()))(0.0)
    assert float(slope) == np.inf  # the dead lane's 0 times infinity is not in it
