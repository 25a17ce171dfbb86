"""Window functions, which weight samples, and the Bessel function i0."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, TracerError, message
from tracer.numpy.chapters.bessel import bessel_i
from tracer.numpy.core.conversion import array_of
from tracer.numpy.elementwise.powers import sqrt
from tracer.numpy.elementwise.transcendental import cos
from tracer.numpy.shapes.creation import full_like
from tracer.numpy.shapes.ranges import arange
from tracer.trace.array import Array
from tracer.trace.source import here


def _count(name: str, M: Any) -> int:
    """Return the number of values of a window. Integral floats such as 4.0 are accepted."""
    if isinstance(M, float | np.floating) and float(M).is_integer():
        return int(M)
    try:
        return operator.index(M)
    except TypeError as error:
        if isinstance(error, TracerError):
            raise
        raise ArgumentError(message(f"{name}{here()} takes an integral number of values", f"got {M!r}")) from None


def _angles(name: str, M: Any) -> tuple[int, Array]:
    count = _count(name, M)
    return count, 2 * np.pi * arange(max(count, 0), dtype=float) / max(count - 1, 1)


def hanning(M: int) -> Array:
    """Return the Hann window of M values: a raised cosine that ends in 0.

    M: a Python integer. Returns floats [M].

    >>> tnp.hanning(3)
    Array([0., 1., 0.], f64)
    """
    count, angles = _angles("hanning", M)
    return 0.5 - 0.5 * cos(angles) if count != 1 else full_like(angles, 1)


def hamming(M: int) -> Array:
    """Return the Hamming window of M values: a raised cosine that ends in 0.08.

    M: a Python integer. Returns floats [M].

    >>> tnp.hamming(3)
    Array([0.08, 1.  , 0.08], f64)
    """
    count, angles = _angles("hamming", M)
    return 0.54 - 0.46 * cos(angles) if count != 1 else full_like(angles, 1)


def blackman(M: int) -> Array:
    """Return the Blackman window of M values.

    M: a Python integer. Returns floats [M].

    >>> tnp.blackman(3).round(6)
    Array([-0.,  1., -0.], f64)
    """
    count, angles = _angles("blackman", M)
    return 0.42 - 0.5 * cos(angles) + 0.08 * cos(2 * angles) if count != 1 else full_like(angles, 1)


def bartlett(M: int) -> Array:
    """Return the Bartlett window of M values: a triangle that ends in 0.

    M: a Python integer. Returns floats [M].

    >>> tnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], f64)
    """
    count, angles = _angles("bartlett", M)
    return 1 - abs(angles / np.pi - 1) if count != 1 else full_like(angles, 1)


def kaiser(M: int, beta: Any) -> Array:
    """Return the Kaiser window of M values: i0(beta sqrt(1 - t^2)) / i0(beta), for t from -1 to 1.

    M: a concrete integer; beta: a number, which may be traced. Returns floats [M].

    >>> tnp.kaiser(3, 2.0).round(6)
    Array([0.438676, 1.      , 0.438676], f64)
    """
    count, beta = max(_count("kaiser", M), 0), array_of("kaiser", beta)
    place = arange(count, dtype=float)
    if count <= 1:
        return full_like(place, 1)
    t = 2 * place / (count - 1) - 1
    return i0(beta * sqrt((1 - t) * (1 + t))) / i0(beta)


def i0(x: Any) -> Array:
    """Return the modified Bessel function of the first kind and order 0. Raises DTypeError for complex numbers.

    x: real [*s]; integers are cast to floats. Returns floats [*s].

    >>> tnp.i0(tnp.asarray([0.0, 1.0]))
    Array([1.        , 1.26606588], f64)
    """
    return bessel_i("i0", 0, x, scaled=False)
