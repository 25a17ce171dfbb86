"""Fourier transforms: their frequencies and the order of their results. `tracer.numpy.fft`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.numpy.arithmetic import divide
from tracer.numpy.conversion import array_of
from tracer.numpy.creation import arange
from tracer.numpy.joining import concatenate, roll
from tracer.primitives.broadcasting import axis_of
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of a transform of n samples that are `d` apart: 0 and up, then the negative ones. float, [n].

    Raises ArgumentError unless n is at least 1.

    >>> tnp.fft.fftfreq(4, d=0.5)
    Array([ 0. ,  0.5, -1. , -0.5], f64)
    """
    count = _samples("fftfreq", n)
    half = (count + 1) // 2
    upward = arange(half, dtype=float if dtype is None else dtype, device=device)
    downward = arange(-(count // 2), 0, dtype=upward.dtype, device=device)
    return divide(concatenate([upward, downward]), count * d)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of a transform of n real samples that are `d` apart, none negative. float, [n // 2 + 1].

    Raises ArgumentError unless n is at least 1.

    >>> tnp.fft.rfftfreq(4, d=0.5)
    Array([0. , 0.5, 1. ], f64)
    """
    count = _samples("rfftfreq", n)
    return divide(arange(count // 2 + 1, dtype=float if dtype is None else dtype, device=device), count * d)


def fftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> Array:
    """Frequency 0 moved from the front to the middle of the axes, by default of all. Of x's shape and dtype.

    >>> tnp.fft.fftshift(tnp.asarray([0, 1, 2, -2, -1]))
    Array([-2, -1,  0,  1,  2], i64)
    """
    return _shifted("fftshift", x, axes, lambda size: size // 2)


def ifftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> Array:
    """Frequency 0 moved from the middle of the axes to the front: undoes `fftshift`. Of x's shape and dtype.

    >>> tnp.fft.ifftshift(tnp.asarray([-2, -1, 0, 1, 2]))
    Array([ 0,  1,  2, -2, -1], i64)
    """
    return _shifted("ifftshift", x, axes, lambda size: -(size // 2))


def _shifted(name: str, x: Any, axes: int | Sequence[int] | None, by: Any) -> Array:
    array = array_of(name, x)
    named = range(array.ndim) if axes is None else axes if isinstance(axes, list | tuple) else (axes,)
    chosen = tuple(axis_of(name, axis, array.ndim) for axis in named)
    return roll(array, tuple(by(array.shape[axis]) for axis in chosen), chosen) if chosen else array


def _samples(name: str, n: Any) -> int:
    count = operator.index(n)
    if count < 1:
        raise ArgumentError(message(f"{name}{here()}: a transform has at least one sample", f"got n={count}"))
    return count


def __getattr__(name: str) -> Any:
    if name in _TRANSFORMS:
        raise AttributeError(f"module 'tracer.numpy.fft' has no {name!r} yet: Fourier transforms need a new primitive")
    raise AttributeError(f"module 'tracer.numpy.fft' has no attribute {name!r}")


_TRANSFORMS = frozenset(
    ("fft", "fft2", "fftn", "hfft", "ifft", "ifft2", "ifftn", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2",
     "rfftn")
)  # fmt: skip

set_boundaries(globals(), __all__)
