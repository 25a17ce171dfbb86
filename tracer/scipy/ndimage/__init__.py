"""Images under SciPy's names: filters, and arrays read between their elements: moved, scaled and turned."""

from tracer.absent import absent
from tracer.runtime.eager.call_cache import cached
from tracer.scipy.ndimage.coordinates import map_coordinates
from tracer.scipy.ndimage.filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_laplace,
    laplace,
    maximum_filter,
    median_filter,
    minimum_filter,
    prewitt,
    sobel,
    uniform_filter,
)
from tracer.scipy.ndimage.geometry import affine_transform, rotate, shift, zoom
from tracer.scipy.ndimage.splines import spline_filter, spline_filter1d
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "affine_transform", "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "gaussian_laplace",
    "laplace", "map_coordinates", "maximum_filter", "median_filter", "minimum_filter", "prewitt", "rotate", "shift",
    "sobel", "spline_filter", "spline_filter1d", "uniform_filter", "zoom",
]  # fmt: skip


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)


set_boundaries(globals(), __all__, cached)
