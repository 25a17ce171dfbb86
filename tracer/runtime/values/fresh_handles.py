"""Results are handles of their own: `x[i] = v` on what a function returned leaves its arguments as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tracer.primitives.base.shapes import copy
from tracer.trace.array import Array, concrete, traced
from tracer.trace.state import state
from tracer.trace.trace import check_alive

P = ParamSpec("P")
R = TypeVar("R")


def another(x: Array) -> Array:
    """A second handle on the same value. Raises LeakedTracerError where the value's trace is over."""
    check_alive(x)
    if x._trace is not None and x._atom is not None:
        return traced(x._trace, x._atom, x._value)
    if state.innermost is None:
        return concrete(x._value, x._weak, x._type)
    return copy(x)  # type: ignore[no-any-return]  # a handle made here would be captured, and not read again


def apart(result: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
    """The result, in which no array is a handle, or NumPy's memory, that was an argument or an element of one."""
    if type(result) is Array:
        if _is_among(result, args) or (kwargs and _is_among(result, kwargs.values())):
            return another(result)
        if _is_of(result._value, args) or (kwargs and _is_of(result._value, kwargs.values())):
            return concrete(result._value.copy(), result._weak)
        return result
    if type(result) is tuple or type(result) is list:
        return type(result)(apart(x, args, kwargs) for x in result)
    return result


def _is_among(x: Array, given: Iterable[Any]) -> bool:
    return any(y is x or ((type(y) is list or type(y) is tuple) and _is_among(x, y)) for y in given)


def _is_of(value: Any, given: Iterable[Any]) -> bool:
    """Whether an array of NumPy's is, or is a view of, one that was given."""
    return any(isinstance(y, np.ndarray) and (y is value or y is getattr(value, "base", None)) for y in given)


def makes_new(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose results are never its arguments' handles, though they may have the same value."""

    @wraps(function)
    def made(*args: P.args, **kwargs: P.kwargs) -> R:
        return apart(function(*args, **kwargs), args, kwargs)  # type: ignore[no-any-return]

    return made
