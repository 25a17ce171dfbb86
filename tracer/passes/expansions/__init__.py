"""Forms that expansion writes: matrix products for BLAS, convolutions as products, argmax by blocks."""
