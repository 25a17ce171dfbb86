"""Optimisation under SciPy's names: minima, roots and least squares, as loops of compiled programs.

Functions are differentiated by tracer. Solutions have derivatives by the implicit function theorem.
"""

from functools import partial

from tracer.absent import absent
from tracer.scipy.optimize.fitting import curve_fit, least_squares
from tracer.scipy.optimize.minimization import minimize
from tracer.scipy.optimize.nonlinear_systems import root
from tracer.scipy.optimize.results import OptimizeResults
from tracer.scipy.optimize.scalars import minimize_scalar, root_scalar
from tracer.trace.tracebacks import boundary, set_boundaries

__all__ = [
    "OptimizeResults", "curve_fit", "least_squares", "minimize", "minimize_scalar", "root", "root_scalar",
]  # fmt: skip


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)


for _name in __all__:
    globals()[_name].__module__ = __name__

set_boundaries(globals(), __all__, partial(boundary, named=True))
