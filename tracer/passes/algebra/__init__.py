"""Rewrite rules of `simplify`, a table a file, by the equations that they rewrite."""
