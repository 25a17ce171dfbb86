"""Checks with values in their text: eagerly, compiled, differentiated and in batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, lax, vmap
from tracer.errors import ArgumentError, CheckError, ShapeError


def f(x: Any) -> Any:
    tracer.check(x > 0, "x is {:.2f}, {n} of {what}", x, n=x * 2, what="all")
    return x * x


WAYS = {
    "eager": f, "jit": jit(f), "grad": grad(f), "jit of grad": jit(grad(f)), "grad of jit": grad(jit(f)),
    "in a loop": jit(lambda x: lax.fori_loop(0, 3, lambda i, c: c + f(x), 0.0)),
    "in a lane": lambda x: vmap(f)(np.array([2.0, x, x / 2])), "in a compiled lane": lambda x: jit(vmap(f))(
        np.array([2.0, x, x / 2])
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_values_are_formatted_when_the_check_fails(way: str) -> None:
    WAYS[way](3.0)
    line = f.__code__.co_firstlineno + 1
    with pytest.raises(CheckError) as caught:
        WAYS[way](-1.0)
    assert str(caught.value) == f"check failed at test_checks.py:{line}: x is -1.00, -2.0 of all"


def test_dead_lanes_and_untaken_branches_are_not_checked() -> None:
    safe = jit(vmap(lambda x: lax.cond(x > 0, f, lambda v: v, x)))
    assert safe(np.array([2.0, -1.0])).tolist() == [4.0, -1.0]


def test_arrays_are_shown_as_numpy_shows_them() -> None:
    with pytest.raises(CheckError, match=r": got \[1\. 2\.\] of bool\n  more: "):
        jit(lambda x: tracer.check(x.sum() < 0, "got {} of {}", x, "bool"))(tnp.asarray([1.0, 2.0]))


def test_text_without_values_may_have_braces() -> None:
    with pytest.raises(CheckError, match=r": a \{set\}\n  more: "):
        tracer.check(False, "a {set}")


def test_wrong_calls_are_refused_before_the_code_runs() -> None:
    for kind, call, text in (
        (ShapeError, lambda: tracer.check(tnp.ones(2) > 0, "{}", 1), r"takes a condition bool\[\]"),
        (ArgumentError, lambda: tracer.check(True, "{}", 1, 2), "the format leaves values out"),
        (ArgumentError, lambda: tracer.check(True, "{a}", 1), "the format names values that were not given"),
        (ArgumentError, lambda: tracer.check(True, 5, 1), "the text comes after the condition"),
    ):
        with pytest.raises(
            kind, match=rf"^check at test_checks.py:\d+:? {text}" if kind is ShapeError else f": {text}"
        ):
            call()
