"""`tracer.scipy`: SciPy's functions on arrays that are traced: linear algebra, special functions, distributions."""

from tracer.scipy import linalg, special, stats

__all__ = ["linalg", "special", "stats"]


def __dir__() -> list[str]:
    return sorted(__all__)
