"""Matrix products, convolutions, factorisations, triangular and general solves."""
