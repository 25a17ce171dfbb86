"""Reductions over axes and over windows."""
