"""Faddeeva's function w(z) = e^(-z²) erfc(-i z), always computed in float64.

In the first quadrant w is the integral of (i/π) e^(-t²) / (z - t) over the line. The trapezoidal rule of step h has
nodes at k h or at (k + 1/2) h, whichever are farther from z. The residue of the rule's kernel at z is added where z is
near the line. Twelve terms give both parts an error of 1e-15 of |w|, for every z: Al Azah & Chandler-Wilde 2021, SIAM
J. Numer. Anal. 59(5). Other quadrants follow from w(-conj z) = conj w(z) and w(-z) = 2 e^(-z²) - w(z).
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from typing import Any

from tracer.lax import complex as joined
from tracer.numpy import (
    absolute,
    copysign,
    cos,
    exp,
    floor,
    hypot,
    imag,
    isnan,
    maximum,
    minimum,
    real,
    round,
    sign,
    sin,
    where,
)
from tracer.numpy.core.conversion import cast
from tracer.scipy.operands import in_double
from tracer.scipy.special_functions.operands import complex_operand
from tracer.trace.array import Array
from tracer.transforms.custom.derivatives import custom_jvp

_NODES = 12
_STEP = math.sqrt(math.pi / _NODES)
_FAR = 1e100  # from here on w is i / (√π z), without squares that overflow
_SERIES_FROM = 6.5  # |z| from which the asymptotic series is exact
_SERIES_TERMS = 32


def wofz(z: Any) -> Array:
    """Return Faddeeva's function, e^(-z²) erfc(-i z).

    z: numbers [*s]. Returns complex128 [*s] for float64 and complex128, else complex64; integers are cast. Both parts
    have an error of 2e-15 |w| above the real line; below it, w grows as 2 e^(-z²), with its relative error.

    >>> tracer.scipy.special.wofz(tnp.asarray([0.0, 1.0 + 1.0j]))
    Array([1.        +0.j        , 0.30474421+0.20821894j], c128)
    """
    value, dtype = complex_operand("wofz", z)
    return cast(_wofz(value), dtype)


def voigt_profile(x: Any, sigma: Any, gamma: Any) -> Array:
    """Return Voigt's profile: the density of a normal variable plus a Cauchy variable.

    sigma is the standard deviation of the first, gamma the scale of the second, both at least 0. Where one of them is 0
    the profile is the density of the other variable; where both are, infinite at x = 0 and 0 elsewhere.

    >>> tracer.scipy.special.voigt_profile(tnp.asarray([0.0, 1.0]), 1.0, 1.0)
    Array([0.20870928, 0.16579566], f64)
    """
    return in_double("voigt_profile", _voigt, x, sigma, gamma)


def _voigt(x: Array, sigma: Array, gamma: Array) -> Array:
    narrow = sigma == 0
    width = where(narrow, 1.0, sigma) * math.sqrt(2.0)
    profile = real(_wofz(joined(x / width, gamma / width))) / (math.sqrt(math.pi) * width)
    nothing = narrow & (gamma == 0)
    scale = where(nothing | ~narrow, 1.0, gamma)
    distance = hypot(x, scale)
    cauchy = scale / distance / (math.pi * distance)
    spike = where(isnan(x), math.nan, where(x == 0, math.inf, 0.0))
    return where(narrow, where(nothing, spike, cauchy), profile)


@custom_jvp
def _wofz(z: Array) -> Array:
    x, y = real(z), imag(z)
    re, im = _first_quadrant(absolute(x), absolute(y))
    below = y < 0
    decay, turn = _gaussian(where(below, x, 0.0), where(below, y, 0.0))
    mirrored = where(below, 2.0 * decay - re, re)
    odd = where(x < 0, -im, im)  # i w is odd in the real part
    return joined(mirrored, where(below, 2.0 * turn + odd, copysign(im, x)))


_wofz.defjvps(lambda dz, w, z: dz * _slope(z, w))


def _gaussian(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the real and imaginary part of e^(-z²): e^(y² - x²) (cos 2xy - i sin 2xy)."""
    head_x, head_y = round(x * 64.0) * 0.015625, round(y * 64.0) * 0.015625
    small = (absolute(x) < 1e6) & (absolute(y) < 1e6)  # whose heads have exact squares
    first = where(small, (head_y - head_x) * (head_y + head_x), (y - x) * (y + x))
    second = where(small, (y - head_y) * (y + head_y) - (x - head_x) * (x + head_x), 0.0)
    # half the exponent twice, for products beyond the largest float
    size, phase = exp(0.5 * first), 2.0 * x * y
    phase = where(absolute(phase) < math.inf, phase, 0.0)
    factor = size * exp(second)
    re, im = factor * cos(phase) * size, -(factor * sin(phase) * size)
    return re, where(phase == 0, -phase, im)


