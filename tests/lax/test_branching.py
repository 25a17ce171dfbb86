"""cond and switch: which branch runs, what they capture, which types they agree on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import lax
from tracer.errors import ArgumentError, CarryTypeError


@pytest.mark.parametrize("pred", [True, False, 1, 0, 0.5, np.bool_(True), np.float64(0.0)])
def test_cond_runs_the_branch_of_its_predicate(pred: Any) -> None:
    expected = 2.0 if pred else -2.0
    assert float(lax.cond(pred, lambda x: x, lambda x: -x, 2.0)) == expected
    assert float(tracer.jit(lambda p: lax.cond(p, lambda x: x, lambda x: -x, 2.0))(pred)) == expected


@each("index", [-3, 0, 1, 2, 9, 2**40])
def test_switch_clamps_its_index(index: int) -> None:
    branches = [lambda x, k=k: x + k for k in (10.0, 20.0, 30.0)]
    expected = 1.0 + (10.0, 20.0, 30.0)[min(max(index, 0), 2)]
    assert float(lax.switch(index, branches, 1.0)) == expected
    assert float(tracer.jit(lambda i: lax.switch(i, branches, 1.0))(index)) == expected


def test_branches_capture_different_arrays() -> None:
    a, b = tnp.asarray([1.0, 2.0]), tnp.asarray([3.0, 4.0])
    choose = tracer.jit(lambda p, x: lax.cond(p, lambda: a * x, lambda: b - a))
    assert choose(True, 2.0).tolist() == [2.0, 4.0]
    assert choose(False, 2.0).tolist() == [2.0, 2.0]
    assert float(tracer.grad(lambda x: lax.cond(x > 1, (a * x).sum, lambda: x))(2.0)) == 3.0


def test_trees_go_in_and_come_out() -> None:
    result = lax.cond(True, lambda t: {"y": t["x"], "n": None}, lambda t: {"y": -t["x"], "n": None}, {"x": tnp.ones(2)})
    assert result["y"].tolist() == [1.0, 1.0]
    assert result["n"] is None
    assert float(lax.cond(False, lambda x: x, lambda x: -x, operand=1.0)) == -1.0


def test_numbers_follow_the_other_branch() -> None:
    result = lax.cond(True, lambda: 1.0, lambda: tnp.zeros((), "float32"))
    assert (result.dtype, result.weak_type) == (np.float32, False)


def test_a_batched_predicate_chooses_lane_by_lane() -> None:
    absolute = tracer.vmap(lambda x: lax.cond(x > 0, lambda: x, lambda: -x))
    assert absolute(np.array([-1.0, 2.0])).tolist() == [1.0, 2.0]


MISTAKES = [
    (
        lambda: lax.cond(True, lambda x: x, lambda x: x.astype("float32"), tnp.ones(3)),
        CarryTypeError,
        (
            "cond at test_branching.py\n"
            "  true_fun returns f64[3] but false_fun returns f32[3]\n"
            "  help: cast or reshape the results of one, so that all agree"
        ),
    ),
    (
        lambda: lax.cond(True, lambda x: (x, x), lambda x: (x, x[0]), tnp.ones(3)),
        CarryTypeError,
        (
            "cond at test_branching.py\n"
            "  true_fun returns f64[3] but false_fun returns f64[] for 'result[1]'\n"
            "  help: cast or reshape the results of one, so that all agree"
        ),
    ),
    (
        lambda: lax.cond(True, lambda x: (x, 1), lambda x: x, tnp.ones(3)),
        CarryTypeError,
        (
            "cond at test_branching.py\n"
            "  true_fun returns (*, *) but false_fun returns *\n"
            "  help: return the same structure from every branch"
        ),
    ),
    (
        lambda: lax.switch(0, [lambda x: x, lambda x: x > 0, lambda x: x], tnp.ones(3)),
        CarryTypeError,
        (
            "switch at test_branching.py\n"
            "  branch 2 returns f64[3] but branch 1 returns bool[3]\n"
            "  help: cast or reshape the results of one, so that all agree"
        ),
    ),
    (
        lambda: lax.cond(tnp.ones(3) > 0, lambda x: x, lambda x: x, 1.0),
        ArgumentError,
        (
            "cond at test_branching.py\n"
            "  got bool[3]\n"
            "  help: reduce it with .any() or .all(); tnp.where chooses element by element"
        ),
    ),
    (
        lambda: lax.switch(0.5, [abs, abs], 1.0),
        ArgumentError,
        (
            "switch at test_branching.py\n  got an index f64*[] for 2 branches\n"
            "  help: cast the index, i.astype(int); cond takes a bool"
        ),
    ),
]


@each(("call", "error", "text"), MISTAKES)
def test_mistakes_say_what_is_wrong_and_what_to_do(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    first, *rest = str(caught.value).splitlines()
    assert "\n".join([first[: first.index(".py:") + 3], *rest]) == text


@pytest.mark.parametrize("pred", [True, False])
def test_each_branch_may_have_an_operand_of_its_own(pred: bool) -> None:
    """The older order of JAX's arguments."""

    def f(p: Any, x: Any, y: Any) -> Any:
        return lax.cond(p, {"u": x}, lambda t: 2.0 * t["u"], y, lambda t: t[0] * t[1])  # type: ignore[arg-type]

    y = (3.0, 5.0)
    expected = 2.0 if pred else 15.0
    assert float(f(pred, 1.0, y)) == float(tracer.jit(f)(pred, 1.0, y)) == expected
    slope, (by_first, by_second) = tracer.grad(f, (1, 2))(pred, 1.0, y)
    assert (float(slope), float(by_first), float(by_second)) == ((2.0, 0.0, 0.0) if pred else (0.0, 5.0, 3.0))


