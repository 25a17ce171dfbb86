"""Windows, by which samples are weighed, and the Bessel function of Kaiser's."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.numpy.arithmetic import absolute
from tracer.numpy.choosing import where
from tracer.numpy.creation import arange, full_like
from tracer.numpy.powers import sqrt
from tracer.numpy.promotion import promoted_inexact
from tracer.numpy.transcendental import cos, exp
from tracer.trace.array import Array
from tracer.trace.source import here


def _angles(name: str, M: Any) -> tuple[int, Array]:
    count = operator.index(M)
    return count, 2 * np.pi * arange(max(count, 0), dtype=float) / max(count - 1, 1)


def hanning(M: int) -> Array:
    """The Hann window of M values: a raised cosine that ends in 0.

    >>> tnp.hanning(3)
    Array([0., 1., 0.], f64)
    """
    count, angles = _angles("hanning", M)
    return 0.5 - 0.5 * cos(angles) if count != 1 else full_like(angles, 1)


def hamming(M: int) -> Array:
    """The Hamming window of M values: a raised cosine that ends in 0.08.

    >>> tnp.hamming(3)
    Array([0.08, 1.  , 0.08], f64)
    """
    count, angles = _angles("hamming", M)
    return 0.54 - 0.46 * cos(angles) if count != 1 else full_like(angles, 1)


def blackman(M: int) -> Array:
    """The Blackman window of M values.

    >>> tnp.blackman(3).round(6)
    Array([-0.,  1., -0.], f64)
    """
    count, angles = _angles("blackman", M)
    return 0.42 - 0.5 * cos(angles) + 0.08 * cos(2 * angles) if count != 1 else full_like(angles, 1)


def bartlett(M: int) -> Array:
    """The Bartlett window of M values: a triangle that ends in 0.

    >>> tnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], f64)
    """
    count, angles = _angles("bartlett", M)
    return 1 - abs(angles / np.pi - 1) if count != 1 else full_like(angles, 1)


def kaiser(M: int, beta: Any) -> Array:
    """The Kaiser window of M values: i0(beta sqrt(1 - t^2)) / i0(beta), for t from -1 to 1.

    >>> tnp.kaiser(3, 2.0).round(6)
    Array([0.438676, 1.      , 0.438676], f64)
    """
    count = operator.index(M)
    place = arange(count, dtype=float)
    if count <= 1:
        return full_like(place, 1)
    t = 2 * place / (count - 1) - 1
    return i0(beta * sqrt((1 - t) * (1 + t))) / i0(beta)


def i0(x: Any) -> Array:
    """The modified Bessel function of the first kind and order 0, of real numbers.

    Its power series up to 18, in which all terms are positive; above, its asymptotic one, whose error there is below
    e^-36 (Abramowitz & Stegun 9.6.12, 9.7.1).

    >>> tnp.i0(tnp.asarray([0.0, 1.0]))
    Array([1.        , 1.26606588], f64)
    """
    (value,) = promoted_inexact("i0", x)
    if not dtypes.is_float(value.dtype):
        raise DTypeError(message(f"i0{here()} takes real numbers", f"got {value.type}"))
    far = absolute(value) > _FAR
    quarter = where(far, 0, value) ** 2 / 4
    near = full_like(value, 1)
    for k in range(_POWERS, 0, -1):
        near = near * quarter / k**2 + 1
    size = where(far, absolute(value), _FAR)
    beyond = full_like(value, 1)
    for k in range(_ASYMPTOTIC, 0, -1):
        beyond = beyond * (2 * k - 1) ** 2 / (8 * k * size) + 1
    root = exp(size / 2)  # squared below, where it is not too large
    return where(far, root * (root * (beyond / sqrt(2 * np.pi * size))), near)


_FAR = 18.0
_POWERS, _ASYMPTOTIC = 46, 34
