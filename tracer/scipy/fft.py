"""Cosine transforms of types 1 to 4, by Fourier transforms: Makhoul 1980, IEEE Trans. Acoust. Speech 28(1)."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.absent import absent
from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.shape import axes_tuple, axis_index
from tracer.numpy import asarray, concatenate, fft, flip, imag, moveaxis, pad, real, result_type
from tracer.numpy.core.promotion import promoted_inexact
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array
from tracer.trace.docstrings import say
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

__all__ = ["dct", "dctn", "idct", "idctn"]

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the cosine transform along an axis; of type 2, y[k] = 2 sum of x[j] cos(pi k (2 j + 1) / 2 n).

    n: the length, by default the axis's: the signal is cut, or filled with zeros; axis: one axis.

    >>> tracer.scipy.fft.dct(tnp.asarray([1.0, 2.0, 4.0])).round(6)
    Array([14.      , -5.196152,  1.      ], f64)
    """
    (signal,) = promoted_inexact("dct", x)
    return _along("dct", signal, type, n, axis_index(axis, signal.ndim, f"dct{here()}"), norm)


def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of the cosine transform of a type along an axis.

    n: the length, by default the axis's: the signal is cut, or filled with zeros; axis: one axis.

    >>> tracer.scipy.fft.idct(tracer.scipy.fft.dct(tnp.asarray([1.0, 2.0, 3.0]))).round(6)
    Array([1., 2., 3.], f64)
    """
    (signal,) = promoted_inexact("idct", x)
    along = axis_index(axis, signal.ndim, f"idct{here()}")
    return _along("idct", signal, *_inverted("idct", type, norm, n, along))


def dctn(
    x: Any, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:  # fmt: skip
    """Return the cosine transform along several axes, by default all of them.

    s: the lengths along the axes; axes: by default the last ones, or all.

    >>> tracer.scipy.fft.dctn(tnp.ones((2, 2)))
    Array([[16.,  0.],
           [ 0.,  0.]], f64)
    """
    (signal,) = promoted_inexact("dctn", x)
    for along, n in _axes("dctn", signal, s, axes):
        signal = _along("dctn", signal, type, n, along, norm)
    return signal


def idctn(
    x: Any, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:  # fmt: skip
    """Return the inverse of the cosine transform of a type along several axes, by default all of them.

    s: the lengths along the axes; axes: by default the last ones, or all.

    >>> tracer.scipy.fft.idctn(tracer.scipy.fft.dctn(tnp.ones((2, 2))))
    Array([[1., 1.],
           [1., 1.]], f64)
    """
    (signal,) = promoted_inexact("idctn", x)
    for along, n in _axes("idctn", signal, s, axes):
        signal = _along("idctn", signal, *_inverted("idctn", type, norm, n, along))
    return signal


def _inverted(name: str, type: int, norm: str | None, n: int | None, along: int) -> tuple[Any, ...]:
    _check(name, type, norm)
    return _INVERSE[type], n, along, _OPPOSITE[norm]


def _check(name: str, type: int, norm: str | None) -> None:
    if type not in _INVERSE or norm not in _OPPOSITE:
        text = f'{name}{here()}: type is 1, 2, 3 or 4, and norm None, "backward", "ortho" or "forward"'
        raise ArgumentError(message(text, f"got type={type!r}, norm={norm!r}"))


def _axes(name: str, x: Array, s: Any, axes: Any) -> list[tuple[int, int | None]]:
    if axes is None:
        along: Sequence[int] = range(x.ndim - (x.ndim if s is None else len(s)), x.ndim)
    else:
        along = axes_tuple(axes, x.ndim, f"{name}{here()}")
    lengths = [None] * len(along) if s is None else list(s)
    if len(lengths) != len(along):
        raise ShapeError(message(f"{name}{here()}: s has one length for each axis", f"got s={s}, axes={axes}"))
    return list(zip(along, lengths, strict=True))


def _along(name: str, x: Array, type: int, n: int | None, along: int, norm: str | None) -> Array:
    _check(name, type, norm)
    signal = moveaxis(x, along, -1)
    size = signal.shape[-1] if n is None else n
    if size < (2 if type == 1 else 1):
        least = "two samples" if type == 1 else "one sample"
        raise ShapeError(message(f"{name}{here()}: a transform of type {type} takes {least} at least", f"got {x.type}"))
    signal = signal[..., :size]
    signal = pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, size - signal.shape[-1])])
    if dtypes.is_complex(signal.dtype):
        found = _transformed(real(signal), type, norm) + 1j * _transformed(imag(signal), type, norm)
    else:
        found = _transformed(signal, type, norm)
    return moveaxis(found, -1, along)


def _transformed(x: Array, type: int, norm: str | None) -> Array:
    n = x.shape[-1]
    dtype = result_type(x.dtype, np.float32)
    x = x.astype(dtype)
    whole = 2 * (n - 1 if type == 1 else n)
    before, after = np.ones(n), np.ones(n)
    if norm == "ortho":
        if type == 1:
            before[[0, -1]], after[[0, -1]] = math.sqrt(2), math.sqrt(1 / 2)
        after = after / math.sqrt(whole)
        if type == 2:
            after[0] /= math.sqrt(2)
        if type == 3:
            before[0] = math.sqrt(2)
    elif norm == "forward":
        after = after / whole
    return _TYPES[type](x * asarray(before, dtype)) * asarray(after, dtype)


def _first(x: Array) -> Array:
    return real(fft.rfft(concatenate([x, flip(x[..., 1:-1], -1)], -1)))


def _second(x: Array) -> Array:
    turned = fft.fft(concatenate([x[..., ::2], flip(x[..., 1::2], -1)], -1))
    return 2 * real(turned * _phases(x, 0.0))


def _third(x: Array) -> Array:
    n = x.shape[-1]
    backwards = concatenate([0 * x[..., :1], flip(x[..., 1:], -1)], -1)
    found = n * real(fft.ifft((x - 1j * backwards) * _phases(x, 0.0).conj()))
    order = np.empty(n, int)
    order[::2], order[1::2] = np.arange((n + 1) // 2), n - 1 - np.arange(n // 2)
    return found[..., order]


def _fourth(x: Array) -> Array:
    n = x.shape[-1]
    return 2 * real(fft.fft(x * _phases(x, 0.0), 2 * n)[..., :n] * _phases(x, 0.5))


def _phases(x: Array, shift: float) -> Array:
    """Return exp(-i pi (k + shift) / 2 n) for the indices k of the last axis."""
    n = x.shape[-1]
    return asarray(np.exp(-0.5j * np.pi * (np.arange(n) + shift) / n), result_type(x.dtype, np.complex64))


_TYPES = {1: _first, 2: _second, 3: _third, 4: _fourth}


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)


set_boundaries(globals(), __all__, cached)
say(
    [globals()[name] for name in __all__],
    {
        "x": "numbers [*s]; integers become floats. Returns that dtype.",
        "type": "1, 2, 3 or 4.",
        "norm": 'None or "backward" leaves the transform as it is, "ortho" makes it orthonormal, "forward" divides by '
        "twice its length.",
    },
)
