"""Primitives, a folder per field and a file per family, and the catalogue that lists them."""
