"""The CUDA backend: kernels of the loop IR spelled as CUDA C++, compiled by NVRTC, launched through CuPy."""
