"""Discrete Fourier transforms, their frequencies and the order of their results. `tracer.numpy.fft`.

Transforms run in compiled programs, in batches, and are differentiable any number of times. They compute in f32 for
f32, c64, shorter floats and integers up to 32 bits, else in f64. A transform over several axes is one after another.
NumPy's `out=` is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of, inexact_dtype
from tracer.numpy.elementwise.arithmetic import divide
from tracer.numpy.shapes.joining import concatenate
from tracer.numpy.shapes.ranges import arange
from tracer.numpy.shapes.repeating import roll
from tracer.primitives.arrays.slice_pad_concatenate import pad, slice_in_dim
from tracer.primitives.base.broadcasting import axis_of
from tracer.primitives.base.shapes import copy
from tracer.primitives.elementwise.complex import conj
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.linalg import fourier
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array
from tracer.trace.docstrings import say
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.trace import as_literal
from tracer.trace.tracebacks import Options, set_boundaries

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


# Transforms along one axis


def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the discrete Fourier transform along an axis: X[k] = Σ_j x[j] exp(-2πi jk / n).

    Returns complex numbers of a's shape, along `axis` n.

    >>> tnp.fft.fft(tnp.asarray([1.0, 0.0, -1.0, 0.0]))
    Array([0.+0.j, 2.+0.j, 0.+0.j, 2.+0.j], c128)
    """
    return _along("fft", "FFT", a, n, axis, norm)


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `fft`: x[j] = Σ_k X[k] exp(2πi jk / n) / n.

    Returns complex numbers of a's shape, along `axis` n.

    >>> tnp.fft.ifft(tnp.asarray([2.0, 0.0]))
    Array([1.+0.j, 1.+0.j], c128)
    """
    return _along("ifft", "IFFT", a, n, axis, norm)


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the first half of the transform of real numbers along an axis. The other half is its conjugate.

    Returns complex numbers of a's shape, along `axis` n // 2 + 1. Raises DTypeError for complex numbers.

    >>> tnp.fft.rfft(tnp.asarray([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], c128)
    """
    return _along("rfft", "RFFT", a, n, axis, norm)


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `rfft`, from the first half of a transform.

    n: by default 2 (m - 1) for m given numbers; n // 2 + 1 of them are used. Returns real numbers of a's shape, along
    `axis` n.

    >>> tnp.fft.irfft(tnp.asarray([2.0, 0.0]))
    Array([1., 1.], f64)
    """
    return _along("irfft", "IRFFT", a, n, axis, norm)


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the real transform of an array that is Hermitian along an axis, from its first half.

    n: by default 2 (m - 1) for m given numbers; n // 2 + 1 of them are used. Returns real numbers of a's shape, along
    `axis` n.

    >>> tnp.fft.hfft(tnp.asarray([1.0, 2.0]))
    Array([ 3., -1.], f64)
    """
    x = _operand("hfft", a)
    inverse = _INVERSE_NORM[_known_norm("hfft", norm)]
    return _along("hfft", "IRFFT", conj(x) if dtypes.is_complex(x.dtype) else x, n, axis, inverse)


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `hfft`: the first half of a Hermitian array.

    Returns complex numbers of a's shape, along `axis` n // 2 + 1. Raises DTypeError for complex numbers.

    >>> tnp.fft.ihfft(tnp.asarray([5.0, -3.0]))
    Array([1.-0.j, 4.-0.j], c128)
    """
    inverse = _INVERSE_NORM[_known_norm("ihfft", norm)]
    return conj(_along("ihfft", "RFFT", a, n, axis, inverse))


# Transforms over several axes


def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """Return the discrete Fourier transform over several axes, by default all.

    Returns complex numbers of a's shape, along `axes` the lengths `s`; for no axes a copy of a.

    >>> tnp.fft.fftn(tnp.ones((2, 1, 2))).shape
    (2, 1, 2)
    """
    return _over("fftn", "FFT", a, s, axes, norm)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """Return the inverse of `fftn`.

    Returns complex numbers of a's shape, along `axes` the lengths `s`.

    >>> tnp.fft.ifftn(tnp.ones((2, 1, 2))).shape
    (2, 1, 2)
    """
    return _over("ifftn", "IFFT", a, s, axes, norm)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """Return the first half of the transform of real numbers over several axes.

    Returns complex numbers of a's shape, along `axes` the lengths `s`, along the last one s[-1] // 2 + 1. Raises
    DTypeError for complex numbers.

    >>> tnp.fft.rfftn(tnp.ones((2, 3, 4))).shape
    (2, 3, 3)
    """
    return _over("rfftn", "RFFT", a, s, axes, norm)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """Return the inverse of `rfftn`.

    Returns real numbers of a's shape, along `axes` the lengths `s`: by default 2 (m - 1) along the last one, of m.

    >>> tnp.fft.irfftn(tnp.ones((2, 3))).shape
    (2, 4)
    """
    return _over("irfftn", "IRFFT", a, s, axes, norm)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """Return the discrete Fourier transform over two axes, by default the last ones.

    Returns complex numbers of a's shape, along `axes` the lengths `s`.

    >>> tnp.fft.fft2(tnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], c128)
    """
    return _over("fft2", "FFT", a, s, axes, norm)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """Return the inverse of `fft2`.

    Returns complex numbers of a's shape, along `axes` the lengths `s`.

    >>> tnp.fft.ifft2(tnp.asarray([[4.0, 0.0], [0.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], c128)
    """
    return _over("ifft2", "IFFT", a, s, axes, norm)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """Return the first half of the transform of real numbers over two axes, by default the last ones.

    Returns complex numbers of a's shape, along `axes` the lengths `s`, along the second one s[1] // 2 + 1. Raises
    DTypeError for complex numbers.

    >>> tnp.fft.rfft2(tnp.ones((2, 4))).shape
    (2, 3)
    """
    return _over("rfft2", "RFFT", a, s, axes, norm)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """Return the inverse of `rfft2`.

    Returns real numbers of a's shape, along `axes` the lengths `s`: by default 2 (m - 1) along the second one, of m.

    >>> tnp.fft.irfft2(tnp.asarray([[4.0, 0.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [1., 1.]], f64)
    """
    return _over("irfft2", "IRFFT", a, s, axes, norm)


_NORMS: Final = ("backward", "ortho", "forward")
_INVERSE_NORM: Final = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _operand(name: str, a: Any) -> Array:
    """Return an argument in f32, f64, c64 or c128."""
    x = array_of(name, a)
    wanted = inexact_dtype(x.dtype)
    if wanted not in fourier.FFT_DTYPES:
        wanted = dtypes.F32
    return x if x.dtype == wanted else convert_element_type(x, wanted)


def _along(name: str, fft_type: str, a: Any, n: Any, axis: Any, norm: str | None) -> Any:
    x = _operand(name, a)
    place = axis_of(name, axis, x.ndim)
    given = x.shape[place]
    length = (2 * (given - 1) if fft_type == "IRFFT" else given) if n is None else integer(name, "n", n)
    return _transformed(name, fft_type, x, place, length, norm)


def _over(name: str, fft_type: str, a: Any, s: Any, axes: Any, norm: str | None) -> Any:
    """Transform several axes: a half of the last one first, or last where the result is real; copy x for no axes."""
    x = _operand(name, a)
    places = _axes(name, x, s, axes)
    _known_norm(name, norm)
    if not places:
        if fft_type in ("RFFT", "IRFFT"):
            raise ArgumentError(message(f"{name}{here()}: a half needs an axis", f"got {x.type}, axes={axes}"))
        return copy(x)
    lengths = _lengths(name, fft_type, x, s, places)
    steps = list(zip(places, lengths, strict=True))
    if fft_type == "RFFT":
        x = _transformed(name, fft_type, x, *steps.pop(), norm)
    last = [steps.pop()] if fft_type == "IRFFT" else []
    for place, length in reversed(steps):
        x = _transformed(name, "IFFT" if fft_type[0] == "I" else "FFT", x, place, length, norm)
    for place, length in last:
        x = _transformed(name, fft_type, x, place, length, norm)
    return x


def _axes(name: str, x: Array, s: Any, axes: Any) -> list[int]:
    """Return the axes from the front. By default these are all axes, or as many of the last as there are lengths."""
    if axes is None:
        count = x.ndim if s is None else len(s)
        axes = range(-count, 0)
    return [axis_of(name, axis, x.ndim) for axis in axes]


def _lengths(name: str, fft_type: str, x: Array, s: Any, places: Sequence[int]) -> list[int]:
    own = [x.shape[place] for place in places]
    if s is None:
        return [*own[:-1], 2 * (own[-1] - 1)] if fft_type == "IRFFT" else own
    if len(s) != len(places):
        raise ShapeError(
            message(
                f"{name}{here()}: s has a length for each axis",
                f"got s={tuple(s)} and axes={tuple(places)}",
                help="-1 stands for an axis's own length",
            )
        )
    given = [-1 if n is None else integer(name, "s", n) for n in s]
    return [size if n == -1 else n for n, size in zip(given, own, strict=True)]


def _transformed(name: str, fft_type: str, x: Any, axis: int, length: int, norm: str | None) -> Any:
    """Return the transform of a length along an axis, to which x is truncated or zero-padded."""
    if length < 1:
        raise ArgumentError(
            message(
                f"{name}{here()}: a transform has at least one sample",
                f"got length {length} for {x.type} along axis {axis}",
                help="give n, or s, a length of at least 1",
            )
        )
    if fft_type != "RFFT":
        x = _as_complex(x)
    elif dtypes.is_complex(x.dtype):
        raise DTypeError(
            message(
                f"{name}{here()} takes real numbers", f"got {x.type}", help="fft takes complex ones; or take x.real"
            )
        )
    wanted, given = length // 2 + 1 if fft_type == "IRFFT" else length, x.shape[axis]
    if given > wanted:
        x = slice_in_dim(x, 0, wanted, axis=axis)
    elif given < wanted:
        config = [(0, wanted - given if place == axis else 0, 0) for place in range(x.ndim)]
        x = pad(x, as_literal(0, x.dtype), config)
    return fourier.fft(x, fft_type, axis, length, _scale(name, fft_type, dtypes.real_dtype(x.dtype), length, norm))


def _scale(name: str, fft_type: str, dtype: Any, length: int, norm: str | None) -> float:
    """Return the factor of the result, rounded as NumPy does."""
    known = _known_norm(name, norm)
    if known == "ortho":
        return float(np.reciprocal(np.sqrt(dtype.type(length))))
    is_scaled = known == ("backward" if fft_type[0] == "I" else "forward")
    return float(np.reciprocal(dtype.type(length))) if is_scaled else 1.0


def _known_norm(name: str, norm: str | None) -> str:
    if norm is None:
        return "backward"
    if norm not in _NORMS:
        shown = ", ".join(map(repr, _NORMS))
        raise ArgumentError(message(f"{name}{here()}: norm is one of {shown}", f"got {norm!r}"))
    return norm


def _as_complex(x: Any) -> Any:
    return x if dtypes.is_complex(x.dtype) else convert_element_type(x, dtypes.complex_dtype(x.dtype))


def _taking_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the public face of a transform."""
    options = Options(frozenset(("out",)), partial(_with_out, function.__name__), _PLACE_OF_OUT)
    return cached(function, named=True, options=options)


def _with_out(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a transform and store its result in NumPy's `out`: the fifth argument, or a keyword."""
    out = args[_PLACE_OF_OUT] if len(args) > _PLACE_OF_OUT else kwargs["out"]
    result = function(*args[:_PLACE_OF_OUT], **{name: x for name, x in kwargs.items() if name != "out"})
    if out is None:
        return result
    if not isinstance(out, Array | np.ndarray) or (out.shape, out.dtype) != (result.shape, result.dtype):
        got = out.type if isinstance(out, Array) else f"{type(out).__name__} {getattr(out, 'dtype', '')}".rstrip()
        raise ShapeError(
            message(
                f"{name}{here()}: out= is an array of the result's type",
                f"got {got} for {result.type}",
                help="make it with tnp.empty or np.empty",
            )
        )
    out[...] = result if isinstance(out, Array) else np.asarray(result)
    return out


_PLACE_OF_OUT: Final = 4


# Frequencies


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


_PLAIN: Final = ("fftfreq", "fftshift", "ifftshift", "rfftfreq")
_TRANSFORMS: Final = [name for name in __all__ if name not in _PLAIN]
set_boundaries(globals(), _PLAIN, cached)
set_boundaries(globals(), _TRANSFORMS, _taking_out)
say(
    [globals()[name] for name in _TRANSFORMS],
    {
        "a": "numbers [*t].",
        "n": "the length along `axis`, to which a is truncated or zero-padded, by default its own.",
        "axis": "by default the last.",
        "s": "the lengths along `axes`, to which a is truncated or zero-padded; -1, and by default all, are its own.",
        "axes": "integers.",
        "norm": '"backward", "ortho" or "forward": the direction scaled by 1/n, or both by its root.',
    },
)
