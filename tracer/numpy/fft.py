"""Fourier transforms, their frequencies and the order of their results. `tracer.numpy.fft`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.numpy_fallbacks import by_value
from tracer.numpy.elementwise.arithmetic import divide
from tracer.numpy.shapes.joining import concatenate
from tracer.numpy.shapes.ranges import arange
from tracer.numpy.shapes.repeating import roll
from tracer.primitives.base.broadcasting import axis_of
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """Return the frequencies of a transform of n samples spaced by `d`: 0 and up, then the negative ones.

    n: a concrete integer; dtype: by default `tracer.config.default_float`; device: as in `arange`. Returns shape [n].
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
    """Return the frequencies of a transform of n real samples spaced by `d`, none negative.

    n: a concrete integer; dtype: by default `tracer.config.default_float`; device: as in `arange`. Returns shape
    [n // 2 + 1]. Raises ArgumentError unless n is at least 1.

    >>> tnp.fft.rfftfreq(4, d=0.5)
    Array([0. , 0.5, 1. ], f64)
    """
    count = _samples("rfftfreq", n)
    return divide(arange(count // 2 + 1, dtype=float if dtype is None else dtype, device=device), count * d)


def fftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> Array:
    """Move frequency 0 from the front to the middle of the axes.

    x: [*s]; axes: one or several, by default all. Returns x's shape and dtype. Raises AxisError for an axis out of
    range.

    >>> tnp.fft.fftshift(tnp.asarray([0, 1, 2, -2, -1]))
    Array([-2, -1,  0,  1,  2], i64)
    """
    return _shifted("fftshift", x, axes, lambda size: size // 2)


def ifftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> Array:
    """Move frequency 0 from the middle of the axes to the front: the inverse of `fftshift`.

    x: [*s]; axes: one or several, by default all. Returns x's shape and dtype. Raises AxisError for an axis out of
    range.

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
    count = integer(name, "n", n)
    if count < 1:
        raise ArgumentError(message(f"{name}{here()}: a transform has at least one sample", f"got n={count}"))
    return count


# Transforms without a primitive: NumPy's functions on concrete values

_TRANSFORMS = {
    "fft": "Return the discrete Fourier transform along an axis: X[k] = Σ x[j] exp(-2πi jk / n).",
    "fft2": "Return the discrete Fourier transform over two axes, by default the last ones.",
    "fftn": "Return the discrete Fourier transform over several axes, by default all.",
    "hfft": "Return the real transform of the first half of an array that is Hermitian along an axis.",
    "ifft": "Return the inverse of `fft`: x[j] = Σ X[k] exp(2πi jk / n) / n.",
    "ifft2": "Return the inverse of `fft2`.",
    "ifftn": "Return the inverse of `fftn`.",
    "ihfft": "Return the inverse of `hfft`.",
    "irfft": "Return the inverse of `rfft`: n real numbers, by default an even number.",
    "irfft2": "Return the inverse of `rfft2`.",
    "irfftn": "Return the inverse of `rfftn`.",
    "rfft": "Return the first half of the transform of real numbers along an axis. The other half is its conjugate.",
    "rfft2": "Return the first half of the transform of real numbers over two axes.",
    "rfftn": "Return the first half of the transform of real numbers over several axes.",
}
_EXAMPLES = {
    "fft": ("tnp.fft.fft(tnp.asarray([1.0, 0.0, -1.0, 0.0]))", "Array([0.+0.j, 2.+0.j, 0.+0.j, 2.+0.j], c128)"),
    "fft2": ("tnp.fft.fft2(tnp.ones((2, 2)))", "Array([[4.+0.j, 0.+0.j],\n       [0.+0.j, 0.+0.j]], c128)"),
    "fftn": ("tnp.fft.fftn(tnp.ones((2, 1, 2))).shape", "(2, 1, 2)"),
    "hfft": ("tnp.fft.hfft(tnp.asarray([1.0, 2.0]))", "Array([ 3., -1.], f64)"),
    "ifft": ("tnp.fft.ifft(tnp.asarray([2.0, 0.0]))", "Array([1.+0.j, 1.+0.j], c128)"),
    "ifft2": (
        "tnp.fft.ifft2(tnp.asarray([[4.0, 0.0], [0.0, 0.0]]))",
        "Array([[1.+0.j, 1.+0.j],\n       [1.+0.j, 1.+0.j]], c128)",
    ),
    "ifftn": ("tnp.fft.ifftn(tnp.ones((2, 1, 2))).shape", "(2, 1, 2)"),
    "ihfft": ("tnp.fft.ihfft(tnp.asarray([5.0, -3.0]))", "Array([1.-0.j, 4.-0.j], c128)"),
    "irfft": ("tnp.fft.irfft(tnp.asarray([2.0, 0.0]))", "Array([1., 1.], f64)"),
    "irfft2": ("tnp.fft.irfft2(tnp.asarray([[4.0, 0.0], [0.0, 0.0]]))", "Array([[1., 1.],\n       [1., 1.]], f64)"),
    "irfftn": ("tnp.fft.irfftn(tnp.ones((2, 3))).shape", "(2, 4)"),
    "rfft": ("tnp.fft.rfft(tnp.asarray([1.0, 2.0, 3.0, 4.0]))", "Array([10.+0.j, -2.+2.j, -2.+0.j], c128)"),
    "rfft2": ("tnp.fft.rfft2(tnp.ones((2, 4))).shape", "(2, 3)"),
    "rfftn": ("tnp.fft.rfftn(tnp.ones((2, 3, 4))).shape", "(2, 3, 3)"),
}

_LENGTH = {
    "hfft": "n of them, by default 2 (m - 1) for m given ones",
    "ihfft": "n // 2 + 1",
    "irfft": "n, by default 2 (m - 1) for m given ones",
    "rfft": "n // 2 + 1",
}


def _shapes(name: str) -> str:
    """Return the docstring's paragraph on the arguments and the result of a transform."""
    kind = "real numbers" if name in _REAL else "complex numbers"
    if name in _ONE_AXIS:
        size = _LENGTH.get(name, "n")
        return (
            "a: [*s]; n: the length along `axis`, to which a is truncated or zero-padded, by default its own.\n"
            'norm: "backward", "ortho" or "forward": the direction scaled by 1/n. out: a NumPy array to write to.\n'
            f"Returns {kind} of a's shape, along `axis` {size}."
        )
    size = {"i": "2 (m - 1) by default, of m", "r": "n // 2 + 1"}[name[0]] if "rfft" in name else ""
    return (
        "a: [*t]; s: the lengths along `axes`, to which a is truncated or zero-padded, by default its own;\n"
        'norm: "backward", "ortho" or "forward"; out: a NumPy array to write to.\n'
        f"Returns {kind} of a's shape with these lengths" + (f"; the last axis has {size}." if size else ".")
    )


_REAL = frozenset(("hfft", "irfft", "irfft2", "irfftn"))
_ONE_AXIS = frozenset(("fft", "hfft", "ifft", "ihfft", "irfft", "rfft"))

globals().update(
    {
        name: by_value(getattr(np.fft, name), summary, *_EXAMPLES[name], _shapes(name))
        for name, summary in _TRANSFORMS.items()
    }
)
__all__ += list(_TRANSFORMS)

_CACHED = frozenset(("fftfreq", "fftshift", "ifftshift", "rfftfreq"))  # the transforms call NumPy
set_boundaries(globals(), _CACHED, cached)
set_boundaries(globals(), [name for name in __all__ if name not in _CACHED])
