"""Fresh handles for results, so that `x[i] = v` on a function's result does not change its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tracer.primitives.base.shapes import copy
from tracer.runtime.values.copying import copied
from tracer.trace.array import Array, concrete, renewed, traced
from tracer.trace.state import state
from tracer.trace.trace import check_alive

P = ParamSpec("P")
R = TypeVar("R")


def another(x: Array) -> Array:
    """Return a second handle on the value. Raises LeakedTracerError if the value's trace is over."""
    check_alive(x)
    if x._trace is not None and x._atom is not None:
        return traced(x._trace, x._atom, x._value)
    if x._trace is not None:
        return renewed(x)  # on a device
    if state.innermost is None:
        return concrete(x._value, x._weak, x._type)
    return copy(x)  # type: ignore[no-any-return]  # a new handle would be captured, but its updates not read


def duplicate(x: Array) -> Array:
    """Return a copy of the array, in memory of its own outside traces. Raises LeakedTracerError as `another` does."""
    check_alive(x)
    if x._trace is None and state.innermost is None:
        return concrete(copied(x._value, x._value.dtype), x._weak, x._type)
    return another(x)


def apart(result: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
    """Return the result with fresh handles for arguments, and copies of NumPy arguments' memory.

    An array in a list or tuple of the arguments counts as an argument.
    """
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
    """Whether a value is a NumPy array among the arguments, or a view of one."""
    return any(isinstance(y, np.ndarray) and (y is value or y is getattr(value, "base", None)) for y in given)


def makes_new(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function wrapped so that its results are never its arguments' handles. A decorator."""

    @wraps(function)
    def made(*args: P.args, **kwargs: P.kwargs) -> R:
        return apart(function(*args, **kwargs), args, kwargs)  # type: ignore[no-any-return]

    return made
