"""Elementwise functions: arithmetic, bitwise, logic, powers, rounding, transcendental."""