def _first_quadrant(x: Array, y: Array) -> tuple[Array, Array]:
    near_line = y < maximum(x, math.pi / _STEP)
    place = x * (1.0 / _STEP)
    place = place - floor(place)
    whole = near_line & (y < x) & (place >= 0.25) & (place <= 0.75)  # nodes at whole multiples of the step
    far = (x > _FAR) | (y > _FAR)
    u, v = where(far, 1.0, x), where(far, 1.0, y)
    re, im, squares = 0.0 * u, 0.0 * u, u * u + v * v
    for k in range(_NODES):
        t = where(whole, k * _STEP, (k + 0.5) * _STEP)
        weight = where(whole, _weight(k), _weight(k + 0.5))
        left, right = (u - t) * (u - t) + v * v, (u + t) * (u + t) + v * v
        share = weight / (left * right)
        re = re + share * (left + right)
        im = im + share * (squares - t * t)
    re, im = (_STEP / math.pi) * v * re, (2.0 * _STEP / math.pi) * u * im
    extra_re, extra_im = _residue(u, v, whole)
    re, im = re + where(near_line, extra_re, 0.0), im + where(near_line, extra_im, 0.0)
    return _beyond(x, y, far, re, im)


def _weight(k: float) -> float:
    return 0.5 if k == 0 else math.exp(-((k * _STEP) ** 2))


def _residue(x: Array, y: Array, whole: Array) -> tuple[Array, Array]:
    """Return 2 e^(-z²) E / (E ± 1) with E = e^(2πi z / h), which vanishes for large x and y."""
    x, y = minimum(x, 30.0), minimum(y, 30.0)
    decay, turn = _gaussian(x, minimum(y, x + 30.0))
    size, angle = exp(-2.0 * math.pi / _STEP * y), 2.0 * math.pi / _STEP * x
    shift = where(whole, -1.0, 1.0)
    cosine, sine = size * cos(angle), size * sin(angle)
    scale = 2.0 / ((cosine + shift) * (cosine + shift) + sine * sine)
    # E conj(E ± 1) is |E|² ± E
    part_re, part_im = (size * size + shift * cosine) * scale, shift * sine * scale
    return decay * part_re - turn * part_im, decay * part_im + turn * part_re


def _beyond(x: Array, y: Array, far: Array, re: Array, im: Array) -> tuple[Array, Array]:
    """Replace both parts by the parts of i / (√π z) where z is far."""
    a, b = where(far, x, 1.0), where(far, y, 1.0)
    larger = maximum(a, b)
    a, b = where(a == math.inf, 1.0, a / larger), where(b == math.inf, 1.0, b / larger)
    scale = 1.0 / (math.sqrt(math.pi) * (a * a + b * b))
    return where(far, b * scale / larger, re), where(far, a * scale / larger, im)


def _slope(z: Array, w: Array) -> Array:
    """Return 2i/√π - 2 z w; far from 0, where the terms cancel, the derivative of the asymptotic series.

    w is (i/√π) times the sum of (2k - 1)!! / 2^k z^-(2k + 1) (DLMF 7.12.1). Below the real line it has 2 e^(-z²) more,
    half of it on the line.
    """
    far = absolute(z) > _SERIES_FROM
    near, distant = where(far, 1.0, z), where(far, z, _SERIES_FROM)
    inverse = 1.0 / distant
    square = inverse * inverse
    terms = [1.0]
    for k in range(1, _SERIES_TERMS):
        terms.append(terms[-1] * (k - 0.5))
    total = 0.0 * square
    for k in reversed(range(_SERIES_TERMS)):
        total = total * square + (2 * k + 1) * terms[k]
    decay, turn = _gaussian(real(distant), imag(distant))
    sides = 1.0 - sign(imag(distant))
    endless = absolute(real(distant)) == math.inf
    grown = where((sides == 0) | endless, 0.0, -2.0 * sides * joined(decay, turn) * distant)
    return where(far, -1j / math.sqrt(math.pi) * square * total + grown, 2j / math.sqrt(math.pi) - 2.0 * near * w)
