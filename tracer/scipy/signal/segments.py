"""Windows of signals: their weights by name, overlapping segments, and segments added up where they overlap."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracer.lazy import LazyModule
from tracer.numpy import arange, concatenate, pad, zeros
from tracer.trace.array import Array

if TYPE_CHECKING:
    from scipy import signal as scipy_signal
else:
    scipy_signal = LazyModule("scipy.signal")

# Harris 1978, Proc. IEEE 66(1): factors of cosines of whole multiples of the angle
_COSINES: Final = {
    "boxcar": (1.0,), "hann": (0.5, 0.5), "hamming": (0.54, 0.46), "blackman": (0.42, 0.5, 0.08),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
}  # fmt: skip


def weights(window: Any, count: int) -> np.ndarray[Any, Any]:
    """Return a window by its name or tuple, as `scipy.signal.get_window`. The commonest ones need no import of it."""
    factors = _COSINES.get(window) if isinstance(window, str) else None
    if factors is None or count == 1:
        return np.asarray(scipy_signal.get_window(window, count)) if factors is None else np.ones(1)
    angles = np.linspace(-np.pi, np.pi, count + 1)[:-1]
    total = np.zeros(count)
    for k, factor in enumerate(factors):
        total += factor * np.cos(k * angles)
    return total


def overlapping(signal: Array, size: int, step: int) -> Array:
    """Return the segments [..., t, size] of a signal [..., n] that begin after every `step` samples."""
    count = (signal.shape[-1] - size) // step + 1
    if size % step:
        return signal[..., arange(count)[:, None] * step + arange(size)]
    shares = size // step  # a segment is so many rows of the signal cut into steps
    rows = signal[..., : (count + shares - 1) * step].reshape(*signal.shape[:-1], count + shares - 1, step)
    return concatenate([rows[..., k : k + count, :] for k in range(shares)], -1)


def overlap_added(segments: Array, step: int) -> Array:
    """Return the sum [..., n] of segments [..., t, size] that begin after every `step` samples."""
    *rest, count, size = segments.shape
    if size % step:
        total = (count - 1) * step + size
        places = arange(count)[:, None] * step + arange(size)
        return zeros((*rest, total), segments.dtype).at[..., places].add(segments)
    shares, found = size // step, None
    for k in range(shares):
        width = [(0, 0)] * len(rest) + [(k, shares - 1 - k), (0, 0)]
        part = pad(segments[..., k * step : (k + 1) * step], width)
        found = part if found is None else found + part
    assert found is not None
    return found.reshape(*rest, -1)
