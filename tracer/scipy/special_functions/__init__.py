"""Special functions with long formulas: hypergeometric, Bessel's, spherical harmonics, and of complex numbers."""
