"""The logarithm of Γ(z) for complex z, continued from the positive reals, always computed in float64.

Far from 0 by Stirling's series; nearer by recurrence to it. Beside the zeros by powers of z - 1 and z - 2, and by
reflection left of them. The branch cut is the negative real line. Hare 1997, J. Algorithms 25(2); DLMF 5.5, 5.7, 5.11.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.lax import complex as joined
from tracer.numpy import (
    absolute,
    conj,
    copysign,
    cos,
    cosh,
    floor,
    imag,
    inf,
    isnan,
    log,
    log1p,
    nan,
    real,
    round,
    sin,
    sinh,
    tan,
    where,
)
from tracer.numpy.core.conversion import cast
from tracer.primitives.elementwise import special
from tracer.scipy.operands import in_double
from tracer.scipy.special_functions.operands import complex_operand, is_complex
from tracer.trace.array import Array
from tracer.transforms.custom.derivatives import custom_jvp

_FAR = 7.0  # from here on, Stirling's series has an error of 1e-17
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160, 43867 / 14364)
_DIGAMMA_SHIFT = 12  # so that its series, and its first derivatives' series, are exact
_BESIDE = 0.6  # distance from the zeros 1 and 2 up to which powers are summed
# (-1)^k (ζ(k) - 1) / k for k = 2, 3, ...: log Γ(1 + w) = (1 - γ) w - log(1 + w) + sum of these w^k, DLMF 5.7.3
_POWERS = (
    0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986, 0.0028905103307415234,
    -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939, 9.945751278180853e-05,
    -4.492623673813314e-05, 2.050721277567069e-05, -9.439488275268397e-06, 4.374866789907488e-06,
    -2.039215753801366e-06, 9.55141213040742e-07, -4.492469198764566e-07, 2.1207184805554665e-07,
    -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08, 1.0838659214896955e-08,
    -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09, 5.731367241678862e-10,
    -2.7595228851242334e-10, 1.330476437424449e-10, -6.4229645638381e-11, 3.1044247747322276e-11,
    -1.5021384080754142e-11, 7.275974480239079e-12, -3.527742476575915e-12, 1.711991790559618e-12,
    -8.315385841420285e-13, 4.04220052528944e-13, -1.9664756310966165e-13,
)  # fmt: skip
_EULER = 0.5772156649015329


def loggamma(x: Any) -> Array:
    """Return the logarithm of Γ, continued from the positive reals: its imaginary part is not reduced to [-π, π].

    x: numbers [*s]. Returns floats or complex numbers [*s]; integers are cast. Real numbers below 0 give NaN, as the
    logarithm is complex there; complex numbers on the branch cut below 0 take the side of their zero's sign.

    >>> tracer.scipy.special.loggamma(tnp.asarray([1.0, 5.0]))
    Array([0.        , 3.17805383], f64)
    >>> tracer.scipy.special.loggamma(-1.5 + 0j)
    Array(0.86004702-6.28318531j, c128)
    """
    if not is_complex("loggamma", x):
        return in_double("loggamma", _real, x)
    value, dtype = complex_operand("loggamma", x)
    return cast(_loggamma(value), dtype)


def _real(x: Array) -> Array:
    return special.lgamma(where(x >= 0, x, nan))


@custom_jvp
def _loggamma(z: Array) -> Array:
    x, y = real(z), imag(z)
    far = (x > _FAR) | (absolute(y) > _FAR)
    pole = (y == 0) & (x <= 0) & (floor(x) == x)
    left = ~far & (x < 0.1)
    usual = where(far | pole, 1.5, z)
    middle = _middle(where(left & ~pole, 1.0 - usual, usual))
    near = where(left & ~pole, _reflected(where(left & ~pole, z, 0.5), middle), middle)
    found = where(far, _stirling(where(far, z, _FAR)), near)
    return where(pole | isnan(x) | isnan(y), joined(nan, nan), found)


def _stirling(z: Array) -> Array:
    finite = absolute(real(z)) + absolute(imag(z)) < inf
    z = where(finite, z, 8.0)
    inverse = 1.0 / z
    square = inverse * inverse
    total = square * _STIRLING[-1]
    for coefficient in _STIRLING[-2:0:-1]:
        total = (total + coefficient) * square
    series = (total + _STIRLING[0]) * inverse
    return where(finite, (z - 0.5) * log(z) - z + (0.5 * math.log(2 * math.pi) + series), joined(nan, nan))


def _middle(z: Array) -> Array:
    """Return the logarithm for 0.1 <= Re z <= 7 and |Im z| <= 7."""
    by_one, by_two = absolute(z - 1.0) < _BESIDE, absolute(z - 2.0) < _BESIDE
    w = where(by_one, z - 1.0, where(by_two, z - 2.0, 0.0))
    total = w * _POWERS[-1]
    for coefficient in _POWERS[-2::-1]:
        total = (total + coefficient) * w
    beside = (total + (1.0 - _EULER)) * w - where(by_one, log1p(w), 0.0)
    return where(by_one | by_two, beside, _recurrence(z))


def _recurrence(z: Array) -> Array:
    """Return the logarithm at z + n less log(z (z + 1) ...), whose branch is found by counting half turns."""
    up = imag(z) >= 0
    z = where(up, z, conj(z))
    product, turns, shift = 0.0 * z + 1.0, 0.0 * real(z), 0.0 * real(z)
    for _ in range(int(_FAR)):
        low = real(z) + shift <= _FAR
        new = where(low, product * (z + shift), product)
        turns = turns + where((imag(product) >= 0) & (imag(new) < 0), 1.0, 0.0)
        product, shift = new, shift + where(low, 1.0, 0.0)
    found = _stirling(z + shift) - log(product) - joined(0.0 * turns, 2.0 * math.pi * turns)
    return where(up, found, conj(found))


def _reflected(z: Array, mirrored: Array) -> Array:
    """Return the logarithm at z from that at 1 - z: DLMF 5.5.3, on the sheet that continues from the right."""
    x, y = real(z), imag(z)
    near = 0.5 * x
    turn = math.pi * (x - 2.0 * round(near))
    sine = joined(sin(turn) * cosh(math.pi * y), cos(turn) * sinh(math.pi * y))
    sheet = copysign(2.0 * math.pi, y) * floor(near + 0.25)
    return joined(math.log(math.pi) + 0.0 * x, sheet) - log(sine) - mirrored


_loggamma.defjvps(lambda dz, _, z: dz * _digamma(z))


def _digamma(z: Array) -> Array:
    """Return the derivative, by operations whose derivatives of every order are exact, too."""
    left = real(z) < 0.5
    turn = where(left, z - round(real(z)), 0.25)
    pole = turn == 0
    cotangent = where(left, math.pi / tan(math.pi * where(pole, 0.25, turn)), 0.0)
    return where(pole, joined(nan, nan), _right_digamma(where(left, 1.0 - z, z)) - cotangent)


def _right_digamma(z: Array) -> Array:
    """Return the logarithmic derivative for Re z >= 0.5, by recurrence to its asymptotic series."""
    total = 0.0 * z
    for k in range(_DIGAMMA_SHIFT):
        total = total - 1.0 / (z + float(k))
    far = z + float(_DIGAMMA_SHIFT)
    inverse = 1.0 / far
    square = inverse * inverse
    series = square * _DIGAMMA[-1]
    for coefficient in _DIGAMMA[-2:0:-1]:
        series = (series + coefficient) * square
    return log(far) - 0.5 * inverse - square * (series + _DIGAMMA[0]) + total
