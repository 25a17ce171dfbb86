"""Arguments of samplers: keys, shapes, dtypes, and parameters that broadcast to a shape."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, TracedValueError, TracerIntegerError, message
from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.dtypes import DType
from tracer.ir.program import Literal
from tracer.ir.types import ArrayType, KeyType, Shape
from tracer.primitives.arrays.random import random_wrap
from tracer.primitives.arrays.slice_pad_concatenate import split
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.shapes import squeeze
from tracer.primitives.elementwise.conversion import convert_element_type, dtype_named
from tracer.settings import config
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import here
from tracer.trace.trace import Operand, as_literal

Parameter = Any  # an array, a NumPy array, a list, or a number

_SAMPLED = (dtypes.F16, dtypes.BF16, dtypes.F32, dtypes.F64)


def operand(name: str, x: Parameter) -> Operand:
    """Return a number as a literal, weak if Python's; an array unchanged; anything else as NumPy converts it."""
    if isinstance(x, Array | Literal):
        return x
    if isinstance(x, int) and not -(2**63) <= x < 2**64:
        raise ArgumentError(message(f"random.{name}{here()}: {x} does not fit in 64 bits", help="reduce it, x % 2**64"))
    if isinstance(x, bool | int | float):
        return as_literal(x)
    array = as_array(np.asarray(x) if isinstance(x, list | tuple) else x, f"random.{name}", copy=False)
    return array if array.shape else as_literal(array._value[()])


def one_key(name: str, key: Parameter) -> Array:
    """Return a single key, also from raw words u32[2]."""
    keys, _ = typed_keys(name, key)
    if keys.shape:
        raise ShapeError(
            message(
                f"random.{name}{here()} takes a single key",
                f"got {keys.type}",
                help=f"use tracer.vmap over random.{name} for several keys",
            )
        )
    return keys


def typed_keys(name: str, key: Parameter) -> tuple[Array, bool]:
    """Return keys, and whether they came as raw words."""
    if isinstance(key, Array | np.ndarray):
        array = operand(name, key)
        assert isinstance(array, Array)
        if isinstance(array.type, KeyType):
            return array, False
        if isinstance(array.type, ArrayType) and array.type.dtype == dtypes.U32 and array.shape[-1:] == (2,):
            return random_wrap(array), True
        got: object = array.type
    else:
        got = type(key).__name__
    raise ArgumentError(
        message(f"random.{name}{here()} takes a key first", f"got {got}", help="make one with tracer.random.key(seed)")
    )


def shape_of(name: str, shape: Any) -> Shape:
    """Return a shape from a tuple, a list, or one integer."""
    sizes = shape if isinstance(shape, Iterable) and getattr(shape, "ndim", None) != 0 else (shape,)
    try:
        result = tuple(operator.index(n) for n in sizes)
    except TracedValueError:
        raise TracerIntegerError(
            message(
                f"random.{name}{here()}: a shape must be known while tracing",
                f"got {shape!r}",
                help="take it from x.shape, or mark the argument static: jit(f, static_argnums=...)",
            )
        ) from None
    except TypeError:
        raise ArgumentError(
            message(f"random.{name}{here()}: a shape is a tuple of integers", f"got {shape!r}", help="as in (3, 4)")
        ) from None
    if min(result, default=0) < 0:
        raise ShapeError(
            message(
                f"random.{name}{here()}: sizes must not be negative", f"got {shapes.show(result)}", help="as in (3, 4)"
            )
        )
    return result


def joint_shape(name: str, shape: Any, *parameters: Operand) -> Shape:
    """Return the given shape, to which the parameters must broadcast; without one, the parameters' joint shape."""
    together = shapes.broadcast(*(p.type.shape for p in parameters), operation=f"random.{name}{here()}")
    if shape is None:
        return together
    result = shape_of(name, shape)
    shown = " and ".join(str(p.type) for p in parameters)
    if not broadcasts_to(together, result):
        raise ShapeError(
            message(
                f"random.{name}{here()}: the parameters must broadcast to the shape",
                f"got parameters {shown} for shape {shapes.show(result)}",
                help="the shape must be the whole result's, parameters included",
            )
        )
    return result


def broadcasts_to(own: Shape, shape: Shape) -> bool:
    """Return whether one shape broadcasts to another."""
    pairs = zip(reversed(own), reversed(shape), strict=False)
    return len(own) <= len(shape) and all(n in (1, m) for n, m in pairs)


def float_dtype(name: str, dtype: Any, *, of_complex: bool = False) -> DType:
    """Return the dtype of real samples, by default `config.default_float`."""
    if dtype is None:
        return config.default_float
    result = dtype_named(f"random.{name}", dtype)
    if result in _SAMPLED or (of_complex and dtypes.is_complex(result)):
        return result
    raise DTypeError(
        message(
            f"random.{name}{here()} samples floats{' and complex numbers' if of_complex else ''}",
            f"got dtype {result}",
            help="float16, bfloat16, float32 or float64; for integers, random.randint or random.bits",
        )
    )


def integer_dtype(name: str, dtype: Any) -> DType:
    """Return the dtype of integer samples, by default `config.default_int`."""
    result = config.default_int if dtype is None else dtype_named(f"random.{name}", dtype)
    if dtypes.is_integer(result):
        return result
    raise DTypeError(
        message(f"random.{name}{here()} samples integers", f"got dtype {result}", help="as in dtype='int32'")
    )


def inexact(x: Operand) -> DType:
    """Return the dtype for sampling a parameter: its own, `config.default_float` for integers and Python floats."""
    assert isinstance(x.type, ArrayType)
    return x.type.dtype if dtypes.is_float(x.type.dtype) and not x.type.weak else config.default_float


def cast(x: Operand, dtype: DType) -> Operand:
    """Return the operand in the dtype, not weak."""
    if isinstance(x, Literal):
        return as_literal(x.value, dtype)
    assert isinstance(x.type, ArrayType)
    return x if x.type.dtype == dtype and not x.type.weak else convert_element_type(x, dtype)


def fitted(x: Operand, shape: Shape, dtype: DType) -> Operand:
    """Return the operand in the dtype and broadcast to the shape; a literal stands for a whole array."""
    result = cast(x, dtype)
    own = result.type.shape
    if isinstance(result, Literal) or own == shape:
        return result
    first = len(shape) - len(own)
    array: Array = broadcast_in_dim(result, shape, tuple(range(first, len(shape))))
    return array


def whole(x: Operand, shape: Shape, dtype: DType) -> Array:
    """Return the operand as an array of the dtype and shape."""
    result = fitted(x, shape, dtype)
    array: Array = result if isinstance(result, Array) else broadcast_in_dim(result, shape, ())
    return array


def halves(pair: Array) -> tuple[Array, Array]:
    """Return both elements of an array's first axis, of size 2."""
    first, second = (squeeze(part, (0,)) for part in split(pair, (1, 1)))
    return first, second
