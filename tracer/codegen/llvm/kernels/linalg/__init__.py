"""Linear algebra kernels: LAPACK bindings, blocked Cholesky, LU and triangular solves."""
