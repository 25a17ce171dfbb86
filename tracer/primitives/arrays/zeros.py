"""Arrays of zeros of any type, where a symbolic zero must become a value."""

from __future__ import annotations

from tracer.errors import InternalError
from tracer.ir import dtypes
from tracer.ir.types import ArrayType, KeyType, Type
from tracer.primitives.arrays.random import random_wrap
from tracer.primitives.base.shapes import broadcast_in_dim
from tracer.trace.array import Array
from tracer.trace.trace import as_literal


def zeros(type: Type) -> Array:
    """Return an array of zeros of the type; for keys, keys of zero words. Raises InternalError for other types."""
    match type:
        case ArrayType(dtype, shape):
            result: Array = broadcast_in_dim(as_literal(dtype.type(0), dtype), shape, ())
            return result
        case KeyType(shape):
            words = broadcast_in_dim(as_literal(dtypes.U32.type(0), dtypes.U32), (*shape, 2), ())
            keys: Array = random_wrap(words)
            return keys
        case _:
            raise InternalError(f"no zeros of type {type}")
