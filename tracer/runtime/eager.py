"""Eager execution: outside any trace a primitive runs at once, by its NumPy reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracer.ir.primitive import Primitive
from tracer.ir.program import Literal
from tracer.ir.types import ArrayType, Float0Type, KeyType, StackType, Type, storage_type, with_shape
from tracer.primitives.reference import reference_outputs
from tracer.trace.array import Array, concrete
from tracer.trace.trace import Operand


def execute(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> list[Array]:
    """The outputs of a primitive on concrete arrays and literals."""
    types = output_types(primitive, operands, params)
    values = [np.asarray(x.value, x.type.dtype) if isinstance(x, Literal) else x._value for x in operands]
    outputs = reference_outputs(primitive, values, params)
    return [wrapped(value, type) for value, type in zip(outputs, types, strict=True)]


def output_types(
    primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]
) -> tuple[Type, ...]:
    """As `infer_types`, for operands: scalar literals of `splat` primitives take the shape of the arrays."""
    types = [x.type for x in operands]
    if primitive.splat:
        shape = next((x.shape for x in operands if isinstance(x, Array)), ())
        types = [with_shape(x.type, shape) if isinstance(x, Literal) else x.type for x in operands]
    result = primitive.infer(*types, **params)
    return tuple(result) if primitive.multiple else (result,)


def wrapped(value: Any, type: Type) -> Array:
    """A reference's result as an array that owns its memory in C order."""
    if isinstance(type, StackType | Float0Type):
        return concrete(value, False, type)
    storage = storage_type(type)
    array = np.asarray(value, order="C")
    assert array.dtype == storage.dtype, f"{array.dtype} where {type} was inferred"
    if array.shape != storage.shape:
        array = np.ascontiguousarray(np.broadcast_to(array, storage.shape))
    weak = isinstance(type, ArrayType) and type.weak
    return concrete(array, weak, type if isinstance(type, KeyType) else None)
