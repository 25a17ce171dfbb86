"""`tracer.scipy`: SciPy's functions on traced arrays.

Linear algebra, iterative solvers, special functions, distributions, signals, integrals, and interpolation of images.
"""

from tracer.absent import absent
from tracer.scipy import cluster, fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, special, stats

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "special",
    "stats",
]


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
