"""Smoothing by polynomials that fit windows in the sense of least squares: Savitzky & Golay 1964, Anal. Chem. 36(8)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir.shape import axis_index
from tracer.lax import conv_general_dilated
from tracer.numpy import asarray, concatenate, moveaxis, pad
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.promotion import promoted_inexact
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here

_SLICES = 32  # longer windows are convolutions, which take less time to compile
_MODES = {"constant": "constant", "nearest": "edge", "mirror": "reflect", "wrap": "wrap"}


def savgol_coeffs(
    window_length: int, polyorder: int, deriv: int = 0, delta: Any = 1.0, pos: int | None = None, use: str = "conv"
) -> Array:  # fmt: skip
    """Return the weights by which a polynomial's least-squares fit gives its derivative at one sample of a window.

    window_length, polyorder: concrete integers, the degree below the length; deriv: the order of the derivative;
    delta: the distance of samples; pos: the index of the sample, by default the middle; use: "conv" for weights in the
    order of a convolution, "dot" for the samples' order. Returns floats [window_length]. Raises ArgumentError where
    they do not fit.

    >>> tracer.scipy.signal.savgol_coeffs(5, 2).round(4)
    Array([-0.0857,  0.3429,  0.4857,  0.3429, -0.0857], f64)
    """
    length, degree = _sizes("savgol_coeffs", window_length, polyorder)
    if use not in ("conv", "dot"):
        raise ArgumentError(message(f'savgol_coeffs{here()}: use is "conv" or "dot"', f"got {use!r}"))
    place = (length - 1) / 2 if pos is None else integer("savgol_coeffs", "pos", pos)
    if not 0 <= place < length:
        raise ArgumentError(message(f"savgol_coeffs{here()}: pos lies in the window", f"got pos={pos} of {length}"))
    weights = _weights(length, degree, deriv, np.array([place]))[0]
    return asarray(weights[::-1].copy() if use == "conv" else weights) / array_of("savgol_coeffs", delta) ** deriv


def savgol_filter(
    x: Any, window_length: int, polyorder: int, deriv: int = 0, delta: Any = 1.0, axis: int = -1, mode: str = "interp",
    cval: Any = 0.0,
) -> Array:  # fmt: skip
    """Smooth a signal, or differentiate it, by polynomials that fit windows around each sample.

    x: numbers [*s]; integers become floats; window_length, polyorder: concrete integers, the degree below the length;
    deriv: the order of the derivative; delta: the distance of samples; axis: one axis. mode: how the ends are made:
    "interp" by the polynomials of the outermost windows; else how the signal continues: "mirror", "nearest", "wrap", or
    "constant". cval: the constant. Returns numbers [*s]. Raises ArgumentError where they do not fit.

    >>> tracer.scipy.signal.savgol_filter(tnp.arange(6.0) ** 2, 5, 2, deriv=1).round(6)
    Array([ 0.,  2.,  4.,  6.,  8., 10.], f64)
    """
    (signal,) = promoted_inexact("savgol_filter", x)
    along = axis_index(axis, signal.ndim, f"savgol_filter{here()}")
    signal = moveaxis(signal, along, -1)
    length, degree = _sizes("savgol_filter", window_length, polyorder)
    size = signal.shape[-1]
    if mode not in ("interp", *_MODES) or (mode == "interp" and length > size):
        known = f'"interp" for windows within the signal, or {", ".join(_MODES)}'
        raise ArgumentError(
            message(f"savgol_filter{here()}: mode is {known}", f"got {mode!r}, {length} of {size} samples")
        )
    real = dtypes.real_dtype(signal.dtype) if dtypes.is_complex(signal.dtype) else signal.dtype
    unit = array_of("savgol_filter", delta).astype(real) ** deriv
    half, left = length // 2, (length - 1) // 2

    def applied(weights: np.ndarray[Any, Any], windows: Array) -> Array:
        return windows @ asarray(weights.T, real) / unit

    middle = _weights(length, degree, deriv, np.array([(length - 1) / 2]))
    if mode != "interp":
        width = [(0, 0)] * (signal.ndim - 1) + [(left, half)]
        options = {"constant_values": cval} if mode == "constant" else {}
        signal = pad(signal, width, _MODES[mode], **options)
    count = signal.shape[-1] - length + 1
    inner = _correlated(signal, middle[0], count) / unit
    if mode == "interp":
        before = applied(_weights(length, degree, deriv, np.arange(half)), signal[..., :length])
        after = applied(_weights(length, degree, deriv, np.arange(length - half, length)), signal[..., size - length :])
        inner = concatenate([before, inner[..., half - left :], after], -1)
    return moveaxis(inner, -1, along)


def _correlated(signal: Array, weights: np.ndarray[Any, Any], count: int) -> Array:
    """Return the sums of windows of the signal by weights [length], at `count` places."""
    if len(weights) > _SLICES:
        lanes = signal.reshape(-1, 1, signal.shape[-1])
        product = conv_general_dilated(lanes, asarray(weights, signal.dtype)[None, None], (1,), "VALID")
        return product.reshape(*signal.shape[:-1], count)
    parts = [weight * signal[..., k : k + count] for k, weight in enumerate(weights.tolist())]
    total: Array = sum(parts[1:], parts[0])
    return total


def _sizes(name: str, window_length: Any, polyorder: Any) -> tuple[int, int]:
    length, degree = integer(name, "window_length", window_length), integer(name, "polyorder", polyorder)
    if not 0 <= degree < length:
        text = f"{name}{here()}: the degree is at least 0 and below the length of the window"
        raise ArgumentError(message(text, f"got polyorder={degree}, window_length={length}"))
    return length, degree


def _weights(length: int, degree: int, deriv: int, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the weights [p, length] of samples for the derivative at each of these places."""
    if deriv > degree:
        return np.zeros((len(places), length))
    middle, scale = (length - 1) / 2, max(length / 2, 1)
    powers = np.arange(degree + 1)
    fit = np.linalg.pinv(((np.arange(length) - middle) / scale)[:, None] ** powers)
    factors = np.array([math.perm(int(k), deriv) for k in powers], float)
    at = factors * ((places - middle) / scale)[:, None] ** np.maximum(powers - deriv, 0) * (powers >= deriv)
    return at @ fit / scale**deriv
