"""Elementwise changes of dtype: convert_element_type, bitcast_convert_type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.errors import DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.primitive import Composite, Convert, NoRule, Pointwise, Primitive, Rule, Zero
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, Shape, Type, array_type, tangent_type
from tracer.primitives.base.broadcasting import broadcast_in_dim, reduce_sum
from tracer.primitives.base.rules import (
    Value,
    check_kinds,
    operand_of,
    per_operand,
    pointwise,
    pointwise_batch,
    zero_jvp,
)
from tracer.primitives.base.shapes import broadcasted_iota
from tracer.primitives.elementwise.bits import shift_left, shift_right_logical, unsigned_dtype
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.trace import Operand, bind


def dtype_of(x: Operand) -> DType:
    """Return the dtype of an array or literal."""
    return x.dtype if isinstance(x, Array) else x.type.dtype


def dtype_named(name: str, dtype: object) -> DType:
    """Return the dtype that NumPy reads from `dtype`: np.float32, "bfloat16", int, a dtype.

    Raises DTypeError if NumPy reads none, or one that tracer does not support.
    """
    try:
        found: DType | None = np.dtype(dtype)  # type: ignore[call-overload]  # raises if it is no dtype
    except (TypeError, ValueError):  # a text that is no Unicode is a ValueError
        found = None
    if found is None or found not in dtypes.SHORT_NAMES:
        if isinstance(dtype, int):
            raise DTypeError(
                message(
                    f"{name}{here()}: expected a dtype",
                    f"got {dtype!r}",
                    help=f"several sizes or elements go together, as in {name}((2, 3))",
                )
            )
        raise DTypeError(message(f"{name}{here()}: no such dtype", f"got {dtype!r}", help=_in_place_of(found)))
    return found


def _in_place_of(dtype: DType | None) -> str:
    """Suggest a supported dtype in place of one that is not, or is no dtype at all."""
    if dtype is not None and dtype.names:
        return "a record is a dict or a dataclass of arrays, one for each field"
    if dtype is not None and dtype.newbyteorder("=") in dtypes.SHORT_NAMES:
        return f"all arrays are in the machine's order of bytes: take {dtype.newbyteorder('=').name!r}"
    return (
        "the dtypes are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, complex64 and "
        "complex128; for storage, int1 to int4, uint1 to uint4 and ml_dtypes' narrow floats"
    )


# convert_element_type


def _convert_infer(x: Type, *, new_dtype: DType, weak: bool) -> Type:
    check_kinds("convert_element_type", [x], "bifc")
    return array_type(new_dtype, x.shape, weak)


def _convert_reference(x: Any, *, new_dtype: DType, weak: bool) -> Any:
    return converted(x, new_dtype)


def converted(x: Any, dtype: DType) -> Any:
    """Convert a NumPy array as `ScalarOp.CONVERT` defines it. Complex to real drops the imaginary part."""
    if x.dtype == dtype:
        return x
    if dtypes.is_narrow(x.dtype):
        x = x.astype(dtypes.wide_dtype(x.dtype))
    if dtypes.is_bool(dtype):
        return x != x.dtype.type(0)
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype):
        x = x.real
    if dtypes.is_integer(dtype):
        return _saturated(x, dtype) if dtypes.is_float(x.dtype) else x.astype(dtype)
    if dtype.itemsize <= 2 and x.dtype in _WIDE:
        x = _to_odd_single(x)
    if dtypes.is_narrow(dtype):
        x = x.astype(np.float32)
        x = np.where(x == x, x, np.float32(np.nan))  # formats without NaN would keep a NaN's sign
    return x.astype(dtype)


_WIDE = frozenset((dtypes.F64, dtypes.I64, dtypes.U64, dtypes.I32, dtypes.U32))


def _saturated(x: Any, dtype: DType) -> Any:
    """Convert floats to integers: towards zero, clamped to the integer's range, 0 for NaN."""
    x = x.astype(np.float32) if x.dtype.itemsize <= 2 else x
    limits = dtypes.iinfo(dtype)
    low, high = x.dtype.type(limits.min), x.dtype.type(limits.max)  # `high` may round up, out of range
    inside = (x > low) & (x < high)
    cut = np.where(inside, x, x.dtype.type(0)).astype(dtype)
    cut = np.where(x <= low, dtype.type(limits.min), cut)
    return np.where(x >= high, dtype.type(limits.max), cut)


