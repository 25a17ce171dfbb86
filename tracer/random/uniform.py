"""Uniform samples: raw bits, floats, integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType, finfo
from tracer.ir.program import Literal
from tracer.ir.types import Shape
from tracer.primitives.arrays.random import UINT_DTYPES, random_bits
from tracer.primitives.elementwise.arithmetic import add, clamp, mul, sub
from tracer.primitives.elementwise.arithmetic import max as maximum
from tracer.primitives.elementwise.bits import and_, or_, shift_right_logical
from tracer.primitives.elementwise.comparison import gt, le, select
from tracer.primitives.elementwise.conversion import bitcast_convert_type, convert_element_type, dtype_named
from tracer.primitives.elementwise.rounding import rem
from tracer.random.arguments import (
    Parameter,
    cast,
    fitted,
    float_dtype,
    integer_dtype,
    joint_shape,
    one_key,
    operand,
    shape_of,
)
from tracer.random.keys import split_keys
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.trace import Operand, as_literal


def bits(key: Parameter, shape: Any = (), dtype: Any = None) -> Array:
    """Draw random bits as unsigned integers, uint64 unless another unsigned `dtype` is given.

    Raises DTypeError for a dtype that is not an unsigned integer's.

    >>> tracer.random.bits(tracer.random.key(0), (2,), "uint8")
    Array([167, 146], u8)
    """
    keys, sizes = one_key("bits", key), shape_of("bits", shape)
    chosen = dtypes.U64 if dtype is None else dtype_named("random.bits", dtype)
    if not dtypes.is_unsigned(chosen):
        raise DTypeError(
            message(f"random.bits{here()} gives unsigned integers", f"got dtype {chosen}", help="as in dtype='uint32'")
        )
    return random_bits(keys, 8 * chosen.itemsize, sizes)


def uniform(
    key: Parameter, shape: Any = (), dtype: Any = None, minval: Parameter = 0.0, maxval: Parameter = 1.0
) -> Array:
    """Draw samples from [minval, maxval), of `shape`, to which the bounds broadcast.

    minval, maxval: numbers or arrays. A sample has as many random bits as the dtype's mantissa: multiples of 2**-52 in
    float64, 2**-23 in float32.

    >>> tracer.random.uniform(tracer.random.key(0), (3,))
    Array([0.41845711, 0.21629545, 0.96532146], f64)
    """
    keys, chosen = one_key("uniform", key), float_dtype("uniform", dtype)
    low, high = operand("uniform", minval), operand("uniform", maxval)
    return uniform_of(keys, joint_shape("uniform", shape, low, high), chosen, low, high)


def uniform_of(key: Array, shape: Shape, dtype: DType, minval: Parameter = 0.0, maxval: Parameter = 1.0) -> Array:
    """Draw from a typed key by JAX's algorithm: random mantissa bits in [1, 2), shifted and scaled."""
    info = finfo(dtype)
    low, high = (fitted(operand("uniform", x), shape, dtype) for x in (minval, maxval))
    width = info.bits if info.nmant >= 8 else 8
    words = random_bits(key, width, shape)
    if width != info.bits:
        words = convert_element_type(words, UINT_DTYPES[info.bits])
    one: np.generic = np.ones(1, dtype).view(UINT_DTYPES[info.bits])[0]
    pattern = or_(shift_right_logical(words, width - info.nmant), as_literal(one))
    floats: Array = sub(bitcast_convert_type(pattern, dtype), 1)
    if isinstance(low, Literal) and isinstance(high, Literal) and (low.value, high.value) == (0, 1):
        return floats
    scaled: Array = maximum(low, add(mul(floats, sub(high, low)), low))
    return scaled


def randint(key: Parameter, shape: Any, minval: Parameter, maxval: Parameter, dtype: Any = None) -> Array:
    """Draw integers from [minval, maxval), of `shape`, to which the bounds broadcast.

    dtype: of integers, by default `config.default_int`.

    minval, maxval: integers, numbers or arrays [*s]. Raises DTypeError for bounds or a dtype that are not integers.

    Returns minval where maxval is not larger. The bias is below (maxval - minval) / 2**64 for dtypes of up to 32 bits.

    >>> tracer.random.randint(tracer.random.key(0), (3,), 0, 10)
    Array([5, 1, 5], i64)
    """
    keys, chosen = one_key("randint", key), integer_dtype("randint", dtype)
    low, high = operand("randint", minval), operand("randint", maxval)
    sizes = joint_shape("randint", shape, low, high)
    limits = dtypes.iinfo(chosen)
    if limits.bits == 32 or limits.bits == 64:
        return _integers(keys, sizes, low, high, chosen)
    low = clamp(int(limits.min), cast(low, dtypes.I32), int(limits.max))
    high = clamp(int(limits.min), cast(high, dtypes.I32), int(limits.max) + 1)
    result: Array = convert_element_type(_integers(keys, sizes, low, high, dtypes.I32), chosen)
    return result


def _integers(key: Array, shape: Shape, low: Operand, high: Operand, dtype: DType) -> Array:
    """Draw integers by JAX's algorithm: the remainder of an integer of twice the width, made of two draws."""
    width, unsigned = 8 * dtype.itemsize, UINT_DTYPES[8 * dtype.itemsize]
    low, high = (x if dtypes.is_integer(_dtype(x)) else cast(x, dtypes.I64) for x in (low, high))
    too_high = fitted(gt(high, _clipped(np.iinfo(dtype).max, _dtype(high))), shape, dtypes.BOOL)
    low, high = (fitted(cast(_clipped(x, dtype), dtype), shape, dtype) for x in (low, high))
    first, second = split_keys(key, 2)
    higher, lower = random_bits(first, width, shape), random_bits(second, width, shape)
    empty = le(high, low)
    span = cast(sub(high, low), unsigned)
    span = select(empty, 1, span)
    # one more where maxval is beyond the dtype; a span of the whole range wraps to 0, and x rem 0 is x
    span = select(and_(too_high, gt(high, low)), add(span, 1), span)
    multiplier = rem(as_literal(2 ** (width // 2), unsigned), span)
    multiplier = rem(mul(multiplier, multiplier), span)
    offset = rem(add(mul(rem(higher, span), multiplier), rem(lower, span)), span)
    result: Array = add(low, convert_element_type(offset, dtype))
    return result


def _dtype(x: Operand) -> DType:
    return x.type.dtype  # type: ignore[union-attr]  # an array or a literal


def _clipped(x: Any, dtype: DType) -> Any:
    """Return integers clamped to the range of the dtype, in their own dtype."""
    limits = np.iinfo(dtype)
    if isinstance(x, int):
        return min(max(x, int(limits.min)), int(limits.max))
    own = np.iinfo(_dtype(x))
    return clamp(max(int(own.min), int(limits.min)), x, min(int(own.max), int(limits.max)))
