"""Bitwise operations on integers and bools."""

from __future__ import annotations

from typing import Any

from tracer.ir import dtypes
from tracer.numpy.core.conversion import cast
from tracer.numpy.core.promotion import operand, promoted, promoted_counts
from tracer.numpy.elementwise.arithmetic import absolute
from tracer.primitives.elementwise import bits
from tracer.runtime.eager.elementwise_dispatch import elementwise
from tracer.trace.array import Array


@elementwise
def bitwise_and(x1: Any, x2: Any, /) -> Array:
    """Return the bits that are set in both operands.

    >>> tnp.bitwise_and(tnp.asarray([6, 5]), 3)
    Array([2, 1], i64)
    """
    return bits.and_(*promoted("bitwise_and", x1, x2))


@elementwise
def bitwise_or(x1: Any, x2: Any, /) -> Array:
    """Return the bits that are set in either operand.

    >>> tnp.bitwise_or(tnp.asarray([6, 5]), 3)
    Array([7, 7], i64)
    """
    return bits.or_(*promoted("bitwise_or", x1, x2))


@elementwise
def bitwise_xor(x1: Any, x2: Any, /) -> Array:
    """Return the bits that are set in exactly one operand.

    >>> tnp.bitwise_xor(tnp.asarray([6, 5]), 3)
    Array([5, 6], i64)
    """
    return bits.xor(*promoted("bitwise_xor", x1, x2))


@elementwise
def bitwise_not(x: Any, /) -> Array:
    """Return x with every bit inverted; the logical not of bools.

    >>> tnp.bitwise_not(tnp.asarray([0, 5]))
    Array([-1, -6], i64)
    """
    return bits.not_(*promoted("bitwise_not", x))


bitwise_invert = bitwise_not
invert = bitwise_not


@elementwise
def left_shift(x1: Any, x2: Any, /) -> Array:
    """Return x1 shifted left by x2 bits; 0 for shifts by the width or more.

    >>> tnp.left_shift(tnp.asarray([1, 2]), 3)
    Array([ 8, 16], i64)
    """
    x, y = promoted_counts("left_shift", x1, x2)
    shifted: Array = bits.shift_left(x, y)
    return shifted


bitwise_left_shift = left_shift


@elementwise
def right_shift(x1: Any, x2: Any, /) -> Array:
    """Return x1 shifted right by x2 bits, keeping the sign.

    >>> tnp.right_shift(tnp.asarray([16, -16]), 2)
    Array([ 4, -4], i64)
    """
    x, y = promoted_counts("right_shift", x1, x2)
    array = x if isinstance(x, Array) else y
    shift = bits.shift_right_logical if dtypes.is_unsigned(array.dtype) else bits.shift_right_arithmetic
    result: Array = shift(x, y)
    return result


bitwise_right_shift = right_shift


def bitwise_count(x: Any, /) -> Array:
    """Return the number of set bits of |x|, as uint8.

    x: integers or bools [*s]. Returns [*s].

    >>> tnp.bitwise_count(tnp.asarray([0, 7, -1]))
    Array([0, 3, 1], u8)
    """
    value = operand("bitwise_count", x)
    if dtypes.is_bool(value.dtype):
        return cast(value, dtypes.U8)
    return cast(bits.population_count(absolute(value)), dtypes.U8)
