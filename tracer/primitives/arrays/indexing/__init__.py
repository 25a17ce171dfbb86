"""Gather, scatter, their dimension numbers, and bounds checks of indices."""
