"""Elementwise exponentials, logarithms, trigonometric and hyperbolic functions.

Integers are cast to a float dtype first. Floats outside a function's domain give NaN; complex numbers take the
principal branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.numpy.core.conversion import cast, floating
from tracer.numpy.core.promotion import literal, operand, promoted_inexact
from tracer.numpy.elementwise.rounding import signbit
from tracer.primitives.base.rules import Value
from tracer.primitives.elementwise import arithmetic, bits, comparison, exponential, hyperbolic, rounding, trigonometric
from tracer.primitives.elementwise import complex as parts
from tracer.runtime.eager.elementwise_dispatch import elementwise
from tracer.trace.array import Array


@elementwise
def exp(x: Any, /) -> Array:
    """Return e to the power x.

    >>> tnp.exp(tnp.asarray([0.0, 1.0]))
    Array([1.        , 2.71828183], f64)
    """
    return exponential.exp(*promoted_inexact("exp", x))


@elementwise
def exp2(x: Any, /) -> Array:
    """Return 2 to the power x.

    >>> tnp.exp2(tnp.asarray([0.0, 3.0]))
    Array([1., 8.], f64)
    """
    return exponential.exp2(*promoted_inexact("exp2", x))


@elementwise
def expm1(x: Any, /) -> Array:
    """Return exp(x) - 1, accurate near 0.

    >>> tnp.expm1(tnp.asarray([0.0, 1e-20]))
    Array([0.e+00, 1.e-20], f64)
    """
    return exponential.expm1(*promoted_inexact("expm1", x))


@elementwise
def log(x: Any, /) -> Array:
    """Return the natural logarithm of x.

    >>> tnp.log(tnp.asarray([1.0, 10.0]))
    Array([0.        , 2.30258509], f64)
    """
    return exponential.log(*promoted_inexact("log", x))


@elementwise
def log2(x: Any, /) -> Array:
    """Return the base-2 logarithm of x.

    >>> tnp.log2(tnp.asarray([1.0, 8.0]))
    Array([0., 3.], f64)
    """
    return exponential.log2(*promoted_inexact("log2", x))


@elementwise
def log10(x: Any, /) -> Array:
    """Return the base-10 logarithm of x.

    >>> tnp.log10(tnp.asarray([1.0, 10.0]))
    Array([0., 1.], f64)
    """
    found = exponential.log(*promoted_inexact("log10", x))
    if not parts.is_complex(found):
        return arithmetic.div(found, np.log(10.0))
    return parts.complex(*(arithmetic.div(part(found), np.log(10.0)) for part in (parts.real, parts.imag)))


@elementwise
def log1p(x: Any, /) -> Array:
    """Return log(1 + x), accurate near 0.

    >>> tnp.log1p(tnp.asarray([0.0, 1e-20]))
    Array([0.e+00, 1.e-20], f64)
    """
    return exponential.log1p(*promoted_inexact("log1p", x))


@elementwise
def logaddexp(x1: Any, x2: Any, /) -> Array:
    """Return log(exp(x1) + exp(x2)) without overflow. The imaginary part of complex results is in [-π, π).

    >>> tnp.logaddexp(tnp.asarray([1000.0, -tnp.inf]), 1000.0)
    Array([1000.69314718, 1000.        ], f64)
    """
    x, y = promoted_inexact("logaddexp", x1, x2)
    return _logaddexp(x, y)


def logaddexp2(x1: Any, x2: Any, /) -> Array:
    """Return log2(2**x1 + 2**x2) without overflow. The imaginary part of complex results is in [-π, π) / log(2).

    >>> tnp.logaddexp2(tnp.asarray([1000.0]), 1000.0)
    Array([1001.], f64)
    """
    x, y = promoted_inexact("logaddexp2", x1, x2)
    scale = np.log(2.0)
    return arithmetic.div(_logaddexp(arithmetic.mul(x, scale), arithmetic.mul(y, scale)), scale)


def _logaddexp(x: Value, y: Value) -> Array:
    """Return log(exp(x) + exp(y)). The derivative is the logistic function of the difference.

    The derivative is 1 where both are infinite and NaN where one is NaN. One of two smooth formulas is selected,
    because |x - y| and max(x, y) have a kink where x = y.
    """
    difference = arithmetic.sub(x, y)
    infinite = bits.and_(comparison.ne(difference, difference), comparison.eq(x, y))  # equal infinities
    zero = literal("logaddexp", 0, difference.dtype, difference.weak_type)
    safe = comparison.select(infinite, zero, difference)
    is_complex = dtypes.is_complex(difference.dtype)
    above = comparison.ge(parts.real(safe), 0) if is_complex else comparison.ge(safe, zero)
    top = comparison.select(above, x, y)
    rest = exponential.log1p(exponential.exp(comparison.select(above, arithmetic.neg(safe), safe)))
    result = comparison.select(infinite, arithmetic.add(x, y), arithmetic.add(top, rest))
    return _in_one_turn(result) if is_complex else result


def _in_one_turn(x: Value) -> Array:
    """Return complex numbers with the imaginary part moved into [-π, π) by multiples of 2π."""
    imag, turn = parts.imag(x), 2 * np.pi
    turns = rounding.floor(arithmetic.div(arithmetic.add(imag, np.pi), turn))
    return parts.complex(parts.real(x), arithmetic.sub(imag, arithmetic.mul(turns, turn)))


@elementwise
def sin(x: Any, /) -> Array:
    """Return the sine of x, in radians.

    >>> tnp.sin(tnp.asarray([0.0, tnp.pi / 2]))
    Array([0., 1.], f64)
    """
    return trigonometric.sin(*promoted_inexact("sin", x))


@elementwise
def cos(x: Any, /) -> Array:
    """Return the cosine of x, in radians.

    >>> tnp.cos(tnp.asarray([0.0, tnp.pi]))
    Array([ 1., -1.], f64)
    """
    return trigonometric.cos(*promoted_inexact("cos", x))


@elementwise
def tan(x: Any, /) -> Array:
    """Return the tangent of x, in radians.

    >>> tnp.tan(tnp.asarray([0.0, 1.0]))
    Array([0.        , 1.55740772], f64)
    """
    return trigonometric.tan(*promoted_inexact("tan", x))


@elementwise
def arcsin(x: Any, /) -> Array:
    """Return the inverse sine, in [-π/2, π/2].

    >>> tnp.arcsin(tnp.asarray([0.0, 1.0]))
    Array([0.        , 1.57079633], f64)
    """
    return trigonometric.asin(*promoted_inexact("arcsin", x))


asin = arcsin


@elementwise
def arccos(x: Any, /) -> Array:
    """Return the inverse cosine, in [0, π].

    >>> tnp.arccos(tnp.asarray([1.0, 0.0]))
    Array([0.        , 1.57079633], f64)
    """
    return trigonometric.acos(*promoted_inexact("arccos", x))


acos = arccos


@elementwise
def arctan(x: Any, /) -> Array:
    """Return the inverse tangent, in [-π/2, π/2].

    >>> tnp.arctan(tnp.asarray([0.0, 1.0]))
    Array([0.        , 0.78539816], f64)
    """
    return trigonometric.atan(*promoted_inexact("arctan", x))


atan = arctan


@elementwise
def arctan2(x1: Any, x2: Any, /) -> Array:
    """Return the angle of the point (x2, x1) in [-π, π]. The signs of zeros decide the quadrant.

    >>> tnp.arctan2(tnp.asarray([1.0, -1.0]), tnp.asarray([1.0, -1.0]))
    Array([ 0.78539816, -2.35619449], f64)
    """
    return trigonometric.atan2(*promoted_inexact("arctan2", x1, x2))


atan2 = arctan2


@elementwise
def sinh(x: Any, /) -> Array:
    """Return the hyperbolic sine.

    >>> tnp.sinh(tnp.asarray([0.0, 1.0]))
    Array([0.        , 1.17520119], f64)
    """
    return hyperbolic.sinh(*promoted_inexact("sinh", x))


@elementwise
def cosh(x: Any, /) -> Array:
    """Return the hyperbolic cosine.

    >>> tnp.cosh(tnp.asarray([0.0, 1.0]))
    Array([1.        , 1.54308063], f64)
    """
    return hyperbolic.cosh(*promoted_inexact("cosh", x))


@elementwise
def tanh(x: Any, /) -> Array:
    """Return the hyperbolic tangent.

    >>> tnp.tanh(tnp.asarray([0.0, 1.0]))
    Array([0.        , 0.76159416], f64)
    """
    return hyperbolic.tanh(*promoted_inexact("tanh", x))


@elementwise
def arcsinh(x: Any, /) -> Array:
    """Return the inverse hyperbolic sine.

    >>> tnp.arcsinh(tnp.asarray([0.0, 1.0]))
    Array([0.        , 0.88137359], f64)
    """
    return hyperbolic.asinh(*promoted_inexact("arcsinh", x))


asinh = arcsinh


@elementwise
def arccosh(x: Any, /) -> Array:
    """Return the inverse hyperbolic cosine; NaN below 1.

    >>> tnp.arccosh(tnp.asarray([1.0, 2.0]))
    Array([0.        , 1.3169579], f64)
    """
    return hyperbolic.acosh(*promoted_inexact("arccosh", x))


acosh = arccosh


@elementwise
def arctanh(x: Any, /) -> Array:
    """Return the inverse hyperbolic tangent; NaN beyond ±1.

    >>> tnp.arctanh(tnp.asarray([0.0, 0.5]))
    Array([0.        , 0.54930614], f64)
    """
    return hyperbolic.atanh(*promoted_inexact("arctanh", x))


atanh = arctanh


def sinc(x: Any, /) -> Array:
    """Return sin(πx) / (πx), and 1 at 0, where the derivative is 0.

    x: numbers [*s]; integers are cast to floats. Returns floats or complex numbers [*s].

    >>> tnp.sinc(tnp.asarray([0.0, 0.5]))
    Array([1.        , 0.63661977], f64)
    """
    (value,) = promoted_inexact("sinc", x)
    zero = comparison.eq(value, 0)
    angle = arithmetic.mul(comparison.select(zero, 1, value), np.pi)
    # The Taylor series has the derivatives at 0.
    near = arithmetic.sub(1, arithmetic.mul(arithmetic.mul(value, value), np.pi**2 / 6))
    return comparison.select(zero, near, arithmetic.div(trigonometric.sin(angle), angle))


@elementwise
def deg2rad(x: Any, /) -> Array:
    """Convert degrees to radians.

    >>> tnp.deg2rad(tnp.asarray([180.0]))
    Array([3.14159265], f64)
    """
    (value,) = promoted_inexact("deg2rad", x)
    return arithmetic.mul(value, np.pi / 180)


radians = deg2rad


@elementwise
def rad2deg(x: Any, /) -> Array:
    """Convert radians to degrees.

    >>> tnp.rad2deg(tnp.asarray([tnp.pi]))
    Array([180.], f64)
    """
    (value,) = promoted_inexact("rad2deg", x)
    return arithmetic.mul(value, 180 / np.pi)


degrees = rad2deg


def angle(z: Any, deg: bool = False) -> Array:
    """Return the argument of complex numbers, in [-π, π]; 0 or π for reals, -0.0 included. In degrees if `deg`.

    z: numbers [*s]. Returns floats [*s] of z's precision; integers give the default float.

    >>> tnp.angle(tnp.asarray([1j, -1.0]))
    Array([1.57079633, 3.14159265], f64)
    """
    value = floating(operand("angle", z))
    if dtypes.is_complex(value.dtype):
        result = trigonometric.atan2(parts.imag(value), parts.real(value))
    else:
        below = cast(signbit(value), value.dtype)
        result = arithmetic.mul(below, np.pi)
        result = comparison.select(comparison.ne(value, value), value, result)
    return rad2deg(result) if deg else result
