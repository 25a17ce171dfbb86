"""`tracer.scipy`: SciPy's functions on arrays that are traced: special functions and distributions so far."""

from tracer.scipy import special, stats

__all__ = ["special", "stats"]
