"""Clusters of points under SciPy's names: `vq` has the functions."""

from tracer.absent import absent
from tracer.scipy.cluster import vq

__all__ = ["vq"]


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return list(__all__)
