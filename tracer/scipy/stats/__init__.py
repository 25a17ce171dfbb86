"""Probability distributions, each a module of functions, as `norm.logpdf(x)`; ranks, and the error of means."""

from tracer.absent import absent
from tracer.runtime.replay import replayed
from tracer.scipy.stats import norm
from tracer.scipy.stats.ranks import rankdata, sem
from tracer.trace.tracebacks import set_boundaries

__all__ = ["norm", "rankdata", "sem"]

set_boundaries(globals(), ["rankdata", "sem"], replayed)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
