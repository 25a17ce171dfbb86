"""Transforms of programs and functions: jvp, linearize, transpose, batch, and the public functions built on them."""
