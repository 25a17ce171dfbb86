"""The catalogue of primitives, one file per family."""
