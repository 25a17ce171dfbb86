"""Elementwise powers and roots.

Integers to integer powers wrap on overflow; roots of integers are floats.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.ir.types import ArrayType
from tracer.numpy.core.conversion import cast, strong
from tracer.numpy.core.promotion import operand, promoted, promoted_counts, promoted_inexact
from tracer.primitives.base.broadcasting import full_like
from tracer.primitives.elementwise import arithmetic, bits, comparison, powers
from tracer.runtime.eager.elementwise_dispatch import elementwise
from tracer.trace.array import Array
from tracer.trace.source import here


@elementwise
def reciprocal(x: Any, /) -> Array:
    """Return 1 / x; integers are cast to float.

    x: numbers [*s]. Returns floats or complex numbers [*s]; integers give float32 up to 32 bits, else the default
    float.

    >>> tnp.reciprocal(tnp.asarray([2.0, 4.0]))
    Array([0.5 , 0.25], f64)
    """
    (value,) = promoted_inexact("reciprocal", x)
    return arithmetic.div(1, value)


@elementwise
def square(x: Any, /) -> Array:
    """Return x * x.

    >>> tnp.square(tnp.asarray([3.0, -2.0]))
    Array([9., 4.], f64)
    """
    value = operand("square", x)
    return powers.square(cast(value, dtypes.I32) if value.dtype == dtypes.BOOL else value)


def power(x1: Any, x2: Any, /) -> Array:
    """Return x1 to the power x2. A Python integer x2 is applied by repeated multiplication; integers wrap.

    Raises DTypeError for an integer to a negative Python integer; other negative exponents of integers are unspecified.

    >>> tnp.power(tnp.asarray([2.0, 9.0]), 0.5)
    Array([1.41421356, 3.        ], f64)
    """
    if x2.__class__ is int and x2 == 2 and x1.__class__ is Array and x1._type.__class__ is ArrayType:
        return square(x1)  # as below, in half the time
    exponent = _static_integer(x2)
    if exponent is not None:
        return _integer_power(operand("power", x1), exponent)
    return _power(x1, x2)


@elementwise
def _power(x1: Any, x2: Any) -> Array:
    if isinstance(x2, Array | np.ndarray | np.generic) and dtypes.is_integer(x2.dtype):
        base = operand("power", x1)
        if dtypes.is_inexact(base.dtype):
            base, exponents = promoted("power", base, x2)
            result = powers.pow(base, exponents)
            return result if isinstance(x2, Array) and x2.weak_type else strong(result)
    x, y = promoted_counts("power", x1, x2)
    dtype = (x if isinstance(x, Array) else y).dtype
    if dtypes.is_inexact(dtype):
        return powers.pow(x, y)
    return _integers_to_integers(x, y, dtype)


pow = power


def _static_integer(x: Any) -> int | None:
    return operator.index(x) if isinstance(x, int) and not isinstance(x, bool) else None


def _integer_power(x: Array, exponent: int) -> Array:
    """Return x to a concrete integer power. Raises DTypeError for an integer x and a negative exponent."""
    if x.dtype == dtypes.BOOL:
        x = cast(x, dtypes.I32)
    if exponent < 0 and dtypes.is_integer(x.dtype):
        raise DTypeError(
            message(
                f"power{here()}: integers have no negative powers",
                f"got {x.type} to the power {exponent}",
                help=f"x.astype(float) ** {exponent}",
            )
        )
    if exponent == 2:
        return square(x)
    return powers.integer_pow(x, exponent)


def _integers_to_integers(x: Any, y: Any, dtype: Any) -> Array:
    """Return integer powers by binary exponentiation over every bit of the exponent; products wrap."""
    if not isinstance(x, Array):
        x = full_like(y, x.value)
    if not isinstance(y, Array):
        y = full_like(x, y.value)
    result = full_like(x, 1)
    for _ in range(8 * dtype.itemsize):
        odd = comparison.ne(bits.and_(y, 1), 0)
        result = comparison.select(odd, arithmetic.mul(result, x), result)
        x, y = arithmetic.mul(x, x), bits.shift_right_logical(y, 1)
    return strong(result)


@elementwise
def float_power(x1: Any, x2: Any, /) -> Array:
    """Return x1 to the power x2 as floats.

    >>> tnp.float_power(tnp.asarray([2, 4]), -1)
    Array([0.5 , 0.25], f64)
    """
    return powers.pow(*promoted_inexact("float_power", x1, x2))


@elementwise
def sqrt(x: Any, /) -> Array:
    """Return the square root: NaN below 0 for floats, the root with real part >= 0 for complex numbers.

    >>> tnp.sqrt(tnp.asarray([4.0, 2.0]))
    Array([2.        , 1.41421356], f64)
    """
    return powers.sqrt(*promoted_inexact("sqrt", x))


@elementwise
def cbrt(x: Any, /) -> Array:
    """Return the real cube root, also of negative numbers.

    >>> tnp.cbrt(tnp.asarray([27.0, -8.0]))
    Array([ 3., -2.], f64)
    """
    return powers.cbrt(*promoted_inexact("cbrt", x))


@elementwise
def hypot(x1: Any, x2: Any, /) -> Array:
    """Return sqrt(x1² + x2²) without intermediate overflow.

    >>> tnp.hypot(tnp.asarray([3.0, 1e300]), tnp.asarray([4.0, 0.0]))
    Array([5.e+000, 1.e+300], f64)
    """
    return powers.hypot(*promoted_inexact("hypot", x1, x2))
