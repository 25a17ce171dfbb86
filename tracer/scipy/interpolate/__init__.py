"""Interpolation under SciPy's names: grids of any number of dimensions, and piecewise polynomials on a line."""

from tracer.absent import absent
from tracer.scipy.interpolate.grids import RegularGridInterpolator, interpn
from tracer.scipy.interpolate.piecewise import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    PPoly,
)
from tracer.trace.tracebacks import set_boundaries, set_method_boundaries

__all__ = [
    "Akima1DInterpolator", "CubicHermiteSpline", "CubicSpline", "PPoly", "PchipInterpolator", "RegularGridInterpolator",
    "interpn",
]  # fmt: skip


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)


for _class in (
    Akima1DInterpolator, CubicHermiteSpline, CubicSpline, PPoly, PchipInterpolator, RegularGridInterpolator,
):  # fmt: skip
    _class.__module__ = __name__
    set_method_boundaries(_class)
set_boundaries(globals(), ("interpn",))
