"""Rounding, real and imaginary parts, signs, and replacement of NaN and infinity."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import aligned, cast, floating
from tracer.numpy.core.promotion import operand, parameter, promoted_inexact
from tracer.primitives.base.broadcasting import full_like
from tracer.primitives.elementwise import arithmetic, bits, comparison, conversion, rounding
from tracer.primitives.elementwise import complex as parts
from tracer.runtime.eager.elementwise_dispatch import elementwise
from tracer.runtime.values.fresh_handles import makes_new
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here


def _whole(name: str, x: Any, function: Callable[..., Any]) -> Array:
    """Apply a rounding function to floats, and return integers and bools unchanged. Raises DTypeError if complex."""
    value = operand(name, x)
    if dtypes.is_complex(value.dtype):
        raise DTypeError(message(f"{name}{here()}: complex numbers have no order", f"got {value.type}"))
    return function(value) if dtypes.is_float(value.dtype) else value


@elementwise
@makes_new
def floor(x: Any, /) -> Array:
    """Return the largest integer <= x, in x's dtype.

    >>> tnp.floor(tnp.asarray([1.5, -1.5]))
    Array([ 1., -2.], f64)
    """
    return _whole("floor", x, rounding.floor)


@elementwise
@makes_new
def ceil(x: Any, /) -> Array:
    """Return the smallest integer >= x, in x's dtype.

    >>> tnp.ceil(tnp.asarray([1.5, -1.5]))
    Array([ 2., -1.], f64)
    """
    return _whole("ceil", x, rounding.ceil)


@elementwise
@makes_new
def trunc(x: Any, /) -> Array:
    """Return x rounded towards zero, in x's dtype.

    >>> tnp.trunc(tnp.asarray([1.5, -1.5]))
    Array([ 1., -1.], f64)
    """

    def towards_zero(v: Array) -> Array:
        return comparison.select(comparison.lt(v, 0), rounding.ceil(v), rounding.floor(v))

    return _whole("trunc", x, towards_zero)


fix = trunc


@elementwise
@makes_new
def rint(x: Any, /) -> Array:
    """Return the nearest integer, ties to even.

    x: numbers [*s]. Returns [*s], in x's dtype; integers of any width become the default float.

    >>> tnp.rint(tnp.asarray([0.5, 1.5, 2.6]))
    Array([0., 2., 3.], f64)
    """
    return _of_parts(floating(operand("rint", x)), rounding.round_even)


_MAX_DIGITS = 308  # 10 to this power is the last that f64 holds


@makes_new
def round(a: Any, decimals: int = 0) -> Array:
    """Return x rounded to `decimals` digits, ties to even; negative `decimals` round to tens, hundreds, ...

    a: [*s]; decimals: a concrete integer. Returns [*s], in a's dtype: zeros where tens, hundreds, ... exceed it.

    >>> tnp.round(tnp.asarray([0.5, 1.25, 2.675]), 1)
    Array([0.5, 1.2, 2.7], f64)
    """
    value, decimals = operand("round", a), integer("round", "decimals", decimals)
    if not dtypes.is_inexact(value.dtype):
        if decimals >= 0:
            return value
        largest = 1 if dtypes.is_bool(value.dtype) else dtypes.iinfo(value.dtype).max
        if -decimals > _MAX_DIGITS or 10 ** (-decimals) > largest:
            return arithmetic.mul(value, value.dtype.type(0))
        tens = value.dtype.type(10 ** (-decimals))
        whole = rounding.round_even(arithmetic.div(cast(value, dtypes.F64), float(tens)))
        return arithmetic.mul(cast(whole, value.dtype), tens)
    if decimals == 0:
        return _of_parts(value, rounding.round_even)
    if builtins.abs(decimals) > _MAX_DIGITS:
        return value if decimals > 0 else arithmetic.mul(value, value.dtype.type(0))
    scale = 10.0 ** builtins.abs(decimals)
    shift, back = (arithmetic.mul, arithmetic.div) if decimals > 0 else (arithmetic.div, arithmetic.mul)
    return _of_parts(value, lambda part: back(rounding.round_even(shift(part, scale)), scale))


around = round


def _of_parts(x: Any, function: Callable[..., Any]) -> Array:
    """Apply a function of reals to `x`, or to both parts of a complex `x`."""
    if dtypes.is_complex(x.dtype):
        return parts.complex(function(parts.real(x)), function(parts.imag(x)))
    return function(x)


def modf(x: Any, /) -> tuple[Array, Array]:
    """Return the fractional and the integral part, both with the sign of x.

    x: real numbers [*s]. Returns two arrays of floats [*s]; integers give float32 up to 32 bits, else the default
    float.

    >>> tnp.modf(tnp.asarray([1.5, -1.5]))
    (Array([ 0.5, -0.5], f64), Array([ 1., -1.], f64))
    """
    (value,) = promoted_inexact("modf", x)
    whole = trunc(value)
    infinite = comparison.eq(parts.abs(value), np.inf)
    return copysign(comparison.select(infinite, 0, arithmetic.sub(value, whole)), value), whole


# Parts of complex numbers, and signs


@makes_new
def real(val: Any, /) -> Array:
    """Return the real part; real arrays are returned as they are.

    val: [*s]. Returns [*s], in the real dtype of its parts.

    >>> tnp.real(tnp.asarray([1 + 2j]))
    Array([1.], f64)
    """
    value = operand("real", val)
    return parts.real(value) if dtypes.is_complex(value.dtype) else value


def imag(val: Any, /) -> Array:
    """Return the imaginary part; zeros for real arrays.

    val: [*s]. Returns [*s], in the real dtype of its parts.

    >>> tnp.imag(tnp.asarray([1 + 2j]))
    Array([2.], f64)
    """
    value = operand("imag", val)
    return parts.imag(value) if dtypes.is_complex(value.dtype) else full_like(value, 0)


@makes_new
def conjugate(x: Any, /) -> Array:
    """Return the complex conjugate; real arrays are returned as they are.

    >>> tnp.conjugate(tnp.asarray([1 + 2j]))
    Array([1.-2.j], c128)
    """
    value = operand("conjugate", x)
    return parts.conj(value) if dtypes.is_complex(value.dtype) else value


conj = conjugate


@elementwise
def signbit(x: Any, /) -> Array:
    """Return whether the sign bit is set, also of -0.0 and NaN.

    >>> tnp.signbit(tnp.asarray([-1.0, -0.0, 0.0]))
    Array([ True,  True, False], bool)
    """
    value = operand("signbit", x)
    if dtypes.is_complex(value.dtype):
        raise DTypeError(message(f"signbit{here()}: complex numbers have no sign", f"got {value.type}"))
    if dtypes.is_float(value.dtype):
        value = conversion.bitcast_convert_type(value, np.dtype(f"int{8 * value.dtype.itemsize}"))
    if value.dtype == dtypes.BOOL:
        return bits.and_(value, False)
    return comparison.lt(value, 0)


@elementwise
def copysign(x1: Any, x2: Any, /) -> Array:
    """Return the magnitude of x1 with the sign of x2.

    >>> tnp.copysign(tnp.asarray([1.0, -2.0]), tnp.asarray([-0.0, 3.0]))
    Array([-1.,  2.], f64)
    """
    return rounding.copysign(*promoted_inexact("copysign", x1, x2))


@elementwise
def nextafter(x1: Any, x2: Any, /) -> Array:
    """Return the next float after x1 towards x2.

    >>> tnp.nextafter(tnp.asarray([1.0]), 2.0) - 1.0
    Array([2.22044605e-16], f64)
    """
    return rounding.nextafter(*promoted_inexact("nextafter", x1, x2))


def finite(value: Array, nan: Any, posinf: Any, neginf: Any) -> Array:
    """Replace NaN and infinities: by 0 and the largest finite values, unless other values are given."""
    if dtypes.is_complex(value.dtype):
        return parts.complex(*(finite(part(value), nan, posinf, neginf) for part in (parts.real, parts.imag)))
    if not dtypes.is_float(value.dtype):
        return value
    limits = dtypes.finfo(value.dtype)
    high, low = (limits.max if posinf is None else posinf), (limits.min if neginf is None else neginf)
    value = _replaced(value, comparison.ne(value, value), nan)
    value = _replaced(value, comparison.eq(value, np.inf), high)
    return _replaced(value, comparison.eq(value, -np.inf), low)


def _replaced(value: Array, where: Array, by: Any) -> Array:
    return comparison.select(*aligned("nan_to_num", where, parameter("nan_to_num", by, value.dtype), value))
