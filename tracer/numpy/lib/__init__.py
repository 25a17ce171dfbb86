"""`tracer.numpy.lib`: what NumPy keeps in its `lib` and arrays of ours have, too."""

from tracer.numpy.lib import stride_tricks

__all__ = ["stride_tricks"]
