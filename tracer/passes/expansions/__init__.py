"""Forms that expansion writes: products of matrices for BLAS, convolutions as products, extremes by blocks."""
