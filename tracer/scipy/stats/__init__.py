"""Probability distributions, each a module of functions: `norm.logpdf(x)`."""

from tracer.scipy.stats import norm

__all__ = ["norm"]


def __dir__() -> list[str]:
    return sorted(__all__)