def test_functions_may_be_operands() -> None:
    with pytest.raises(ArgumentError, match=r"cond at .* argument 1 is not an array"):
        lax.cond(True, lambda x, h: x, lambda x, h: h(x), 1.0, lambda x: x)


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit])
def test_what_every_branch_hands_on_is_shared_by_the_lanes(way: Any) -> None:
    x, w = tnp.arange(3.0), tnp.ones(2)

    def two(x: Any) -> Any:
        return lax.cond(x > 1, lambda a, b: (a * 2, b, b), lambda a, b: (a, b, a * b), x, w)

    doubled, same, each = way(tracer.vmap(two, out_axes=(0, None, 0)))(x)
    assert (doubled.tolist(), same.tolist()) == ([0.0, 1.0, 4.0], [1.0, 1.0])
    assert each.tolist() == [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]
    branches = [lambda a: (a * 2, w, w), lambda a: (a, w, 2 * w), lambda a: (-a, w, w)]
    found, same, _ = way(tracer.vmap(lambda n, x: lax.switch(n, branches, x), out_axes=(0, None, 0)))(tnp.arange(3), x)
    assert (found.tolist(), same.tolist()) == ([0.0, 1.0, -2.0], [1.0, 1.0])
    slope = way(
        tracer.grad(lambda w: tracer.vmap(lambda x: lax.cond(x > 1, lambda: (x, w), lambda: (-x, w)))(x)[1].sum())
    )
    assert slope(w).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit])
def test_what_loops_and_calls_inside_branches_hand_on_is_shared_by_the_lanes(way: Any) -> None:
    def scanned(x: Any, y: Any) -> Any:
        return x, lax.scan(lambda c, _: (c, None), y, None, length=2)[0]

    def repeated(x: Any, y: Any) -> Any:
        return -x, lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, y))[1]

    def chosen(x: Any, y: Any) -> Any:
        return 2 * x, tracer.jit(lambda y: lax.cond(y > 0, lambda y: y, lambda y: y, y))(y)

    f = tracer.vmap(
        lambda n, x, y: lax.switch(n, [scanned, repeated, chosen], x, y), in_axes=(0, 0, None), out_axes=(0, None)
    )
    xs, y = way(f)(tnp.arange(3), tnp.ones(3), tnp.asarray(5.0))
    assert (xs.tolist(), float(y)) == ([1.0, -1.0, 2.0], 5.0)

    @tracer.custom_batching.custom_vmap
    def same(x: Any) -> Any:
        return x

    same.def_vmap(lambda size, batched, x: (10.0 * x, batched[0]))
    h = tracer.vmap(lambda n, x: lax.switch(n, [same, same], x))
    assert way(h)(tnp.arange(2), tnp.ones(2)).tolist() == [10.0, 10.0]
    unequal = [lambda y, z: y, lambda y, z: z]
    g = tracer.vmap(lambda n: lax.switch(n, unequal, tnp.asarray(1.0), tnp.asarray(2.0)))
    assert way(g)(tnp.arange(2)).tolist() == [1.0, 2.0]
