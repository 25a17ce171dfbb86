"""Simulated CUDA device: kernels run on the CPU, one fiber a thread, and every access is checked.

`kernels` builds CUDA text by the machine's C++ compiler, behind the words of `kernel.h`; `runtime.cpp` has the checks.
"""
