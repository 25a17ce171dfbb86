"""Signals under SciPy's names: convolution, spectra, filters, and removal of trends."""

from tracer.absent import absent
from tracer.runtime.eager.call_cache import cached
from tracer.scipy.signal.convolution import convolve, convolve2d, correlate, correlate2d, detrend, fftconvolve
from tracer.scipy.signal.filters import filtfilt, lfilter, lfilter_zi, sosfilt
from tracer.scipy.signal.smoothing import savgol_coeffs, savgol_filter
from tracer.scipy.signal.spectra import csd, hilbert, istft, periodogram, stft, welch
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "filtfilt", "hilbert",
    "istft", "lfilter", "lfilter_zi", "periodogram", "savgol_coeffs", "savgol_filter", "sosfilt", "stft", "welch",
]  # fmt: skip


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)


set_boundaries(globals(), __all__, cached)
