"""Spectra of signals: Fourier transforms of windowed segments, their averages and their inverse; analytic signals.

Welch 1967, IEEE Trans. Audio Electroacoust. 15(2). Names of windows are as in `scipy.signal.get_window`.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.shape import axis_index
from tracer.numpy import (
    arange,
    asarray,
    broadcast_to,
    concatenate,
    conj,
    fft,
    flip,
    imag,
    mean,
    median,
    moveaxis,
    pad,
    real,
    sqrt,
    sum,
    where,
    zeros,
)
from tracer.numpy.core.conversion import array_of, unified
from tracer.numpy.core.promotion import promoted_inexact
from tracer.scipy.signal.convolution import detrend as without_trend
from tracer.scipy.signal.segments import overlap_added, overlapping, weights
from tracer.trace.array import Array
from tracer.trace.docstrings import say
from tracer.trace.integers import integer
from tracer.trace.source import here


class _Segments(NamedTuple):
    """Division of a signal: window [m], distance of segments, length of the transform."""

    window: Array
    step: int
    nfft: int

    @property
    def size(self) -> int:
        return self.window.size


def csd(
    x: Any, y: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:  # fmt: skip
    """Return the frequencies and the cross spectral density of two signals, by Welch's method.

    y: the second signal, whose shape broadcasts with x; the shorter one is filled with zeros.

    >>> x = tnp.sin(tnp.arange(64) * tnp.pi / 4)
    >>> frequencies, density = tracer.scipy.signal.csd(x, x, nperseg=16)
    >>> frequencies[tnp.argmax(tnp.abs(density))]
    Array(0.125, f64)
    """
    first, second = unified("csd", [promoted_inexact("csd", v)[0] for v in (x, y)])
    along = axis_index(axis, first.ndim, f"csd{here()}")
    first, second = moveaxis(first, along, -1), moveaxis(second, axis_index(axis, second.ndim, f"csd{here()}"), -1)
    if not (first.size and second.size):
        return _of_no_samples(2, along, first, second)  # type: ignore[return-value]
    size = max(first.shape[-1], second.shape[-1])
    first, second = (pad(v, [(0, 0)] * (v.ndim - 1) + [(0, size - v.shape[-1])]) for v in (first, second))
    parts = _division("csd", window, nperseg, noverlap, nfft, size, first)
    frequencies, found = _densities("csd", first, second, fs, parts, detrend, return_onesided, scaling)
    return frequencies, moveaxis(_averaged("csd", found, average), -1, along)


def welch(
    x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:  # fmt: skip
    """Return the frequencies and the power spectral density of a signal, by Welch's method.

    >>> frequencies, power = tracer.scipy.signal.welch(tnp.sin(tnp.arange(64) * tnp.pi / 4), nperseg=16)
    >>> frequencies[tnp.argmax(power)]
    Array(0.125, f64)
    """
    (signal,) = promoted_inexact("welch", x)
    along = axis_index(axis, signal.ndim, f"welch{here()}")
    signal = moveaxis(signal, along, -1)
    if not signal.size:
        return _of_no_samples(2, along, signal)  # type: ignore[return-value]
    parts = _division("welch", window, nperseg, noverlap, nfft, signal.shape[-1], signal)
    frequencies, found = _densities("welch", signal, None, fs, parts, detrend, return_onesided, scaling)
    return frequencies, moveaxis(_averaged("welch", found, average), -1, along)


def periodogram(
    x: Any, fs: Any = 1.0, window: Any = "boxcar", nfft: int | None = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the frequencies and the power spectral density of a signal, by one segment as long as the signal.

    >>> frequencies, power = tracer.scipy.signal.periodogram(tnp.sin(tnp.arange(16) * tnp.pi / 4))
    >>> frequencies[tnp.argmax(power)]
    Array(0.125, f64)
    """
    (signal,) = promoted_inexact("periodogram", x)
    size = signal.shape[axis_index(axis, signal.ndim, f"periodogram{here()}")]
    if nfft is not None and nfft < size:
        signal, size = signal[(slice(None),) * (axis % signal.ndim) + (slice(0, nfft),)], nfft
    return welch(signal, fs, window, size, 0, nfft, detrend, return_onesided, scaling, axis)


