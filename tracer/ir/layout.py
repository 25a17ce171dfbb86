"""Memory layout of types: scalars per element, and bytes.

Complex numbers take two scalars (real and imaginary part, interleaved), random keys two words.
"""

from __future__ import annotations

from tracer.errors import InternalError
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.types import ArrayType, Float0Type, KeyType, Type, size


def components(type: Type) -> tuple[DType, int]:
    """Return the scalar dtype of an element, and the number of scalars in it. Raises InternalError for stacks."""
    match type:
        case ArrayType(dtype):
            if dtypes.is_complex(dtype):
                return dtypes.real_dtype(dtype), 2
            return dtype, 1
        case KeyType():
            return dtypes.U32, 2
        case Float0Type():
            return dtypes.BOOL, 1
        case _:
            raise InternalError(f"{type} has no elements")


def scalar_count(type: Type) -> int:
    """Count the scalars that the value takes in memory."""
    return size(type) * components(type)[1]


def byte_size(type: Type) -> int:
    return scalar_count(type) * components(type)[0].itemsize
