"""Complex arithmetic and functions on pairs of real scalars."""
