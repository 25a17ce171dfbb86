"""Commands of `python -m tracer`: a module for each, with `add_to` for its options and `run` for its work."""
