"""x reduced by multiples of pi or pi/2, for arguments of any size.

Up to `NEAR` (2^17 for f32, 2^40 for f64) by three FMAs with parts of pi, the first one exact (Boldo, Daumas & Li 2009,
IEEE Trans. Comput. 58(8)). Beyond, after Payne & Hanek (1983, SIGNUM Newsl. 18(1)), x / pi modulo 2 from as many bits
of 1/pi as matter there. For f32 these are two f64 FMAs with parts of 1/pi chosen by the size of x. For f64 this is a
product of 53 by 192 bits in integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from tracer.ir.dtypes import F64
from tracer.schedule.math import pi_bits as p
from tracer.schedule.math.double_double import fast_two_sum, two_product
from tracer.schedule.math.expand import DOUBLE, SINGLE, Value, fma, select

NEAR: Final = {SINGLE: 2.0**17, DOUBLE: 2.0**40}


@dataclass(frozen=True, slots=True)
class Unit:
    """pi / halves, with halves 1 or 2; `shifted` counts its odd halves instead of its multiples."""

    halves: int = 1
    shifted: bool = False


def reduced(x: Value, unit: Unit) -> tuple[Value, Value, Value]:
    """Return (r, rest, bits): x = (k + offset) unit + r + rest, |r| <= unit/2, k in the low bits of the integer `bits`.

    offset is -1/2 where the unit is shifted (then the sign of x is not kept), else 0. Of k only the lowest bit
    is right for large x. NaN for infinities. `rest` is 0 for unit pi, where nothing needs it.
    """
    f = x.format
    multiple = fma(x, unit.halves / math.pi, 0.5) + f.magic if unit.shifted else fma(x, unit.halves / math.pi, f.magic)
    k = (multiple - f.magic) - 0.5 if unit.shifted else multiple - f.magic
    first, second, third = (-part / unit.halves for part in p.PI_PARTS[f])
    above = fma(k, first, x)
    if unit.halves == 1:
        r, rest = fma(k, third, fma(k, second, above)), x.like(0.0)
    else:
        product, product_lost = two_product(k, second)
        near, lost = fast_two_sum(above, product)
        r, rest = fast_two_sum(near, fma(k, third, lost + product_lost))
    size = abs(x)
    far = (size > NEAR[f]) & (size < math.inf)
    huge = _reduced_single if f is SINGLE else _reduced_double
    if unit.halves == 1:
        r, bits = x.code.rarely(far, (r, multiple.bits), lambda code: huge(code.adopt(x), unit)[::2])
        return r, rest, bits
    r, rest, bits = x.code.rarely(far, (r, rest, multiple.bits), lambda code: huge(code.adopt(x), unit))
    return r, rest, bits


def _reduced_single(x: Value, unit: Unit) -> tuple[Value, Value, Value]:
    """Reduce in f64 by 1/pi: only the bits whose product with x is not a multiple of two, 106 of them."""
    size = abs(x)
    wide = x.convert(F64)
    (_, high, low), *windows = (
        (least / unit.halves, wide.like(a * unit.halves), wide.like(b * unit.halves))
        for least, a, b in p.INVERSE_WINDOWS
    )
    for least, a, b in windows:
        beyond = size >= least
        high, low = select(beyond, a, high), select(beyond, b, low)
    turns = wide * high
    k = ((turns + 0.5) if unit.shifted else turns).round_even()
    fraction = fma(wide, low, fma(wide, high, (0.5 - k) if unit.shifted else -k))
    correction = fraction.round_even()  # where `turns` was too large to have more than three fraction bits
    k = k + correction
    radians = (fraction - correction) * (math.pi / unit.halves)
    r = radians.convert(x.dtype)
    rest = (radians - r.convert(F64)).convert(x.dtype)
    whole = (k * 0.5).round_even() * 2.0
    return r, rest, select(k.equals(whole), x.bits.like(0), 1)


def _reduced_double(x: Value, unit: Unit) -> tuple[Value, Value, Value]:
    """Reduce by a fixed-point product whose top bit counts units and whose other bits are the fraction."""
    encoding = x.bits
    words = _window(encoding, unit)
    integer = (encoding & DOUBLE.fraction_mask) | (1 << 52)
    first, second = _high_product(integer, words[1])
    first = first + integer * words[0]
    significand = ((encoding & DOUBLE.fraction_mask) | DOUBLE.bits(1.0)).as_float
    rest = significand * (((words[2].logical_shift(12)) | DOUBLE.bits(1.0)).as_float - 1.0)
    if unit.shifted:
        first = first + (1 << 62)
    bits = (first + (1 << 62)).logical_shift(63)
    high = (first << 1) | second.logical_shift(63)
    low = second << 1
    # pieces of 32, 32 and 52 bits become floats by being written below a leading bit of fitting weight
    a = ((high >> 32) + DOUBLE.bits(1.5 * 2.0**20)).as_float - 1.5 * 2.0**20
    b = ((high & 0xFFFFFFFF) | DOUBLE.bits(2.0**-12)).as_float - 2.0**-12
    c = (low.logical_shift(12) | DOUBLE.bits(2.0**-64)).as_float - 2.0**-64
    total, lost = fast_two_sum(a, b)
    fraction, lost = fast_two_sum(total, lost + fma(rest, 2.0**-75, c))
    pi_high, pi_low = (part / unit.halves for part in p.PI_PARTS[DOUBLE][:2])
    product = fma(fraction, pi_low, lost * pi_high)
    r = fma(fraction, pi_high, product)
    rest = fma(fraction, pi_high, -r) + product
    if unit.shifted:
        return r, rest, bits
    sign = encoding & DOUBLE.sign_bit
    return (r.bits ^ sign).as_float, (rest.bits ^ sign).as_float, bits


def _window(encoding: Value, unit: Unit) -> list[Value]:
    """Return three 64-bit words of 1/pi, the top bit of the first having weight 1 in units of x's last place."""
    origin = DOUBLE.bias + DOUBLE.fraction - p.INVERSE_LEAD - (unit.halves - 1)
    position = (encoding.logical_shift(52) & 0x7FF) - origin
    words = [position.like(word) for word in p.INVERSE_WORDS]
    count = 4
    for step in (8, 4, 2, 1):
        chosen = (position & (64 * step)).differs(0)
        reach = count + step - 1  # words that the smaller steps may still ask for
        words = [
            select(chosen, words[i + step], words[i]) if i + step < len(words) else words[i]
            for i in range(min(reach, len(words)))
        ]
    shift = position & 63
    back = 63 - shift
    return [words[i].shift_left(shift) | words[i + 1].logical_shift(1).logical_shift(back) for i in range(3)]


def _high_product(a: Value, b: Value) -> tuple[Value, Value]:
    """Return (high, low) words of the product of two unsigned 64-bit integers, by 32-bit halves."""
    mask = 0xFFFFFFFF
    a_low, a_high, b_low, b_high = a & mask, a.logical_shift(32), b & mask, b.logical_shift(32)
    low = a_low * b_low
    middle = a_low * b_high + low.logical_shift(32)
    other = a_high * b_low + (middle & mask)
    high = a_high * b_high + middle.logical_shift(32) + other.logical_shift(32)
    return high, (other << 32) | (low & mask)
