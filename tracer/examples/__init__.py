"""Worked examples that ship with tracer, and the data they need. `python -m tracer demo` runs the first."""
