"""Rounding to a narrower float format in place: reduce_precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.primitive import Composite, Primitive
from tracer.ir.types import ArrayType, Type
from tracer.primitives.base.rules import Value, linear_jvp, pointwise, pointwise_batch, pointwise_infer
from tracer.primitives.elementwise.arithmetic import add
from tracer.primitives.elementwise.bits import and_, or_, shift_right_logical, unsigned_dtype
from tracer.primitives.elementwise.comparison import gt, le, ne, select
from tracer.primitives.elementwise.conversion import bitcast_convert_type, dtype_of
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.trace import Operand


class _Layout:
    """Bit fields of a float dtype, and of the narrower format inside it."""

    def __init__(self, dtype: DType, exponent_bits: int, mantissa_bits: int) -> None:
        fraction, exponent = _FIELDS[dtype]
        width = 8 * dtype.itemsize
        self.unsigned = unsigned_dtype(dtype)
        self.cut = fraction - mantissa_bits  # bits that the significand loses
        self.sign = 1 << (width - 1)
        self.infinity = ((1 << exponent) - 1) << fraction
        self.narrower = exponent_bits < exponent
        bias, new_bias = ((1 << (bits - 1)) - 1 for bits in (exponent, min(exponent, exponent_bits)))
        self.highest = (bias + new_bias) << fraction  # exponents above this overflow
        self.lowest = (bias - new_bias) << fraction  # exponents up to this flush to zero


_FIELDS = {dtypes.F16: (10, 5), dtypes.BF16: (7, 8), dtypes.F32: (23, 8), dtypes.F64: (52, 11)}
_infer_float = pointwise_infer("reduce_precision", "f")


def _reduce_infer(x: Type, *, exponent_bits: int, mantissa_bits: int) -> Type:
    result: Type = _infer_float(x)
    if isinstance(x, ArrayType) and x.dtype not in _FIELDS:
        raise DTypeError(
            message(f"reduce_precision{here()} takes f16, bf16, f32, f64", f"got {x}", help="cast with .astype(...)")
        )
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ArgumentError(
            message(
                f"reduce_precision{here()}: expected at least 1 exponent bit and 0 mantissa bits",
                f"got exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits}",
                help="bfloat16 is 8 and 7, float16 is 5 and 10",
            )
        )
    return result


def _reduce_reference(x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    layout = _Layout(x.dtype, exponent_bits, mantissa_bits)
    word = layout.unsigned.type
    bits = np.asarray(x).view(layout.unsigned)
    if layout.cut > 0:
        odd = (bits >> word(layout.cut)) & word(1)
        bits = (bits + odd + word((1 << (layout.cut - 1)) - 1)) & ~word((1 << layout.cut) - 1)
    if layout.narrower:
        sign, exponent = bits & word(layout.sign), bits & word(layout.infinity)
        bits = np.where(exponent > word(layout.highest), sign | word(layout.infinity), bits)
        bits = np.where(exponent <= word(layout.lowest), sign, bits)
    return np.where(np.isnan(x), x, np.asarray(bits).view(x.dtype))


def _reduce_expand(x: Operand, *, exponent_bits: int, mantissa_bits: int) -> Any:
    dtype = dtype_of(x)
    layout = _Layout(dtype, exponent_bits, mantissa_bits)
    word = layout.unsigned.type
    bits = bitcast_convert_type(x, layout.unsigned)
    if layout.cut > 0:
        odd = and_(shift_right_logical(bits, word(layout.cut)), word(1))
        raised = add(add(bits, odd), word((1 << (layout.cut - 1)) - 1))
        bits = and_(raised, ~word((1 << layout.cut) - 1))
    if layout.narrower:
        sign, exponent = and_(bits, word(layout.sign)), and_(bits, word(layout.infinity))
        bits = select(gt(exponent, word(layout.highest)), or_(sign, word(layout.infinity)), bits)
        bits = select(le(exponent, word(layout.lowest)), sign, bits)
    return select(ne(x, x), x, bitcast_convert_type(bits, dtype))


reduce_precision_p = Primitive(
    name="reduce_precision", infer=_reduce_infer, reference=_reduce_reference,
    jvp=linear_jvp,
    transpose=lambda ctx, cts, xs, **bits: [reduce_precision(cts[0], **bits)],
    batch=pointwise_batch, lower=Composite(_reduce_expand, computes=True), splat=True,
    laws={"jvp": "a step function, whose tangent is rounded likewise by convention: it stands for a change of dtype"},
)  # fmt: skip


def reduce_precision(operand: Value, exponent_bits: int, mantissa_bits: int) -> Any:
    """Round to a float format of fewer bits, and keep the dtype.

    Rounds to nearest even. Too large values become infinite, subnormals of the format become zero.

    operand: floats [*s]. Returns the same dtype, [*s]. Raises DTypeError for other dtypes. exponent_bits,
    mantissa_bits: integers, 1 or more and 0 or more; else ArgumentError.

    >>> reduce_precision(tnp.asarray([1.01, 1e-6, 7e4]), exponent_bits=5, mantissa_bits=10)
    Array([1.00976562, 0.        ,        inf], f64)
    """
    bits = {
        "exponent_bits": integer("reduce_precision", "exponent_bits", exponent_bits),
        "mantissa_bits": integer("reduce_precision", "mantissa_bits", mantissa_bits),
    }
    return pointwise(reduce_precision_p, operand, **bits)


PRECISION = (reduce_precision_p,)
