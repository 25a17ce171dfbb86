"""Kernels of Fourier transforms: lines of small factors in lanes, and loops of NumPy for other lengths."""
