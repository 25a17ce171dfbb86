"""Derivatives of reads and writes out of bounds raise where their primal parts would, though those be unused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax
from tracer.errors import OutOfBoundsError

W = np.arange(5.0)
M = np.arange(12.0).reshape(3, 4)


def total(read: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: tnp.sum(read(*xs))


def tangent(w: Any, i: Any) -> Any:
    return tracer.jvp(lambda w: w[i], (w,), (w,))[1]


def written(name: str) -> Callable[..., Any]:
    """The gradient of the elements written: nothing reads what was written over, and the values pass through."""
    return tracer.grad(total(lambda v, i: getattr(tnp.asarray(W).at[i], name)(v)))


def of_loop(stop: Any) -> Callable[..., Any]:
    return tracer.grad(lambda w, i: lax.fori_loop(0, stop, lambda k, c: c + w[k + i], 0.0))


def of_while(w: Any, i: Any) -> Any:
    """A loop of i steps, known at run time."""
    return lax.while_loop(lambda s: s[0] < i, lambda s: (s[0] + 1, s[1] + w[s[0]]), (0, 0.0))[1]


def transposed(w: Any, i: Any) -> Any:
    (ct,) = tracer.linear_transpose(lambda w: w[i], w)(tnp.ones(i.shape))
    return ct


# what is differentiated, arguments that are out of bounds, what the error says
CASES: list[tuple[str, Callable[..., Any], tuple[Any, ...], str]] = [
    ("grad", tracer.grad(total(lambda w, i: w[i])), (W, np.array([1, 7])), "index 7 .* axis 0 with size 5"),
    ("below", tracer.grad(total(lambda w, i: w[i])), (W, np.array([1, -6])), "index -6 .* axis 0 with size 5"),
    ("value and grad", tracer.value_and_grad(total(lambda w, i: w[i])), (W, np.array([7])), "index 7"),
    ("jvp", tangent, (W, np.array([1, 7])), "index 7"),
    ("jacrev", tracer.jacrev(lambda w, i: w[i]), (W, np.array([1, 7])), "index 7"),
    ("jacfwd", tracer.jacfwd(lambda w, i: w[i]), (W, np.array([1, 7])), "index 7"),
    ("second", tracer.grad(total(tracer.grad(total(lambda w, i: w[i] ** 2)))), (W, np.array([7])), "index 7"),
    ("one element", tracer.grad(lambda w, i: w[i]), (W, 9), "index 9"),
    ("two axes", tracer.grad(total(lambda m, i: m[i, i + 2])), (M, np.array([1, 2])), "index 4 .* axis 1 with size 4"),
    ("first axis", tracer.grad(total(lambda m, i: m[i, i])), (M, np.array([1, 3])), "index 3 .* axis 0 with size 3"),
    ("rows", tracer.grad(total(lambda m, i: m[i])), (M, np.array([0, 3])), "index 3 .* axis 0 with size 3"),
    ("columns", tracer.grad(total(lambda m, i: m[:, i])), (M, np.array([0, 4])), "index 4 .* axis 1 with size 4"),
    ("take", tracer.grad(total(tnp.take)), (W, np.array([5])), "index 5"),
    ("set", written("set"), (np.ones(2), np.array([1, 7])), "index 7"),
    ("add", written("add"), (np.ones(2), np.array([1, 7])), "index 7"),
    ("multiply", written("multiply"), (np.ones(2), np.array([1, 7])), "index 7"),
    ("max", written("max"), (np.ones(2), np.array([1, 7])), "index 7"),
    ("min", written("min"), (np.ones(2), np.array([1, 7])), "index 7"),
    ("lanes", tracer.vmap(tracer.grad(lambda w, i: w[i]), (None, 0)), (W, np.array([1, 7])), "index 7"),
    ("lanes within", tracer.grad(total(tracer.vmap(lambda w, i: w[i], (None, 0)))), (W, np.array([7])), "index 7"),
    ("rows of lanes", tracer.vmap(tracer.grad(lambda w, i: w[i])), (M, np.array([1, 0, 4])), "index 4 .* size 4"),
    ("scan", tracer.grad(lambda w, i: lax.scan(lambda c, k: (c + w[k], None), 0.0, i)[0]), (W, np.array([1, 7])), "7"),
    ("fori", of_loop(7), (W, 0), "index 5"),
    ("while", tracer.grad(of_while), (W, 9), "index 5"),
    ("while in lanes", tracer.vmap(tracer.grad(of_while), (None, 0)), (W, np.array([2, 6])), "index 5"),
    ("branch", tracer.grad(lambda w, i: lax.cond(i > 0, lambda: w[i], lambda: w[0])), (W, 9), "index 9"),
    ("checkpoint", tracer.grad(tracer.checkpoint(total(lambda w, i: w[i]))), (W, np.array([7])), "index 7"),
    ("jit within", tracer.grad(tracer.jit(total(lambda w, i: w[i]))), (W, np.array([7])), "index 7"),
    ("transpose", transposed, (W, np.array([7])), "index 7"),
    ("of nothing", tracer.grad(total(lambda w, i: w[i])), (np.zeros(0), np.array([0])), "index 0 .* size 0"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "operands", "says"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_derivative_has_the_fault_of_what_it_differentiates(
    function: Callable[..., Any], operands: tuple[Any, ...], says: str
) -> None:
    arrays = [tnp.asarray(x) for x in operands]
    for run in (function, tracer.jit(function)):
        with pytest.raises(OutOfBoundsError, match=says) as caught:
            run(*arrays)
        assert "test_checked_accesses.py" in str(caught.value)


@pytest.mark.parametrize(
    ("function", "operands", "wanted"),
    [
        (tracer.grad(total(lambda w, i: w[i])), (W, np.array([1, -1, 1])), [0, 2, 0, 0, 1]),
        (tracer.grad(total(lambda w, i: w[i])), (np.zeros(0), np.zeros(0, int)), []),
        (tracer.grad(total(lambda w, i: w.at[i].get(mode="clip"))), (W, np.array([1, 7])), [0, 1, 0, 0, 1]),
        (tracer.grad(total(lambda w, i: w.at[i].get(mode="fill"))), (W, np.array([1, 7])), [0, 1, 0, 0, 0]),
        (written("set"), (np.ones(3), np.array([1, 1, 4])), [0, 1, 1]),
        (of_loop(5), (W, 0), [1, 1, 1, 1, 1]),
        (tracer.vmap(tracer.grad(of_while), (None, 0)), (W, np.array([2, 5])), [[1, 1, 0, 0, 0], [1] * 5]),
        (  # the lane whose index is out of bounds takes the other branch
            tracer.vmap(tracer.grad(lambda w, i: lax.cond(i > 4, lambda: w[0], lambda: w[i])), (None, 0)),
            (W, np.array([1, 7])), [[0, 1, 0, 0, 0], [1, 0, 0, 0, 0]],
        ),
        (tracer.grad(lambda w, i: lax.cond(i < 0, lambda: w[i], lambda: w[0])), (W, 9), [1, 0, 0, 0, 0]),
    ],
)  # fmt: skip
def test_what_is_in_bounds_or_never_read_has_none(
    function: Callable[..., Any], operands: tuple[Any, ...], wanted: Any
) -> None:
    arrays = [tnp.asarray(x) for x in operands]
    for run in (function, tracer.jit(function)):
        np.testing.assert_array_equal(run(*arrays), wanted)


def test_indices_are_checked_once() -> None:
    """The read and its derivative share the check; what is differentiated again has no other."""
    gradient = tracer.value_and_grad(total(lambda w, i: w[i] ** 2))
    for function in (gradient, tracer.grad(total(lambda w, i: gradient(w, i)[1]))):
        text = str(tracer.make_program(function)(W, np.array([1, 2])))
        assert text.count("checked_indices(") == 1
        assert "GatherScatterMode.CHECKED" not in text
