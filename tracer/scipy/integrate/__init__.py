"""Integrals of samples and functions, and initial value problems, under SciPy's names."""

from functools import partial

from tracer.absent import absent
from tracer.numpy import trapezoid
from tracer.scipy.integrate.initial_value import solve_ivp
from tracer.scipy.integrate.quadrature import quad
from tracer.scipy.integrate.samples import cumulative_trapezoid, simpson
from tracer.scipy.integrate.solutions import OdeResult, OdeSolution
from tracer.trace.tracebacks import boundary, set_boundaries

__all__ = ["OdeResult", "OdeSolution", "cumulative_trapezoid", "quad", "simpson", "solve_ivp", "trapezoid"]


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return list(__all__)


OdeResult.__module__ = OdeSolution.__module__ = __name__
set_boundaries(globals(), ["cumulative_trapezoid", "quad", "simpson", "solve_ivp"], partial(boundary, named=True))
