"""Primitives that act on every element alone."""
