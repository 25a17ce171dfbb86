"""Floats as fractions and powers of two: ldexp, frexp, spacing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.numpy.core.conversion import array_of, broadcast, cast
from tracer.numpy.core.promotion import promoted_real
from tracer.numpy.elementwise.arithmetic import absolute, clip, maximum, minimum
from tracer.numpy.elementwise.logic import isfinite
from tracer.numpy.elementwise.rounding import copysign, nextafter
from tracer.numpy.shapes.manipulation import broadcast_shapes
from tracer.numpy.shapes.where import where
from tracer.primitives.elementwise.conversion import bitcast_convert_type
from tracer.trace.array import Array
from tracer.trace.source import here

# For a dtype: the integer dtype of its size, the bits of its fraction, and the exponent bias.
_FORMATS: dict[DType, tuple[DType, int, int]] = {dtypes.F64: (dtypes.I64, 52, 1023), dtypes.F32: (dtypes.I32, 23, 127)}


def ldexp(x1: Any, x2: Any, /) -> Array:
    """Return x1 times two to the power of the integers x2, rounded once.

    x1: real numbers, integers are cast to floats; x2: integers or bools; their shapes broadcast to [*s]. Returns floats
    [*s], in x1's dtype. Raises DTypeError for other exponents.

    >>> tnp.ldexp(tnp.asarray([0.75, 5e-324]), tnp.asarray([2, 1074]))
    Array([3., 1.], f64)
    """
    x, by = _float("ldexp", x1), array_of("ldexp", x2)
    if not (dtypes.is_integer(by.dtype) or dtypes.is_bool(by.dtype)):
        raise DTypeError(message(f"ldexp{here()}: exponents must be integers", f"got {by.type}", help="x1 * 2.0**x2"))
    shape = broadcast_shapes(x.shape, by.shape)
    wide = x if x.dtype in _FORMATS else cast(x, dtypes.F32)
    scaled = _scaled(broadcast(wide, shape), broadcast(cast(clip(_long(by), -5000, 5000), dtypes.I32), shape))
    return cast(scaled, x.dtype)


def _long(by: Array) -> Array:
    return cast(by, dtypes.I32) if by.dtype.itemsize < dtypes.I32.itemsize else by


def frexp(x: Any, /) -> tuple[Array, Array]:
    """Return a fraction of magnitude in [0.5, 1) and an exponent of two, int32, whose `ldexp` is x.

    x: real numbers [*s]. Returns two arrays [*s]: floats, float32 for integers up to 32 bits, else the default float;
    and int32.

    Zeros, infinities and NaN are their own fractions with exponent 0. The derivative is the derivative of the fraction
    with a constant exponent.

    >>> tnp.frexp(tnp.asarray([6.0, -0.1]))
    (Array([ 0.75, -0.8 ], f64), Array([ 3, -3], i32))
    """
    value = _float("frexp", x)
    wide = value if value.dtype in _FORMATS else cast(value, dtypes.F32)
    integer, digits, bias = _FORMATS[wide.dtype]
    odd = (wide == 0) | ~isfinite(wide)
    small = absolute(wide) < np.finfo(wide.dtype).tiny
    normal = where(small, wide * 2.0**digits, wide)
    bits = (bitcast_convert_type(normal, integer) >> digits) & (2 * bias + 1)
    exponent = where(odd, 0, cast(bits, dtypes.I32) - (bias - 1) - where(small, digits, 0).astype(dtypes.I32))
    return cast(_scaled(wide, -exponent), value.dtype), exponent


def spacing(x: Any, /) -> Array:
    """Return the distance from x to the next float away from zero, with x's sign; NaN for infinities.

    >>> tnp.spacing(tnp.asarray([1.0, -1.0]))
    Array([ 2.22044605e-16, -2.22044605e-16], f64)
    """
    value = _float("spacing", x)
    magnitude = absolute(value)
    gap = nextafter(magnitude, np.inf) - magnitude
    return where(value == 0, gap, copysign(gap, value))


def _float(name: str, x: Any) -> Array:
    (value,) = promoted_real(name, x)
    return value


def _scaled(x: Array, by: Array) -> Array:
    """Return x * 2**by, multiplied in steps of which all but the last are exact (as musl's scalbn)."""
    integer, digits, bias = _FORMATS[x.dtype]
    for _ in range(2):
        up, down = by > bias, by < 1 - bias
        x = where(up, x * 2.0**bias, where(down, x * 2.0 ** (digits + 2 - bias), x))
        by = by - where(up, bias, where(down, digits + 2 - bias, 0)).astype(dtypes.I32)
    place = cast(maximum(minimum(by, bias), 1 - bias) + bias, integer)
    return x * bitcast_convert_type(place << digits, x.dtype)
