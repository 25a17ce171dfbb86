"""Wrapping of NumPy values as arrays of a given IR type."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir.types import ArrayType, Float0Type, StackType, Type, storage_type
from tracer.trace.array import Array, concrete


def wrapped(value: Any, type: Type) -> Array:
    """Return a reference's result as an array of the type, in C order."""
    return concrete(stored(value, type), isinstance(type, ArrayType) and type.weak, type)


def stored(value: Any, type: Type) -> Any:
    """Return a reference's result as a NumPy array in C order, of the storage's dtype and shape."""
    if isinstance(type, StackType | Float0Type):
        return value
    storage = storage_type(type)
    array = np.asarray(value, order="C")
    if array.dtype is not storage.dtype:
        assert array.dtype == storage.dtype, f"{array.dtype} where {type} was inferred"
        array = array.view(storage.dtype)
    if array.shape != storage.shape:
        array = np.ascontiguousarray(np.broadcast_to(array, storage.shape))
    return array
