"""Linear maps: products of dense and sparse matrices, convolutions, Fourier transforms, factorisations, solves."""
