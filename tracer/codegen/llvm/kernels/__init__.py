"""Library kernels written for LLVM: matrix products, factorisations, sorts, and the thread pool."""
