"""Elementwise arithmetic: sums, products, quotients, remainders, maxima, minima and clipping.

Operands broadcast together and are promoted, see `tracer.numpy.core.promotion`. Integers wrap on overflow.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.ir.program import Literal
from tracer.numpy.core.conversion import array_of, no_out, strong
from tracer.numpy.core.promotion import (
    literal,
    operand,
    promoted,
    promoted_counts,
    promoted_inexact,
    promoted_numbers,
    promoted_real,
)
from tracer.primitives.base.broadcasting import broadcast_in_dim, full_like
from tracer.primitives.elementwise import arithmetic, bits, comparison, rounding
from tracer.primitives.elementwise import complex as parts
from tracer.primitives.elementwise.divisors import checked_divisor
from tracer.runtime.eager.elementwise_dispatch import elementwise
from tracer.runtime.values.fresh_handles import another, makes_new
from tracer.trace.array import Array
from tracer.trace.source import here


@elementwise
def add(x1: Any, x2: Any, /) -> Array:
    """Return x1 + x2; on bools, their logical or.

    >>> tnp.add(tnp.asarray([1.0, 2.0]), 0.5)
    Array([1.5, 2.5], f64)
    """
    return arithmetic.add(*promoted("add", x1, x2))


@elementwise
def subtract(x1: Any, x2: Any, /) -> Array:
    """Return x1 - x2. Raises DTypeError for bools.

    >>> tnp.subtract(tnp.asarray([1.0, 2.0]), 0.5)
    Array([0.5, 1.5], f64)
    """
    return arithmetic.sub(*promoted_numbers("subtract", x1, x2))


@elementwise
def multiply(x1: Any, x2: Any, /) -> Array:
    """Return x1 * x2; on bools, their logical and.

    >>> tnp.multiply(tnp.asarray([1.0, 2.0]), 3.0)
    Array([3., 6.], f64)
    """
    return arithmetic.mul(*promoted("multiply", x1, x2))


@elementwise
def divide(x1: Any, x2: Any, /) -> Array:
    """Return x1 / x2 as floats or complex numbers; integers are cast first.

    >>> tnp.divide(tnp.asarray([1, 2]), 4)
    Array([0.25, 0.5 ], f64)
    """
    return arithmetic.div(*promoted_inexact("divide", x1, x2))


true_divide = divide


@elementwise
def floor_divide(x1: Any, x2: Any, /) -> Array:
    """Return the quotient rounded towards minus infinity, in the promoted dtype.

    A positive integer or 0 over 0 gives -2, -1 or the largest number: see docs/numpy.md. Under `config.debug_division`,
    DivisionError is raised.

    >>> tnp.floor_divide(tnp.asarray([7, -7]), 2)
    Array([ 3, -4], i64)
    """
    x, y = promoted_counts("floor_divide", x1, x2)
    dtype, y = _dtype("floor_divide", x, y), checked_divisor("floor_divide", y)
    if dtypes.is_unsigned(dtype):
        return arithmetic.div(x, y)
    if dtypes.is_integer(dtype):
        quotient = arithmetic.div(x, y)
        differ = comparison.ne(parts.sign(x), parts.sign(y))
        inexact = bits.and_(differ, comparison.ne(rounding.rem(x, y), 0))
        return comparison.select(inexact, arithmetic.sub(quotient, _one_of(quotient)), quotient)
    return _float_divmod(x, y)[0]


@elementwise
def remainder(x1: Any, x2: Any, /) -> Array:
    """Return x1 - x2 * floor_divide(x1, x2), which has the sign of x2. x % 0 is NaN for floats and 0 for integers.

    >>> tnp.remainder(tnp.asarray([7.0, -7.0]), 3.0)
    Array([1., 2.], f64)
    """
    x, y = promoted_counts("remainder", x1, x2)
    dtype, y = _dtype("remainder", x, y), checked_divisor("remainder", y)
    if dtypes.is_integer(dtype):
        zero = comparison.eq(y, 0)
        left = rounding.rem(x, comparison.select(zero, 1, y))
        if dtypes.is_unsigned(dtype):
            return left
    else:
        return _float_divmod(x, y)[1]
    other_sign = bits.xor(comparison.lt(left, 0), comparison.lt(y, 0))
    moved = bits.and_(other_sign, comparison.ne(left, 0))
    return comparison.select(moved, arithmetic.add(left, y), left)


mod = remainder


@elementwise
def fmod(x1: Any, x2: Any, /) -> Array:
    """Return the remainder of division towards zero, as in C: it has the sign of x1.

    >>> tnp.fmod(tnp.asarray([7.0, -7.0]), 3.0)
    Array([ 1., -1.], f64)
    """
    x, y = promoted_counts("fmod", x1, x2)
    if dtypes.is_integer(_dtype("fmod", x, y)):
        y = checked_divisor("fmod", y)
        if not isinstance(y, Array):  # one preparation serves all numbers, so none decides
            y = broadcast_in_dim(y, x.shape if isinstance(x, Array) else (), ())
        y = comparison.select(comparison.eq(y, 0), 1, y)
    return rounding.rem(x, y)


def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """Return `floor_divide` and `remainder` together.

    x1, x2: real numbers, whose shapes broadcast to [*s]. Returns two arrays [*s], in the promoted dtype.

    >>> tnp.divmod(tnp.asarray([7, -7]), 2)
    (Array([ 3, -4], i64), Array([1, 1], i64))
    """
    x, y = promoted_counts("divmod", x1, x2)
    if dtypes.is_integer(_dtype("divmod", x, y)):
        return floor_divide(x1, x2), remainder(x1, x2)
    return _float_divmod(x, y)


def _float_divmod(x: Any, y: Any) -> tuple[Array, Array]:
    """Return quotient and remainder of floats.

    A zero quotient has the sign of x / y, a zero remainder the sign of y.
    """
    left = rounding.rem(x, y)
    ratio = arithmetic.div(x, y)
    quotient = arithmetic.div(arithmetic.sub(x, left), y)
    below = comparison.lt(y, 0)
    moved = bits.and_(comparison.ne(comparison.lt(left, 0), below), comparison.ne(left, 0))
    left = comparison.select(moved, arithmetic.add(left, y), left)
    one, zero = (literal("divide", n, left.dtype, left.weak_type) for n in (1, 0))
    negated = arithmetic.neg(left)  # -0 + 0 is 0; left + 0 has the derivative 1 where |left| has none
    left = _where(below, arithmetic.neg(arithmetic.add(negated, zero)), arithmetic.add(left, zero))
    quotient = comparison.select(moved, arithmetic.sub(quotient, one), quotient)
    quotient = rounding.round_even(comparison.select(comparison.eq(y, 0), ratio, quotient))
    signed = rounding.copysign(zero, ratio)
    return comparison.select(comparison.eq(quotient, 0), signed, quotient), left


def _where(condition: Any, x: Array, y: Array) -> Array:
    """Return `select(condition, x, y)` for a condition that may be concrete."""
    if isinstance(condition, Array):
        return comparison.select(condition, x, y)
    return x if (condition.value if isinstance(condition, Literal) else condition) else y


def _one_of(x: Array) -> Literal:
    """Return 1 in the dtype of `x`, weak if `x` is weak."""
    return literal("divide", 1, x.dtype, x.weak_type)


def _dtype(name: str, x: Any, y: Any) -> Any:
    dtype = (x if isinstance(x, Array) else y).dtype
    if dtypes.is_complex(dtype):
        raise DTypeError(message(f"{name}{here()}: complex numbers have no remainder", f"got {x.type} and {y.type}"))
    return dtype


@elementwise
def negative(x: Any, /) -> Array:
    """Return -x. The lowest signed integer maps to itself. Raises DTypeError for bools.

    >>> tnp.negative(tnp.asarray([1.0, -2.0]))
    Array([-1.,  2.], f64)
    """
    return arithmetic.neg(*promoted_numbers("negative", x))


def positive(x: Any, /) -> Array:
    """Return +x, the value unchanged.

    >>> tnp.positive(tnp.asarray([1.0, -2.0]))
    Array([ 1., -2.], f64)
    """
    value = array_of("positive", x)
    return another(value) if value is x else value


@elementwise
def absolute(x: Any, /) -> Array:
    """Return |x|, real for complex numbers; bools and unsigned integers are unchanged. The derivative at 0 is 0.

    x: numbers or bools [*s]. Returns [*s], in x's dtype, or in the real dtype of its parts if complex.

    >>> tnp.absolute(tnp.asarray([3 - 4j, 1j]))
    Array([5., 1.], f64)
    """
    value = operand("absolute", x)
    return value if _never_negative(value) else parts.abs(value)


abs = absolute


@elementwise
def fabs(x: Any, /) -> Array:
    """Return |x| as a float.

    >>> tnp.fabs(tnp.asarray([-2, 3]))
    Array([2., 3.], f64)
    """
    (value,) = promoted_real("fabs", x)
    return parts.abs(value)


def _never_negative(x: Array) -> bool:
    return x.dtype == dtypes.BOOL or dtypes.is_unsigned(x.dtype)


@elementwise
def sign(x: Any, /) -> Array:
    """Return -1, 0 or 1, and NaN for NaN; x / |x| for complex numbers. Zeros give +0. Raises DTypeError for bools.

    >>> tnp.sign(tnp.asarray([-2.0, 0.0, 5.0]))
    Array([-1.,  0.,  1.], f64)
    """
    return _sign(*promoted_numbers("sign", x))


def _sign(x: Array) -> Array:
    """Return the sign with every zero positive, unlike `lax.sign`."""
    result = parts.sign(x)
    if dtypes.is_complex(x.dtype):
        return comparison.select(comparison.eq(result, 0), 0, result)
    return arithmetic.add(result, 0) if dtypes.is_float(x.dtype) else result


@elementwise
def maximum(x1: Any, x2: Any, /) -> Array:
    """Return the larger of x1 and x2; NaN if either is NaN. Where they tie, each gets half of the derivative.

    >>> tnp.maximum(tnp.asarray([1.0, 3.0]), 2.0)
    Array([2., 3.], f64)
    """
    return arithmetic.max(*promoted("maximum", x1, x2))


@elementwise
def minimum(x1: Any, x2: Any, /) -> Array:
    """Return the smaller of x1 and x2; NaN if either is NaN. Where they tie, each gets half of the derivative.

    >>> tnp.minimum(tnp.asarray([1.0, 3.0]), 2.0)
    Array([1., 2.], f64)
    """
    return arithmetic.min(*promoted("minimum", x1, x2))


def fmax(x1: Any, x2: Any, /) -> Array:
    """Return the larger of x1 and x2; if one is NaN, the other.

    >>> tnp.fmax(tnp.asarray([1.0, tnp.nan]), 2.0)
    Array([2., 2.], f64)
    """
    return _ignoring_nan("fmax", arithmetic.max, x1, x2)


def fmin(x1: Any, x2: Any, /) -> Array:
    """Return the smaller of x1 and x2; if one is NaN, the other.

    >>> tnp.fmin(tnp.asarray([1.0, tnp.nan]), 2.0)
    Array([1., 2.], f64)
    """
    return _ignoring_nan("fmin", arithmetic.min, x1, x2)


def _ignoring_nan(name: str, extreme: Any, x1: Any, x2: Any) -> Array:
    x, y = promoted(name, x1, x2)
    result = extreme(x, y)
    if not dtypes.is_inexact(result.dtype):
        return result
    result = comparison.select(comparison.ne(x, x), y, result)
    return comparison.select(comparison.ne(y, y), x, result)


@makes_new
def clip(
    a: Any, /, min: Any = None, max: Any = None, out: None = None, *, a_min: Any = None, a_max: Any = None
) -> Array:
    """Limit the elements to the interval from `min` to `max`. The upper bound wins where the two cross.

    a: [*s]; min, max: numbers, arrays that broadcast with `a`, or None; `a_min` and `a_max` are NumPy's older names.
    Returns the broadcast shape, in the dtype to which all are promoted. NaN stays NaN. Complex numbers are ordered by
    real, then by imaginary part.

    >>> tnp.clip(tnp.asarray([-1.0, 0.5, 2.0]), 0.0, 1.0)
    Array([0. , 0.5, 1. ], f64)
    """
    no_out("clip", out)
    low, high = a_min if min is None else min, a_max if max is None else max
    result = operand("clip", a)
    low, high = (_within(result.dtype, bound) for bound in (low, high))
    if low is not None:
        result = maximum(low, result)
    return result if high is None else minimum(high, result)


def _within(dtype: Any, bound: Any) -> Any:
    """Return a Python integer bound limited to the range of an integer dtype; any other bound unchanged."""
    if type(bound) is not int or not dtypes.is_integer(dtype) or dtypes.is_narrow(dtype):
        return bound
    limits = np.iinfo(dtype)
    return builtins.min(builtins.max(bound, int(limits.min)), int(limits.max))


@elementwise
def heaviside(x1: Any, x2: Any, /) -> Array:
    """Return 0 for x1 < 0, x2 for x1 = 0, and 1 for x1 > 0; NaN for NaN.

    >>> tnp.heaviside(tnp.asarray([-1.0, 0.0, 2.0]), 0.5)
    Array([0. , 0.5, 1. ], f64)
    """
    x, y = promoted_inexact("heaviside", x1, x2)
    if not isinstance(x, Array):
        x = full_like(y, x.value)
    step = comparison.select(comparison.gt(x, 0), full_like(x, 1), full_like(x, 0))
    step = comparison.select(comparison.eq(x, 0), y, step)
    result = comparison.select(comparison.ne(x, x), x, step)
    return result if array_of("heaviside", x1, copy=False).weak_type else strong(result)
