"""Operands of elementwise functions: arrays of one dtype and one shape. Narrow floats are computed in f32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.ir import dtypes
from tracer.numpy import broadcast_arrays
from tracer.numpy.core.conversion import array_of, cast
from tracer.numpy.core.promotion import promoted_real
from tracer.trace.array import Array


def operands(name: str, *values: Any) -> list[Array]:
    """Return the values as real arrays of one float dtype and one shape. Raises DTypeError for complex numbers."""
    found = [array_of(name, v if isinstance(v, Array) else v.value) for v in promoted_real(name, *values)]
    return list(broadcast_arrays(*found)) if len(found) > 1 else found


def at_elements(formula: Callable[..., Any], name: str, *values: Any) -> Array:
    """Return a formula of the operands, in their dtype; narrow floats are computed in f32."""
    given = operands(name, *values)
    dtype = given[0].dtype
    if dtype.itemsize >= 4:
        return array_of(name, formula(*given))
    return array_of(name, formula(*(x.astype("float32") for x in given))).astype(dtype)


def in_double(name: str, formula: Callable[..., Array], *values: Any) -> Array:
    """Return a formula of the operands cast to float64, in their promoted dtype."""
    given = operands(name, *values)
    return cast(formula(*(cast(x, dtypes.F64) for x in given)), given[0].dtype)