def _to_odd_single(x: Any) -> Any:
    """Convert a wide float to f32, rounding to odd, so that only the second rounding, to a short float, counts.

    Boldo & Melquiond 2008, IEEE Trans. Comput. 57(4).
    """
    if x.dtype in (dtypes.I64, dtypes.U64):
        low = x & x.dtype.type(0xFFFFFF)  # above 2^53, the lowest 24 bits only decide whether x is exact
        small = (x <= x.dtype.type(2**53)) & (x >= -(2**53) if x.dtype == dtypes.I64 else True)
        x = np.where(small, x, (x - low) | (low != 0).astype(x.dtype) << x.dtype.type(23))
    x = x.astype(np.float64)
    near = x.astype(np.float32)
    wide = near.astype(np.float64)
    bits = np.asarray(near).view(np.uint32)
    inexact = (wide != x) & np.isfinite(near)
    away = np.where(np.abs(wide) > np.abs(x), bits - np.uint32(1), bits)  # towards zero
    return np.where(inexact, away | np.uint32(1), bits).view(np.float32)


def _convert_tangent(ctx: Any, dx: Any, x: Any, *, new_dtype: DType, weak: bool) -> Any:
    if not dtypes.is_inexact(new_dtype):
        return Zero(tangent_type(ctx.outputs[0].type))
    return convert_element_type(dx, new_dtype)


convert_element_type_p = Primitive(
    name="convert_element_type", infer=_convert_infer, reference=_convert_reference,
    jvp=per_operand(_convert_tangent),
    transpose=lambda ctx, cts, xs, **params: [convert_element_type(cts[0], xs[0].type.dtype)],
    batch=pointwise_batch, lower=Convert(), splat=True,
)  # fmt: skip


def convert_element_type(operand: Value, new_dtype: object, *, weak: bool = False) -> Any:
    """Convert the operand to another dtype.

    Float to integer truncates, saturates, and gives 0 for NaN. To bool it is `x != 0`. Complex to real drops the
    imaginary part. Between integers it wraps. To a narrower float it rounds to nearest even. weak: whether the result
    gives way in promotion, as Python scalars do.

    operand: an array [*s]; new_dtype: a dtype or its name. Returns it in that dtype, [*s]. Raises DTypeError for random
    keys, and if `new_dtype` is no dtype.

    >>> convert_element_type(tnp.asarray([-1.7, 300.0, np.nan]), np.int8)
    Array([ -1, 127,   0], i8)
    """
    dtype = dtype_named("convert_element_type", new_dtype)
    array = operand_of("convert_element_type", operand)
    if array.type == array_type(dtype, array.type.shape, weak):
        return array
    return pointwise(convert_element_type_p, array, new_dtype=dtype, weak=weak)


def in_single(x: Operand) -> Any:
    """Convert a short float to f32; return anything else as it is."""
    dtype = dtype_of(x)
    return convert_element_type(x, dtypes.F32) if dtypes.is_float(dtype) and dtype.itemsize <= 2 else x


def expand_in_single(expand: Callable[..., Any]) -> Rule:
    """Make an expansion that computes short floats in f32 and rounds the result once."""

    def expanded(*operands: Operand, **params: Any) -> Any:
        return convert_element_type(expand(*map(in_single, operands), **params), dtype_of(operands[0]))

    return expanded


def reference_in_single(function: Callable[..., Any]) -> Rule:
    """Make a reference that computes short floats in f32 and rounds the result once."""

    def reference(*arrays: Any, **params: Any) -> Any:
        dtype = arrays[0].dtype
        if dtypes.is_float(dtype) and dtype.itemsize <= 2:
            return function(*(x.astype(np.float32) for x in arrays), **params).astype(dtype)
        return function(*arrays, **params)

    return reference


# bitcast_convert_type


def _bitcast_infer(x: Type, *, new_dtype: DType) -> Type:
    operand = _with_bits(x, new_dtype)
    if operand.dtype.itemsize != new_dtype.itemsize:
        short = dtypes.short_name(new_dtype)
        raise DTypeError(
            message(
                f"bitcast_convert_type{here()}: dtypes must have equal widths",
                f"got {x} to {short}",
                help="tracer.lax.bitcast_convert_type regroups the bytes of other widths",
            )
        )
    return array_type(new_dtype, operand.shape)


