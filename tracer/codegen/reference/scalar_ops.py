"""Table of scalar operations: the value of each in NumPy, for a scalar or for lanes.

`tracer.ir.scalar` defines the meanings. Functions take and return NumPy values of the operation's dtype; they never
warn inside `np.errstate(all="ignore")`.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Final

import numpy as np

from tracer.codegen.reference.conversions import (
    Function,
    Value,
    bitcast,
    cast,
    choose,
    conversion,
    is_short,
    widened,
)  # fmt: skip
from tracer.codegen.reference.math_functions import MATH
from tracer.errors import InternalError
from tracer.ir.dtypes import BOOL, F32, DType, is_float, is_signed, is_unsigned, short_name
from tracer.ir.scalar import ScalarOp
from tracer.primitives.elementwise.fma import fused_product


@cache
def scalar_function(op: ScalarOp, dtype: DType, target: DType) -> Function:
    """Return `op` on operands of `dtype` (its last operand's) with a result of `target`."""
    match op:
        case ScalarOp.CONVERT:
            return conversion(dtype, target)
        case ScalarOp.BITCAST:
            return bitcast(target)
        case ScalarOp.SELECT:
            return _select
        case ScalarOp.NEXTAFTER:
            return _nextafter
        case ScalarOp.LOOKUP:
            return _lookup
        case _ if is_short(dtype):
            return _in_single(scalar_function(op, F32, target if target == BOOL else F32), dtype, target)
        case _ if op in MATH:
            return MATH[op]
        case _:
            return _exact(op, dtype)


def _exact(op: ScalarOp, dtype: DType) -> Function:
    table = _FLOAT if is_float(dtype) else _BOOL if dtype == BOOL else _INTEGER
    found = table.get(op) or _ANY.get(op)
    if found is None:
        raise InternalError(f"reference: {op.label} of {short_name(dtype)}")
    return found


def _in_single(function: Function, dtype: DType, target: DType) -> Function:
    """Return an operation on short floats: compute in f32, round the result."""

    def apply(*operands: Value) -> Value:
        result = function(*[cast(x, F32) for x in operands])
        return result if target == BOOL else cast(result, dtype)

    return apply


def _select(predicate: Value, then: Value, otherwise: Value) -> Value:
    if isinstance(predicate, np.bool_):
        return then if predicate else otherwise
    return choose(predicate, then, otherwise)


# -- floats ------------------------------------------------------------------------------------------


def _minimum(a: Value, b: Value) -> Value:
    return choose(a == b, choose(np.signbit(a), a, b), np.minimum(a, b))


def _maximum(a: Value, b: Value) -> Value:
    return choose(a == b, choose(np.signbit(a), b, a), np.maximum(a, b))


def _parts(a: Value) -> tuple[Value, Value]:
    """Return EXPONENT and SIGNIFICAND. NumPy's significands are in [1/2, 1)."""
    m, e = np.frexp(a)
    low = m < 0.75
    m, e = choose(low, m * 2, m), choose(low, e - 1, e)
    is_zero, outside = a == 0, (a < 0) | np.isnan(a)
    one, nan = a.dtype.type(1), a.dtype.type(np.nan)
    exponent = choose(is_zero, a.dtype.type(-np.inf), choose(outside, nan, choose(np.isinf(a), a, cast(e, a.dtype))))
    return exponent, choose(outside, nan, choose(is_zero | np.isinf(a), one, m))


def _scale(a: Value, n: Value) -> Value:
    whole = choose(np.abs(n) < 1 << 20, n, n.dtype.type(0))  # not for NaN, whose result is NaN anyway
    return np.ldexp(a, whole.astype(np.int32))


def _lookup(index: Value, *values: Value) -> Value:
    return np.array(values)[index & 15]


def _nextafter(a: Value, b: Value) -> Value:
    """Return the float after `a` towards `b`, on the bits, so that every format has it; `b` where they are equal."""
    a, b = np.asarray(a), np.asarray(b)
    word = np.dtype(f"i{a.dtype.itemsize}")
    bits, wide_a, wide_b = a.view(word), widened(a), widened(b)
    with np.errstate(all="ignore"):
        grows = (wide_a < wide_b) == (bits >= 0)
        stepped = np.where(grows, bits + word.type(1), bits - word.type(1)).astype(word)
        least = (b.view(word) & np.iinfo(word).min) | word.type(1)
        stepped = np.where(wide_a == 0, least, stepped).astype(word)
        result = np.where(wide_a == wide_b, b.view(word), stepped).astype(word)
        total = cast(wide_a + wide_b, a.dtype)
    is_nan = np.isnan(wide_a) | np.isnan(wide_b)
    return np.where(is_nan, total, result.view(a.dtype)).astype(a.dtype)[()]


# -- integers ----------------------------------------------------------------------------------------


def _unsigned(x: Value) -> Value:
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}")


def _signed(x: Value) -> Value:
    x = np.asarray(x)
    return x.view(f"i{x.dtype.itemsize}")


