"""Functions that callbacks call and that return something else than was promised; trees that leaves do not fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.mistakes.told import X, fails
from tracer import errors, jit

PROMISED = {"a": tracer.ShapeDtypeStruct((3,), "float64")}
CALLS = [tracer.pure_callback, tracer.io_callback]
RETURNED: dict[str, tuple[type[Exception], Callable[[Any], Any], str]] = {
    "shape": (
        errors.ShapeError,
        lambda x: {"a": np.ones((2, 3), np.float32)},
        "result['a'] has the wrong shape\n  expected f64[3], got f32[2,3]",
    ),
    "dtype": (
        errors.DTypeError,
        lambda x: {"a": x + 1j},
        "result['a'] has the wrong dtype\n  expected f64[3], got c128[3]",
    ),
    "text": (
        errors.DTypeError,
        lambda x: {"a": np.asarray(["x", "y", "z"])},
        "result['a'] has the wrong dtype\n  expected f64[3], got <U1 of shape (3,)",
    ),
    "structure": (
        errors.ArgumentError,
        lambda x: {"a": (x,)},
        "result['a'] has the wrong structure\n  expected *, got (*,)",
    ),
    "nothing": (
        errors.ArgumentError,
        lambda x: None,
        "result has the wrong structure\n  expected {'a': *}, got None",
    ),
}


@pytest.mark.parametrize("way", [lambda f: f, jit, lambda f: jit(jit(f))], ids=["eager", "jit", "jit of jit"])
@pytest.mark.parametrize("call", CALLS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("case", RETURNED)
def test_a_callback_that_breaks_its_promise_is_named_with_the_line_that_calls_it(
    case: str, call: Any, way: Any
) -> None:
    kind, function, told = RETURNED[case]
    fails(
        kind,
        lambda: way(lambda x: call(function, PROMISED, x))(X),  # here
        f"{call.__name__} of lambda at @here: {told}\n  help: result_shape_dtypes must say what the function returns",
    )


def test_results_of_callbacks_are_cast_within_their_kind() -> None:
    for returned in (np.ones(3, np.float32), np.ones(3, np.int8), np.ones(3, bool)):
        found = jit(lambda x, returned=returned: tracer.pure_callback(lambda v: {"a": returned}, PROMISED, x))(X)
        assert found["a"].dtype == np.float64
        assert found["a"].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("leaves", [[], [1, 2], [1, 2, 3, 4]])
def test_leaves_that_do_not_fill_a_structure(leaves: list[int]) -> None:
    structure = tracer.tree.structure({"w": [0, 0], "b": 0})
    fails(
        errors.ArgumentError,
        lambda: tracer.tree.unflatten(structure, leaves),  # here
        "tree.unflatten at @here: the structure has another number of leaves\n"
        f"  expected 3 for {{'b': *, 'w': [*, *]}}, got {len(leaves)}\n"
        "  help: one leaf for each *, in the order of tree.leaves; None is not a leaf",
    )


def test_the_structure_after_the_leaves() -> None:
    leaves, structure = tracer.tree.flatten((1, 2))
    wrong: Any = tracer.tree.unflatten
    fails(
        errors.ArgumentError,
        lambda: wrong(leaves, structure),  # here
        "tree.unflatten at @here takes a structure and its leaves\n"
        "  expected a result of tree.structure, got list\n  help: the structure comes first",
    )


def test_a_number_for_leaves() -> None:
    structure = tracer.tree.structure((1, 2))
    fails(
        errors.ArgumentError,
        lambda: tracer.tree.unflatten(structure, 3),  # type: ignore[arg-type]  # here
        "tree.unflatten at @here: the leaves must come in a sequence\n  expected 2 of them, got int\n"
        "  help: a list, as tree.leaves returns",
    )


def test_a_linear_function_of_integers() -> None:
    fails(
        errors.DTypeError,
        lambda: tracer.linear_transpose(lambda p: p["x"] * 2.0, {"n": 3, "x": tnp.ones(2)}),  # here
        "linear_transpose of lambda at @here: argument 0, p['n'] is neither floating nor complex\n"
        "  expected a floating or complex dtype, got i64*[]\n"
        "  help: linear functions take and return floating or complex values: cast with .astype(float)",
    )
