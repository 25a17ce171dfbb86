"""NumPy's smaller chapters: grids, windows, polynomials, editing, padding, fitting, signals."""
