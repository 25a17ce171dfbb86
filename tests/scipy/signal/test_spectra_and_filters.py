"""Spectra, filters and smoothing beside SciPy's, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import tracer
import tracer.numpy as tnp
from tracer import errors
from tracer.scipy import signal

WELCH = (
    {"nperseg": 32}, {"nperseg": 32, "return_onesided": False, "window": ("tukey", 0.3)}, {"window": np.hanning(20)},
    {"nperseg": 33, "noverlap": 7, "nfft": 50, "detrend": "linear", "scaling": "spectrum", "average": "median",
     "fs": 10.0},
)  # fmt: skip
STFT = (
    {"nperseg": 32}, {"nperseg": 33, "noverlap": 20, "nfft": 64, "boundary": "even"},
    {"nperseg": 20, "boundary": "odd", "window": "hamming", "return_onesided": False},
)  # fmt: skip


def agree(found: Any, expected: Any) -> None:
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for mine, theirs in pairs:
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-11)


def made(kind: str, rng: np.random.Generator) -> Any:
    x = rng.normal(size=(3, 100))
    return x if kind == "real" else x + 1j * rng.normal(size=x.shape)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.filterwarnings("ignore:Input data is complex")
def test_spectra_are_scipy_s(kind: str, rng: np.random.Generator) -> None:
    x = made(kind, rng)
    for options in WELCH:
        agree(signal.welch(x, **options), scipy.signal.welch(x, **options))
        agree(signal.csd(x.T, x.T[:80], axis=0, **options), scipy.signal.csd(x.T, x.T[:80], axis=0, **options))
    for options in STFT:
        found, expected = (m.stft(x, **options) for m in (signal, scipy.signal))
        agree(found, expected)
        agree(signal.stft(x.T, axis=0, **options), scipy.signal.stft(x.T, axis=0, **options))
        back = {k: options[k] for k in ("nperseg", "noverlap", "nfft", "window") if k in options}
        back["input_onesided"] = kind == "real" and options.get("return_onesided", True)
        again = signal.istft(found[2], **back)[1]
        agree(again, scipy.signal.istft(expected[2], **back)[1])
        np.testing.assert_allclose(again[:, :100], x, atol=1e-10)
    agree(signal.periodogram(x, fs=3.0), scipy.signal.periodogram(x, fs=3.0))
    agree(signal.periodogram(x, nfft=64, window="hann"), scipy.signal.periodogram(x, nfft=64, window="hann"))
    if kind == "real":
        agree(signal.hilbert(x, 31, axis=0), scipy.signal.hilbert(x, 31, axis=0))


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_filters_are_scipy_s(kind: str, rng: np.random.Generator) -> None:
    x = made(kind, rng)
    b, a = scipy.signal.butter(3, 0.2)
    sos = scipy.signal.butter(5, 0.3, output="sos")
    agree(signal.lfilter(b, a, x), scipy.signal.lfilter(b, a, x))
    agree(signal.lfilter(b, [2.0], x, axis=0), scipy.signal.lfilter(b, [2.0], x, axis=0))
    agree(signal.lfilter([2.0], [4.0], x), x / 2)
    agree(signal.lfilter(b, a, x, zi=np.ones((3, 3))), scipy.signal.lfilter(b, a, x, zi=np.ones((3, 3))))
    agree(signal.lfilter_zi(b, a), scipy.signal.lfilter_zi(b, a))
    agree(signal.sosfilt(sos, x), scipy.signal.sosfilt(sos, x))
    state = np.ones((3, 3, 2))
    agree(signal.sosfilt(sos, x, zi=state), scipy.signal.sosfilt(sos, x, zi=state))
    for padtype in ("odd", "constant", None):
        agree(signal.filtfilt(b, a, x, padtype=padtype), scipy.signal.filtfilt(b, a, x, padtype=padtype))


def test_smoothing_is_scipy_s(rng: np.random.Generator) -> None:
    x = made("real", rng)
    for mode in ("interp", "mirror", "nearest", "wrap", "constant"):
        for length in (7, 8):
            options = {"deriv": 1, "delta": 0.5, "mode": mode}
            agree(signal.savgol_filter(x, length, 3, **options), scipy.signal.savgol_filter(x, length, 3, **options))
    for arguments in ((7, 3), (8, 2), (5, 2, 1, 0.3), (5, 2, 0, 1.0, 1, "dot"), (3, 1, 2)):
        agree(signal.savgol_coeffs(*arguments), scipy.signal.savgol_coeffs(*arguments))


def test_gradients_batches_and_single_precision(rng: np.random.Generator) -> None:
    x = tnp.asarray(rng.normal(size=24))
    weights = rng.normal(size=24)
    for f in (
        lambda x: signal.welch(x, nperseg=8)[1].sum(), lambda x: tnp.abs(signal.stft(x, nperseg=8)[2]).sum(),
        lambda x: signal.filtfilt([1.0, 0.5], [1.0, -0.3], x) @ weights,
    ):  # fmt: skip
        tracer.test_util.check_grads(f, (x,), 1)
    tracer.test_util.check_grads(
        lambda b, a, x: signal.lfilter(b, a, x) @ weights, (tnp.asarray([1.0, 0.5]), tnp.asarray([1.0, -0.4]), x), 2
    )
    batched = tracer.jit(tracer.vmap(lambda x: signal.lfilter([1.0], [1.0, -0.5], x)))(tnp.stack([x, 2 * x]))
    agree(batched, scipy.signal.lfilter([1.0], [1.0, -0.5], np.stack([x, 2 * x])))
    assert signal.welch(np.ones(9, "float32"), nperseg=4)[1].dtype == np.float32
    assert signal.lfilter(np.ones(1, "float32"), np.ones(2, "float32"), np.ones(3, "float32")).dtype == np.float32


@pytest.mark.parametrize("window", ["boxcar", "hann", "hamming", "blackman", "blackmanharris", ("kaiser", 4.0)])
def test_windows_and_overlaps_are_scipy_s(window: Any, rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 101))
    for size, overlap in ((1, 0), (2, 1), (24, 18), (25, 10), (30, 0)):
        given = {"window": window, "nperseg": size, "noverlap": overlap}
        agree(signal.welch(x, **given)[1], scipy.signal.welch(x, **given)[1])
        parts = scipy.signal.stft(x, **given)[2]
        agree(tracer.jit(lambda x, given=given: signal.stft(x, **given)[2])(x), parts)
        if overlap:
            agree(signal.istft(parts, **given)[1], scipy.signal.istft(parts, **given)[1])


def test_long_filters_and_long_windows_are_scipy_s(rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 150))
    b, a = rng.normal(size=15), np.concatenate([[2.0], 0.05 * rng.normal(size=13)])
    agree(signal.lfilter(b, a, x), scipy.signal.lfilter(b, a, x))
    agree(signal.lfilter([2.0], [4.0], x, axis=0), x / 2)
    agree(signal.savgol_filter(x, 41, 3, deriv=1), scipy.signal.savgol_filter(x, 41, 3, deriv=1))


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(
        errors.ArgumentError, match=r"^lfilter at .*: the coefficient a\[0\] is not 0\n  got a=\[0.0, 1.0\]"
    ):
        signal.lfilter([1.0], [0.0, 1.0], np.ones(3))
    x = np.ones(9)
    with pytest.raises(errors.ArgumentError, match=r"^welch at test_spectra_and_filters.py:.*: noverlap is below"):
        signal.welch(x, nperseg=4, noverlap=4)
    with pytest.raises(errors.ArgumentError, match='average is "mean" or "median"'):
        signal.welch(x, nperseg=4, average="mode")
    with pytest.raises(errors.ArgumentError, match='scaling is "density" or "spectrum"'):
        signal.welch(x, nperseg=4, scaling="power")
    with pytest.raises(errors.ArgumentError, match="the signal is longer than padlen"):
        signal.filtfilt([1.0], [1.0, 0.5, 0.2], x)
    with pytest.raises(errors.ArgumentError, match="method is \"pad\"\n  got 'gust'"):
        signal.filtfilt([1.0], [1.0, 0.5], x, method="gust")
    with pytest.raises(errors.ShapeError, match="zi has max"):
        signal.lfilter([1.0], [1.0, 0.5], x, zi=np.ones(2))
    with pytest.raises(errors.ArgumentError, match="the degree is at least 0 and below"):
        signal.savgol_filter(x, 3, 3)
    with pytest.raises(errors.ArgumentError, match="the signal is real"):
        signal.hilbert(x + 1j)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["welch", "periodogram", "stft", "csd"])
def test_spectra_of_no_samples_are_empty(name: str, axis: int) -> None:
    for shape in ((2, 0), (0, 3)):
        signals = [np.zeros(shape)] * (2 if name == "csd" else 1)
        agree(getattr(signal, name)(*signals, axis=axis), getattr(scipy.signal, name)(*signals, axis=axis))