def _divisor(a: Value, b: Value) -> tuple[Value, Value, DType]:
    """Return `b` made safe to divide by, and where it was 0.

    Unsafe divisors become 1: zeros, and -1 under the minimum.
    """
    dtype = np.asarray(b).dtype
    one, zero = dtype.type(1), b == 0
    risky = zero
    if is_signed(dtype):
        risky = zero | ((a == dtype.type(np.iinfo(dtype).min)) & (b == -1))
    return choose(risky, one, b), zero, dtype


def _divide(a: Value, b: Value) -> Value:
    safe, zero, dtype = _divisor(a, b)
    quotient = (a - np.fmod(a, safe)) // safe
    all_ones = dtype.type(np.iinfo(dtype).max if is_unsigned(dtype) else -1)
    return choose(zero, all_ones, quotient)


def _remainder(a: Value, b: Value) -> Value:
    safe, zero, _ = _divisor(a, b)
    return choose(zero, a, np.fmod(a, safe))


def _count_inside(a: Value, count: Value, beyond: int) -> tuple[Value, Value]:
    """Return the shift counts with `beyond` in place of counts from the width on, and where counts are below it."""
    dtype = np.asarray(a).dtype
    inside = _unsigned(count) < dtype.itemsize * 8
    return choose(inside, count, dtype.type(beyond)), inside


def _shift_left(a: Value, count: Value) -> Value:
    safe, inside = _count_inside(a, count, 0)
    return choose(inside, np.left_shift(a, safe), np.asarray(a).dtype.type(0))


def _shift_logical(a: Value, count: Value) -> Value:
    dtype = np.asarray(a).dtype
    safe, inside = _count_inside(a, count, 0)
    shifted = np.right_shift(_unsigned(a), _unsigned(safe)).view(dtype)
    return choose(inside, shifted, dtype.type(0))


def _shift_arithmetic(a: Value, count: Value) -> Value:
    dtype = np.asarray(a).dtype
    safe, _ = _count_inside(a, count, dtype.itemsize * 8 - 1)
    return np.right_shift(_signed(a), _signed(safe)).view(dtype)[()]


def _population(a: Value) -> Value:
    return cast(np.bitwise_count(_unsigned(a)), np.asarray(a).dtype)


def _leading_zeros(a: Value) -> Value:
    dtype, bits = np.asarray(a).dtype, _unsigned(a)
    width = dtype.itemsize * 8
    shift = 1
    while shift < width:  # every bit below the highest set one becomes set
        bits = bits | (bits >> bits.dtype.type(shift))
        shift *= 2
    return cast(width - np.bitwise_count(bits).astype(np.int64), dtype)


_ANY: Final[dict[ScalarOp, Function]] = {
    ScalarOp.EQ: operator.eq, ScalarOp.NE: operator.ne, ScalarOp.LT: operator.lt,
    ScalarOp.LE: operator.le, ScalarOp.GT: operator.gt, ScalarOp.GE: operator.ge,
    ScalarOp.ADD: operator.add, ScalarOp.SUB: operator.sub, ScalarOp.MUL: operator.mul,
    ScalarOp.NEG: np.negative, ScalarOp.ABS: np.abs,
    ScalarOp.AND: operator.and_, ScalarOp.OR: operator.or_, ScalarOp.XOR: operator.xor,
    ScalarOp.NOT: np.invert,
}  # fmt: skip
_BOOL: Final[dict[ScalarOp, Function]] = {ScalarOp.MIN: operator.and_, ScalarOp.MAX: operator.or_}
_FLOAT: Final[dict[ScalarOp, Function]] = {
    ScalarOp.MIN: _minimum, ScalarOp.MAX: _maximum, ScalarOp.DIV: operator.truediv, ScalarOp.REM: np.fmod,
    ScalarOp.FMA: fused_product, ScalarOp.SQRT: np.sqrt, ScalarOp.FLOOR: np.floor, ScalarOp.CEIL: np.ceil,
    ScalarOp.TRUNC: np.trunc, ScalarOp.ROUND_EVEN: np.rint, ScalarOp.COPYSIGN: np.copysign,
    ScalarOp.EXPONENT: lambda a: _parts(a)[0], ScalarOp.SIGNIFICAND: lambda a: _parts(a)[1], ScalarOp.SCALE: _scale,
}  # fmt: skip
_INTEGER: Final[dict[ScalarOp, Function]] = {
    ScalarOp.MIN: np.minimum, ScalarOp.MAX: np.maximum, ScalarOp.IDIV: _divide, ScalarOp.IREM: _remainder,
    ScalarOp.SHL: _shift_left, ScalarOp.SHR_LOGICAL: _shift_logical,
    ScalarOp.SHR_ARITHMETIC: _shift_arithmetic, ScalarOp.POPCOUNT: _population, ScalarOp.CLZ: _leading_zeros,
}  # fmt: skip
