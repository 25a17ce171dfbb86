"""Mistakes with loops and branches."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tests.mistakes.told import X, fails
from tracer import errors, lax


def test_a_scan_that_changes_the_type_of_its_carry() -> None:
    def step(u: Any, x: Any) -> Any:
        return u.astype("float64") + x, None

    fails(
        errors.CarryTypeError,
        lambda: lax.scan(step, tnp.zeros(2, "float32"), tnp.ones((3, 2))),  # here
        "scan at @here\n  carry 'u' enters as f32[2] but the body returns f64[2]\n"
        '  help: cast the result, u.astype("float32"), or start from a float64 carry',
    )


def test_a_while_loop_that_changes_the_type_of_its_carry() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.while_loop(lambda u: u.sum() < 3, lambda u: u.astype("float64"), tnp.ones(64, "float32")),  # here
        "while_loop at @here\n  carry 'u' enters as f32[64] but the body returns f64[64]\n"
        '  help: cast the result, u.astype("float32"), or start from a float64 carry',
    )


def test_a_fori_loop_that_changes_the_type_of_its_carry() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.fori_loop(0, 5, lambda i, u: (u[0] + 1, u[1] * 0.5), (0, tnp.arange(3))),  # here
        "fori_loop at @here\n  carry 'u[1]' enters as i64[3] but the body returns f64*[3]\n"
        '  help: cast the result, u[1].astype("int64"), or start from a float64 carry',
    )


def test_a_body_that_changes_the_structure_of_its_carry() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.while_loop(lambda s: s[0] < 3, lambda s: s[0] + 1, (0, 1.0)),  # here
        "while_loop at @here\n  carry 's' enters as (*, *) but the body returns *\n"
        "  help: return the structure that the body takes",
    )


def test_a_body_that_forgot_to_return() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.fori_loop(0, 5, lambda i, t: None, 0.0),  # here
        "fori_loop at @here\n  carry 't' enters as * but the body returns None\n"
        "  help: return the new carry: is there a `return`?",
    )


def test_a_body_with_too_few_parameters() -> None:
    body: Any = lambda t: t  # noqa: E731
    fails(
        errors.ArgumentError,
        lambda: lax.fori_loop(0, 5, body, 0.0),  # here
        "the body of fori_loop at @here is called with 2 arguments\n"
        f"  {body.__qualname__}() takes 1 positional argument but 2 were given\n"
        "  help: give the function these parameters",
    )


def test_a_scan_body_that_returns_no_pair() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.scan(lambda c, v: c + v, 0.0, X),  # here
        "scan at @here: the body must return a pair (carry, y)\n  got *\n"
        "  help: return (carry, None) where there is nothing to stack",
    )


def test_a_condition_of_many_elements() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.while_loop(lambda u: u < 3, lambda u: u + 1, X),  # here
        "while_loop at @here: the condition must return one bool[]\n  got bool[3]\n"
        "  help: compare, or reduce with .any() or .all()",
    )


def test_branches_of_different_shapes() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.cond(X.sum() > 0, lambda v: v, lambda v: v[0], X),  # here
        "cond at @here\n  true_fun returns f64[3] but false_fun returns f64[]\n"
        "  help: cast or reshape the results of one, so that all agree",
    )


def test_branches_of_different_structures() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.cond(X.sum() > 0, lambda v: (v, v), lambda v: v, X),  # here
        "cond at @here\n  true_fun returns (*, *) but false_fun returns *\n"
        "  help: return the same structure from every branch",
    )


def test_branches_that_differ_inside_a_tree() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.cond(X.sum() > 0, lambda v: {"u": [v, v]}, lambda v: {"u": [v, v[0]]}, X),  # here
        "cond at @here\n  true_fun returns f64[3] but false_fun returns f64[] for 'result['u'][1]'\n"
        "  help: cast or reshape the results of one, so that all agree",
    )


def test_branches_of_a_switch_that_differ_inside_a_tree() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.switch(1, [lambda v: {"u": v}, lambda v: {"u": v[0]}], X),  # here
        "switch at @here\n  branch 1 returns f64[] but branch 0 returns f64[3] for 'result['u']'\n"
        "  help: cast or reshape the results of one, so that all agree",
    )


def test_branches_whose_structures_part_inside_a_tree() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.cond(X.sum() > 0, lambda v: {"a": v, "u": [v, (v, v)]}, lambda v: {"a": v, "u": [v, v]}, X),  # here
        "cond at @here\n  true_fun returns (*, *) but false_fun returns * for 'result['u'][1]'\n"
        "  help: return the same structure from every branch",
    )


def test_a_body_that_changes_the_structure_inside_its_carry() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.scan(lambda c, u: ({"n": c["n"], "s": (c["s"], None)}, u), {"n": 0, "s": X}, X),  # here
        "scan at @here\n  carry 'c['s']' enters as * but the body returns (*, None)\n"
        "  help: return the structure that the body takes",
    )


def test_branches_that_are_values() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.cond(X.sum() > 0, X, -X),  # here
        "cond at @here takes a function\n  got Array\n  help: pass the function itself, not the result of a call",
    )


def test_a_switch_of_one_function() -> None:
    branches: Any = tnp.sin
    fails(
        errors.ArgumentError,
        lambda: lax.switch(0, branches, X),  # here
        "switch at @here takes a sequence of functions\n  got function\n  help: switch(index, [f, g], *operands)",
    )


def test_trees_of_different_structures() -> None:
    fails(
        errors.ArgumentError,
        lambda: tracer.tree.map(lambda a, b: a + b, {"w": X}, {"v": X}),  # here
        "tree.map at @here: the trees have different structures\n  got {'w': *} and {'v': *}\n"
        "  help: every tree must have the structure of the first",
    )


def test_an_associative_scan_whose_function_changes_types() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.associative_scan(lambda a, b: {"m": a["m"] > b["m"]}, {"m": X}),  # here
        "associative_scan at @here\n  \"elems['m']\" goes in as f64[1] but fn returns bool[1]\n"
        "  help: fn works on many pairs at once, along the axis, and keeps shapes and dtypes",
    )


def test_an_associative_scan_whose_function_changes_the_structure() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.associative_scan(lambda a, b: (a, b), X),  # here
        "associative_scan at @here\n  'elems' goes in as * but fn returns (*, *)\n"
        "  help: return the structure that fn takes",
    )


def test_an_associative_scan_of_different_lengths() -> None:
    fails(
        errors.ShapeError,
        lambda: lax.associative_scan(lambda a, b: a, (X, tnp.ones(4))),  # here
        "associative_scan at @here: the axes differ in size\n  elems[0] has size 3\n  elems[1] has size 4\n"
        "  help: slice or pad them",
    )


def test_a_bound_of_a_loop_that_is_an_array() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.fori_loop(0, X, lambda i, c: c, 0),  # here
        "fori_loop at @here: the bounds are two integers, or two floats, without axes\n  got i64*[] and f64[3]\n"
        "  help: cast them, int(n) or n.astype(int); while_loop takes other conditions",
    )


def test_bounds_of_a_loop_that_are_an_integer_and_a_float() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.fori_loop(0, 3.0, lambda i, c: c, 0),  # here
        "fori_loop at @here: the bounds are two integers, or two floats, without axes\n  got i64*[] and f64*[]\n"
        "  help: cast them, int(n) or n.astype(int); while_loop takes other conditions",
    )


def test_a_batch_size_that_is_none_of_a_batch() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.map(lambda v: v, X, batch_size=0),  # here
        "map at @here: batch_size is a positive integer\n  got 0\n  help: None takes one at once",
    )


def test_mapping_over_a_number() -> None:
    with pytest.raises(errors.ShapeError, match=r"^map at test_control_flow.py:\d+: the xs are scanned along axis 0"):
        lax.map(lambda v: v, {"a": X, "b": 2.0})


WRONG_CALLS: dict[str, tuple[type[Exception], Any, list[str]]] = {
    "the function of map second": (
        errors.ArgumentError,
        lambda: lax.map(X, lambda x: x),
        ["map at @here takes a function", "got Array", "help: pass the function itself, not the result of a call"],
    ),
    "map to a string": (
        errors.ArgumentError,
        lambda: lax.map(lambda x: {"a": "b"}, X),
        [
            "the function of map at @here returned a value that is not an array",
            "got str for the result at ['a']",
            "help: return arrays and numbers, or trees of them",
        ],
    ),
    "map of a scalar": (
        errors.ShapeError,
        lambda: lax.map(lambda x: x, 3.0),
        [
            "map at @here: the xs are scanned along axis 0",
            "xs has none",
            "help: give it an axis, x[None]; a function may read further values by name",
        ],
    ),
    "map of nothing": (
        errors.ArgumentError,
        lambda: lax.map(lambda x: x, None),
        ["map at @here: the number of iterations is unknown", "got no arrays", "help: give arrays with an axis"],
    ),
    "a scan of negative length": (
        errors.ArgumentError,
        lambda: lax.scan(lambda c, x: (c, None), 0.0, None, length=-3),
        ["scan at @here: the length is 0 or more", "got -3", "help: use max(0, n) where n may be negative"],
    ),
    "an associative scan without a return": (
        errors.CarryTypeError,
        lambda: lax.associative_scan(lambda a, b: None, {"m": X}),
        ["associative_scan at @here", "'elems' goes in as {'m': *} but fn returns None", "help: is there a `return`?"],
    ),
    "no predicate": (
        errors.ArgumentError,
        lambda: lax.cond(None, lambda x: x, lambda x: x, X),
        ["cond at @here: the predicate is not an array", "got None", "help: pass an array, a number or a list of them"],
    ),
    "an index that is a float": (
        errors.ArgumentError,
        lambda: lax.switch(0.5, [lambda x: x, lambda x: -x], X),
        [
            "switch at @here: an integer chooses one of the branches",
            "got an index f64*[] for 2 branches",
            "help: cast the index, i.astype(int); cond takes a bool",
        ],
    ),
    "no branches": (
        errors.ArgumentError,
        lambda: lax.switch(0, [], X),
        [
            "switch at @here: an integer chooses one of the branches",
            "got an index i64*[] for 0 branches",
            "help: give one branch at least",
        ],
    ),
}


@each("name", WRONG_CALLS)
def test_wrong_calls_of_control_flow(name: str) -> None:
    kind, mistake, expected = WRONG_CALLS[name]
    with pytest.raises(kind) as caught:
        mistake()
    assert type(caught.value) is kind
    assert re.sub(r"test_control_flow\.py:\d+", "@here", str(caught.value)) == "\n  ".join(expected)


def test_map_of_a_function_of_two() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.map(lambda x, y: x, (X, X)),  # type: ignore[misc,arg-type]  # here
        "the function of map at @here is called with 1 argument\n"
        "  test_map_of_a_function_of_two.<locals>.<lambda>.<locals>.<lambda>() missing 1 required positional "
        "argument: 'y'\n  help: give the function these parameters",
    )
