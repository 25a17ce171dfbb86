"""Errors come without another error above them, whichever way a call took before it failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tracer
import tracer.numpy as tnp
from tracer import grad, lax

X = tnp.arange(5.0)
PLACES = tnp.asarray([1, 2])
BEYOND = tnp.asarray([1, 9])
NARROW = X.astype("float8_e4m3fn")


def prepared(function: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """Return the function after a call, which prepares its operations."""
    function(*args)
    return function


def leaked() -> Any:
    kept: list[Any] = []
    tracer.jit(lambda x: kept.append(x) or x)(X)
    return kept[0]


MISTAKES: dict[str, Callable[[], Any]] = {
    "an argument that is not an array": lambda: tnp.add(X, object()),
    "a leaked array": lambda: leaked() + 1,
    "a prepared operation": lambda: prepared(tnp.take, X, PLACES)(X, BEYOND),
    "a prepared derivative": lambda: prepared(grad(lambda x, i: tnp.take(x, i).sum()), X, PLACES)(X, BEYOND),
    "a derivative of functions made anew": lambda: [
        grad(lambda x, i: tnp.take(x, i).sum())(X, i) for i in (PLACES, BEYOND)
    ],
    "narrow floats": lambda: lax.add(NARROW, NARROW[:1]),
    "a tangent that is not an array": lambda: tracer.jvp(tnp.sin, (X,), ("one",)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_error_stands_alone(name: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whichever it is
        MISTAKES[name]()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
