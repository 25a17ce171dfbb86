"""Program to program: jvp, linearize, transpose, batch and what is built on them."""
