"""Sorting kernels: NumPy's sorts, radix argsort, top-k selection."""