def stft(
    x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int = 256, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = False, return_onesided: bool = True, boundary: str | None = "zeros",
    padded: bool = True, axis: int = -1, scaling: str = "spectrum",
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return frequencies [f], times [t] of segments, and the Fourier transform [..., f, t] of each of them.

    boundary: how the signal continues by half a segment: "zeros", "even", "odd", "constant", or None; padded: whether
    zeros fill the last segment.

    >>> f, t, z = tracer.scipy.signal.stft(tnp.arange(8.0), nperseg=4)
    >>> f.shape, t.shape, z.shape
    ((3,), (5,), (3, 5))
    >>> tracer.scipy.signal.istft(z, nperseg=4)[1].round(12)
    Array([0., 1., 2., 3., 4., 5., 6., 7.], f64)
    """
    (signal,) = promoted_inexact("stft", x)
    along = axis_index(axis, signal.ndim, f"stft{here()}")
    signal = moveaxis(signal, along, -1)
    if not signal.size:
        return _of_no_samples(3, along, signal)  # type: ignore[return-value]
    parts = _division("stft", window, nperseg, noverlap, nfft, signal.shape[-1], signal)
    if boundary is not None:
        signal = extended("stft", signal, parts.size // 2, boundary)
    if padded:
        more = -(signal.shape[-1] - parts.size) % parts.step % parts.size
        signal = pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, more)])
    size = signal.shape[-1]
    frequencies, found = _transforms("stft", signal, fs, parts, detrend, _one_sided(signal, return_onesided))
    found = found * sqrt(_scale("stft", parts.window, fs, scaling))
    times = (np.arange(parts.size / 2, size - parts.size / 2 + 1, parts.step) - (
        parts.size / 2 if boundary is not None else 0)) / fs  # fmt: skip
    return frequencies, asarray(times), moveaxis(moveaxis(found, -1, -2), -2, along)


def istft(
    Zxx: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, input_onesided: bool = True, boundary: bool = True, time_axis: int = -1,
    freq_axis: int = -2, scaling: str = "spectrum",
) -> tuple[Array, Array]:  # fmt: skip
    """Return the times and the signal whose windowed segments have the given Fourier transforms.

    Zxx: numbers [..., f, t]; input_onesided: whether f has frequencies from 0 on alone; boundary: whether the signal
    was extended by half a segment; time_axis, freq_axis: axes of Zxx. Overlapping segments are added in the sense of
    least squares.

    >>> _, _, z = tracer.scipy.signal.stft(tnp.arange(8.0), nperseg=4)
    >>> tracer.scipy.signal.istft(z, nperseg=4)[1].round(12)
    Array([0., 1., 2., 3., 4., 5., 6., 7.], f64)
    """
    (given,) = promoted_inexact("istft", Zxx)
    place = f"istft{here()}"
    if given.ndim < 2 or axis_index(time_axis, given.ndim, place) == axis_index(freq_axis, given.ndim, place):
        raise ShapeError(message(f"{place}: Zxx has an axis of frequencies and one of times", f"got {given.type}"))
    along, across = axis_index(time_axis, given.ndim, place), axis_index(freq_axis, given.ndim, place)
    parts = moveaxis(given, (along, across), (-2, -1))
    count = parts.shape[-1]
    default = 2 * (count - 1) if input_onesided else count
    size = default if nperseg is None else integer("istft", "nperseg", nperseg)
    odd = input_onesided and size == default + 1
    length = (size if odd else default) if nfft is None else integer("istft", "nfft", nfft)
    division = _division("istft", window, size, noverlap, length, size, parts)
    back = fft.irfft(parts, length) if input_onesided else fft.ifft(parts, length)
    back = back[..., :size] / sqrt(_scale("istft", division.window, fs, scaling)) * division.window
    signal = overlap_added(back, division.step)
    weight = overlap_added(broadcast_to(division.window**2, (back.shape[-2], size)), division.step)
    total = signal.shape[-1]
    if boundary:
        signal, weight = (v[..., size // 2 : total - size // 2] for v in (signal, weight))
    signal = signal / where(weight > 1e-10, weight, 1)
    times = arange(signal.shape[-1]) / fs
    return times, moveaxis(signal, -1, along - (across < along))


def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Array:
    """Return the analytic signal: x without its negative frequencies, whose real part is x.

    x: real numbers [*s]; N: the length, by default the axis's; axis: one axis. Returns complex numbers [*s].
    Raises ArgumentError for complex numbers, and for no samples.

    >>> tracer.scipy.signal.hilbert(tnp.asarray([2.0, 1.0, 0.0, 1.0])).imag
    Array([ 0.,  1.,  0., -1.], f64)
    """
    (signal,) = promoted_inexact("hilbert", x)
    if dtypes.is_complex(signal.dtype):
        raise ArgumentError(message(f"hilbert{here()}: the signal is real", f"got {signal.type}", help="take x.real"))
    along = axis_index(axis, signal.ndim, f"hilbert{here()}")
    size = signal.shape[along] if N is None else integer("hilbert", "N", N)
    if size < 1:
        raise ArgumentError(message(f"hilbert{here()}: the length is 1 or more", f"got {size} for {signal.type}"))
    weights = np.zeros(size)
    weights[0] = 1
    weights[1 : (size + 1) // 2] = 2
    if size % 2 == 0:
        weights[size // 2] = 1
    spectrum = fft.fft(moveaxis(signal, along, -1), size)
    return moveaxis(fft.ifft(spectrum * asarray(weights, signal.dtype)), -1, along)


def _division(
    name: str, window: Any, nperseg: Any, noverlap: Any, nfft: Any, size: int, signal: Array
) -> _Segments:  # fmt: skip
    """Return the division of a signal of this size. Raises ArgumentError where lengths do not fit."""
    dtype = dtypes.real_dtype(signal.dtype) if dtypes.is_complex(signal.dtype) else signal.dtype
    if isinstance(window, str | tuple):
        count = min(256 if nperseg is None else integer(name, "nperseg", nperseg), size)
        values = asarray(weights(window, max(count, 1)), dtype)
    else:
        values = array_of(name, window).astype(dtype)
        count = values.size
        if values.ndim != 1 or count > size or nperseg not in (None, count):
            text = f"{name}{here()}: a window is a vector of nperseg numbers, no longer than the signal"
            raise ArgumentError(message(text, f"got {values.type} for {size} samples, nperseg={nperseg}"))
    overlap = count // 2 if noverlap is None else integer(name, "noverlap", noverlap)
    length = count if nfft is None else integer(name, "nfft", nfft)
    if not 0 <= overlap < count or length < count:
        raise ArgumentError(
            message(
                f"{name}{here()}: noverlap is below nperseg, and nfft at least nperseg",
                f"got noverlap={overlap}, nperseg={count}, nfft={length}",
            )
        )
    return _Segments(values, count - overlap, length)


def _of_no_samples(count: int, along: int, *signals: Array) -> tuple[Array, ...]:
    """Return empty arrays of the shape of the signals, as SciPy and JAX do."""
    outer, inner = np.broadcast_shapes(*(x.shape[:-1] for x in signals)), min(x.shape[-1] for x in signals)
    found = moveaxis(zeros((*outer, inner), dtypes.real_dtype(signals[0].dtype)), -1, along)
    return (found,) * count


def _one_sided(signal: Array, wanted: bool) -> bool:
    return wanted and not dtypes.is_complex(signal.dtype)


def _transforms(
    name: str, signal: Array, fs: Any, parts: _Segments, detrend: Any, one_sided: bool
) -> tuple[Array, Array]:  # fmt: skip
    """Return frequencies, and transforms [..., t, f] of the segments."""
    pieces = overlapping(signal, parts.size, parts.step)
    if callable(detrend):
        pieces = detrend(pieces)
    elif isinstance(detrend, str):
        pieces = without_trend(pieces, -1, detrend)
    pieces = pieces * parts.window
    there, frequencies = (fft.rfft, fft.rfftfreq) if one_sided else (fft.fft, fft.fftfreq)
    return frequencies(parts.nfft) * fs, there(pieces, parts.nfft)


def _scale(name: str, window: Array, fs: Any, scaling: str) -> Array:
    if scaling in ("density", "psd"):
        return 1 / (fs * sum(window * window))
    if scaling == "spectrum":
        return 1 / sum(window) ** 2
    raise ArgumentError(message(f'{name}{here()}: scaling is "density" or "spectrum"', f"got {scaling!r}"))


def _densities(
    name: str, x: Array, y: Array | None, fs: Any, parts: _Segments, detrend: Any, return_onesided: bool, scaling: str
) -> tuple[Array, Array]:  # fmt: skip
    """Return frequencies and densities [..., f, t] of each segment."""
    one_sided = _one_sided(x, return_onesided)
    frequencies, first = _transforms(name, x, fs, parts, detrend, one_sided)
    second = first if y is None else _transforms(name, y, fs, parts, detrend, one_sided)[1]
    found = conj(first) * second * _scale(name, parts.window, fs, scaling)
    found = real(found) if y is None else found
    if one_sided:
        doubled = np.full(found.shape[-1], 2.0)
        doubled[0] = 1
        if parts.nfft % 2 == 0:
            doubled[-1] = 1
        found = found * asarray(doubled, parts.window.dtype)
    return frequencies, moveaxis(found, -1, -2)


def _averaged(name: str, found: Array, average: str) -> Array:
    """Return the mean over segments, or their median without its bias."""
    if average == "mean":
        return mean(found, -1)
    if average != "median":
        raise ArgumentError(message(f'{name}{here()}: average is "mean" or "median"', f"got {average!r}"))
    n = found.shape[-1]
    steps = 2.0 * np.arange(1, (n - 1) // 2 + 1)
    bias = 1 + np.sum(1 / (steps + 1) - 1 / steps)
    if dtypes.is_complex(found.dtype):
        return (median(real(found), -1) + 1j * median(imag(found), -1)) / bias
    return median(found, -1) / bias


def extended(name: str, x: Array, count: int, boundary: str) -> Array:
    """Return a signal with `count` more samples at both ends."""
    if boundary in ("zeros", "constant"):
        mode = "constant" if boundary == "zeros" else "edge"
        return pad(x, [(0, 0)] * (x.ndim - 1) + [(count, count)], mode)
    if boundary not in ("even", "odd"):
        known = '"even", "odd", "constant", "zeros" or None'
        raise ArgumentError(message(f"{name}{here()}: boundary is {known}", f"got {boundary!r}"))
    if count >= x.shape[-1]:
        raise ShapeError(message(f"{name}{here()}: the signal is shorter than its extension", f"got {x.type}"))
    before, after = flip(x[..., 1 : count + 1], -1), flip(x[..., -count - 1 : -1], -1)
    if boundary == "odd":
        before, after = 2 * x[..., :1] - before, 2 * x[..., -1:] - after
    return concatenate([before, x, after], -1) if count else x


say(
    [csd, welch, periodogram, stft, istft],
    {
        "x": "numbers [*s]; integers become floats.",
        "fs": "the sampling frequency.",
        "window": "a name or tuple of `scipy.signal.get_window`, or real numbers [nperseg].",
        "nperseg": "the length of segments, by default 256 or that of the signal, whichever is less.",
        "noverlap": "how many samples segments share, by default half.",
        "nfft": "the length of transforms, at least nperseg, which is the default.",
        "detrend": '"constant" or "linear", False for none, or a function of segments along the last axis.',
        "return_onesided": "whether real signals have frequencies from 0 on alone.",
        "scaling": '"density", by power per frequency, or "spectrum", by power.',
        "axis": "the axis of time.",
        "average": '"mean" or "median" of the segments.',
    },
)
