"""Products, convolutions, factorisations, triangular and general solves."""
