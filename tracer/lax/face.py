"""The functions of `tracer.primitives` for users: NumPy arrays are taken as arguments, and results are arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tracer.ir.program import Literal
from tracer.primitives.broadcasting import broadcast_in_dim
from tracer.runtime.replay import replayed
from tracer.trace.array import Array
from tracer.trace.convert import as_array

F = TypeVar("F", bound=Callable[..., Any])


def public(function: F) -> F:
    """The function with NumPy arrays, alone or in lists, turned into arrays, and literals among its results too.

    Frequent calls are replayed: it must look at no elements.
    """

    @wraps(function)
    def face(*args: Any, **kwargs: Any) -> Any:
        result = function(*map(_given, args), **{name: _given(value) for name, value in kwargs.items()})
        return _array(result) if isinstance(result, Literal) else result

    return replayed(face)  # type: ignore[return-value]  # the same signature


def _given(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype != np.object_:
        return as_array(value)
    if isinstance(value, list | tuple) and any(isinstance(v, np.ndarray) for v in value):
        return type(value)(map(_given, value))
    return value


def _array(value: Literal) -> Array:
    result: Array = broadcast_in_dim(value, (), ())
    return result
