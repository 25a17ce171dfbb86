"""Primitives that move, join, slice, sort or draw elements."""
