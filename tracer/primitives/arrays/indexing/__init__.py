"""Gather, scatter, their dimension numbers, and the checks of indices."""