def _regroup_infer(x: Type, *, new_dtype: DType) -> Type:
    operand = _with_bits(x, new_dtype)
    old, new = operand.dtype.itemsize, new_dtype.itemsize
    if old > new:
        return array_type(new_dtype, (*operand.shape, old // new))
    if old == new or not operand.shape or operand.shape[-1] * old != new:
        raise ShapeError(
            message(
                f"bitcast_convert_type{here()}: the last axis must hold the {new} bytes of one result",
                f"got {x} to {dtypes.short_name(new_dtype)}",
                help=f"reshape it so that the last axis has size {new // old}",
            )
        )
    return array_type(new_dtype, operand.shape[:-1])


def _with_bits(x: Type, new_dtype: DType) -> ArrayType:
    """Return the operand's type. Raises DTypeError unless both dtypes are integers or floats of whole bytes."""
    if not isinstance(x, ArrayType) or not _has_bits(x.dtype) or not _has_bits(new_dtype):
        raise DTypeError(
            message(
                f"bitcast_convert_type{here()}: dtypes must be integers or floats of whole bytes",
                f"got {x} to {dtypes.short_name(new_dtype)}",
                help="convert with .astype(...), or take real and imaginary parts first",
            )
        )
    return x


def _has_bits(dtype: DType) -> bool:
    return (dtypes.is_integer(dtype) or dtypes.is_float(dtype)) and dtypes.bits(dtype) == 8 * dtype.itemsize


def _bitcast_reference(x: Any, *, new_dtype: DType) -> Any:
    x, old, new = np.ascontiguousarray(x).reshape(x.shape), x.dtype.itemsize, new_dtype.itemsize
    if old == new:
        return x.view(new_dtype)
    if old > new:
        return x.reshape((*x.shape, 1)).view(new_dtype)
    return x.view(new_dtype).reshape(x.shape[:-1])


def _bitcast_batch(ctx: Any, xs: Any, axes: Any, *, new_dtype: DType) -> tuple[list[Any], list[int | None]]:
    return [bitcast_convert_type(ctx.to_front(xs[0], axes[0]), new_dtype)], [0]


def _regroup_expand(x: Operand, *, new_dtype: DType) -> Any:
    """Regroup bytes by shifts: elements of the narrower dtype are digits of the wider one's bits, low ones first."""
    old, shape = dtype_of(x), x.type.shape
    words = bitcast_convert_type(x, unsigned_dtype(old))
    wide = unsigned_dtype(max(old, new_dtype, key=lambda dtype: dtype.itemsize))
    if old.itemsize > new_dtype.itemsize:
        sizes = (*shape, old.itemsize // new_dtype.itemsize)
        spread = broadcast_in_dim(words, sizes, range(len(shape)))
        digits = shift_right_logical(spread, _digit_places(wide, sizes, new_dtype))
        return bitcast_convert_type(convert_element_type(digits, unsigned_dtype(new_dtype)), new_dtype)
    digits = shift_left(convert_element_type(words, wide), _digit_places(wide, shape, old))
    return bitcast_convert_type(reduce_sum(digits, (len(shape) - 1,)), new_dtype)


def _digit_places(wide: DType, shape: Shape, digit: DType) -> Any:
    """Return the bit at which each digit along the last axis begins."""
    width = 8 * digit.itemsize
    return shift_left(broadcasted_iota(wide, shape, len(shape) - 1), width.bit_length() - 1)


_BITS_HAVE_NO_SLOPE = {"jvp": "the derivative is zero by convention: a change of bits is no smooth function"}

bitcast_convert_type_p = Primitive(
    name="bitcast_convert_type", infer=_bitcast_infer, reference=_bitcast_reference,
    jvp=zero_jvp, transpose=NoRule("the bits of a number are not linear in it"),
    batch=pointwise_batch, lower=Pointwise(ScalarOp.BITCAST), splat=True, laws=_BITS_HAVE_NO_SLOPE,
)  # fmt: skip

bitcast_regroup_p = Primitive(
    name="bitcast_regroup", infer=_regroup_infer, reference=_bitcast_reference,
    jvp=zero_jvp, transpose=NoRule("the bits of a number are not linear in it"),
    batch=_bitcast_batch, lower=Composite(_regroup_expand), laws=_BITS_HAVE_NO_SLOPE,
)  # fmt: skip


def bitcast_convert_type(operand: Value, new_dtype: object) -> Any:
    """Reinterpret the bytes as another dtype, integer or float.

    A narrower dtype adds a last axis, the low bytes first. A wider one removes the last axis, whose size must be the
    ratio of the widths. The derivative is zero.

    operand: integers, floats or bool [*s]; new_dtype: likewise. Returns [*s], [*s, n] or [*s minus the last]. Raises
    DTypeError for complex numbers, ShapeError if the last axis has another size.

    >>> bitcast_convert_type(tnp.asarray([1.0, -0.0]), np.int64)
    Array([ 4607182418800017408, -9223372036854775808], i64)
    """
    dtype = dtype_named("bitcast_convert_type", new_dtype)
    array = operand_of("bitcast_convert_type", operand)
    old = dtype_of(array)
    if old == dtype:
        return array
    if old.itemsize == dtype.itemsize:
        return pointwise(bitcast_convert_type_p, array, new_dtype=dtype)
    return bind(bitcast_regroup_p, array, new_dtype=dtype)


CONVERSION = (convert_element_type_p, bitcast_convert_type_p, bitcast_regroup_p)
