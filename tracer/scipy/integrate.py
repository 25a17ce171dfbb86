"""Integrals of samples, under SciPy's name."""

from tracer.absent import absent
from tracer.numpy import trapezoid

__all__ = ["trapezoid"]


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return list(__all__)
