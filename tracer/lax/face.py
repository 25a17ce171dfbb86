"""The functions of `tracer.primitives` for users: NumPy arrays are taken as arguments, and results are arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tracer.ir.program import Literal
from tracer.ir.types import Shape
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.rules import kind_of
from tracer.runtime.eager.call_cache import replayed
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.trace import as_literal

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


def strict(function: F, *, selector: str | None = None) -> F:
    """`public`, for functions of operands of one dtype: none is converted to another's where that could lose something.

    NumPy scalars have their own dtype, Python numbers that of the arrays beside them, unless it is of a lesser kind;
    the primitive refuses what then differs. Arrays without axes are spread to the shape of the others.
    selector: the name of the first operand, where that chooses among the others and is not one of them.
    """

    @wraps(function)
    def alike(*args: Any, **kwargs: Any) -> Any:
        first: Sequence[Any] = ()
        if selector is not None and (args or selector in kwargs):
            first, args = ([kwargs.pop(selector)], args) if selector in kwargs else (args[:1], args[1:])
        values = [_given(value) for value in (*args, *kwargs.values())]
        arrays = [value for value in values if isinstance(value, Array)]
        sizes: Shape = next((x.shape for x in arrays if x.shape), ())
        kind = _KINDS.index(kind_of(arrays[0].dtype)) if arrays else len(_KINDS)
        found = [_operand(value, kind, sizes) for value in values]
        named = dict(zip(kwargs, found[len(args) :], strict=True))
        return function(*map(_given, first), *found[: len(args)], **named)

    return public(alike)  # type: ignore[return-value]  # the same signature


_KINDS = "bifc"


def _operand(value: Any, kind: int, sizes: Shape) -> Any:
    if isinstance(value, np.generic):
        return as_literal(value, value.dtype)
    if isinstance(value, bool | int | float | complex):
        literal = as_literal(value)
        return literal if _KINDS.index(kind_of(literal.type.dtype)) > kind else value
    if isinstance(value, Array) and sizes and not value.shape:
        return broadcast_in_dim(value, sizes, ())
    return value


def _given(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype != np.object_:
        return as_array(value)
    if isinstance(value, list | tuple) and any(isinstance(v, np.ndarray) for v in value):
        return type(value)(map(_given, value))
    return value


def _array(value: Literal) -> Array:
    result: Array = broadcast_in_dim(value, (), ())
    return result
