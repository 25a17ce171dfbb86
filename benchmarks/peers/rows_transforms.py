"""Rows about Fourier transforms: one line of 2⁸ to 2²² numbers, primes, batches, planes, gradients and convolutions.

Beside NumPy stand SciPy's transforms with two workers, which are never slower than those of `numpy.fft`.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import numpy as np

from peers.row import Maker, Row, World

_FAMILY = "Fourier transforms"


def signal(*shape: int, dtype: str = "c16") -> Any:
    """Normal numbers, of complex dtypes in both parts."""
    values = np.random.default_rng(shape[-1]).normal(size=(2, *shape))
    return (values[0] + 1j * values[1] if dtype[0] == "c" else values[0]).astype(dtype)


def _named(name: str) -> Maker:
    return lambda w: getattr(w.np.fft, name)


def _by_scipy(name: str) -> Maker:
    return lambda w: partial(getattr(importlib.import_module("scipy.fft"), name), workers=2)


def _row(name: str, dtype: str, *shape: int) -> Row:
    label = "x".join(map(str, shape))
    others = {"numpy": _by_scipy(name)}
    tolerance = 1e-4 if dtype in ("c8", "f4") else 1e-11
    return Row(
        f"{name} {dtype} {label}", _FAMILY, lambda: (signal(*shape, dtype=dtype),), _named(name), others=others,
        tolerance=tolerance,
    )  # fmt: skip


def _energy(w: World) -> Any:
    """Return a sum over the parts of a spectrum, squared, as of a loss of spectra."""

    def energy(x: Any) -> Any:
        spectrum = w.np.fft.rfft(x)
        return (w.np.real(spectrum) ** 2 * 0.5 + w.np.imag(spectrum) ** 2).sum()

    return energy


def _convolution(w: World) -> Any:
    if w.name == "numpy":
        return importlib.import_module("scipy.signal").fftconvolve
    return importlib.import_module(f"{w.root.__name__}.scipy.signal").fftconvolve


ROWS = [
    *(_row("fft", "c16", 1 << bits) for bits in (8, 10, 12, 16, 18, 20, 22)),
    *(_row("fft", "c8", 1 << bits) for bits in (10, 16, 20)),
    *(_row("fft", "c16", n) for n in (1000, 1009, 2187, 65537)),
    *(_row("rfft", "f8", 1 << bits) for bits in (10, 16, 20)),
    _row("irfft", "c16", 32769),
    *(_row("fft", "c16", *shape) for shape in ((10000, 16), (1000, 64), (1000, 1024))),
    _row("rfft", "f4", 1000, 512),
    _row("fft2", "c16", 1024, 1024),
    _row("rfft2", "f4", 512, 512),
    Row(
        "rfft gradient f8 1000x512", _FAMILY, lambda: (signal(1000, 512, dtype="f8"),),
        lambda w: w.root.grad(_energy(w)), tolerance=1e-9,
    ),
    Row(
        "fftconvolve f8 1e5 by 1e4", _FAMILY, lambda: (signal(100000, dtype="f8"), signal(10000, dtype="f8")),
        _convolution, ("numpy",), tolerance=1e-9,
    ),
]  # fmt: skip
