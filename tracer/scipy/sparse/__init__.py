"""Sparse linear algebra: `linalg`, systems given by products with vectors."""

from tracer.absent import absent
from tracer.scipy.sparse import linalg

__all__ = ["linalg"]


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
