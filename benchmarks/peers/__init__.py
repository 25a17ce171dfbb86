"""Rows of work, and the peers that do it side by side; `benchmarks/compare.py` runs them."""
