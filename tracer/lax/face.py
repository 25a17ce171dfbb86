"""Public functions made from `tracer.primitives`: they take NumPy arrays and return arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tracer.ir.program import Literal
from tracer.ir.types import Shape
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.rules import kind_of
from tracer.primitives.elementwise.divisors import checked_divisor
from tracer.runtime.eager.call_cache import cached
from tracer.settings import config
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.trace import as_literal

F = TypeVar("F", bound=Callable[..., Any])


def public(function: F) -> F:
    """Return a primitive's function that also accepts NumPy arrays, alone or in lists, and returns arrays.

    Its calls are prepared once for each signature, so its operations must not depend on elements.
    """

    @wraps(function)
    def face(*args: Any, **kwargs: Any) -> Any:
        result = function(*map(_given, args), **{name: _given(value) for name, value in kwargs.items()})
        return _array(result) if isinstance(result, Literal) else result

    return cached(face)  # type: ignore[return-value]  # the same signature


def strict(function: F, *, selector: str | None = None, divisor: bool = False) -> F:
    """Return `public` for operands of one dtype: no operand is converted where that could lose information.

    NumPy scalars keep their dtype. Python numbers take the dtype of the arrays beside them, unless its kind is lower;
    the primitive refuses operands that then differ. Arrays without axes are broadcast to the other operands' shape.
    selector: the name of a first operand that chooses among all other operands and may differ from them. divisor:
    whether the last operand is one.
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
        if divisor and config.debug_division and len(found) == 2:
            number = not isinstance(found[1], Array | Literal)
            given = as_literal(found[1], arrays[0].dtype if arrays else None) if number else found[1]
            found[1] = checked_divisor(function.__name__, given)
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
