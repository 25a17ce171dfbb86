"""`tracer.numpy.lib`: the part of NumPy's `lib` that arrays support."""

from tracer.numpy.lib import stride_tricks

__all__ = ["stride_tricks"]
