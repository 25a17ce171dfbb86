"""Mapping of loop nests to a GPU's grid, blocks and threads."""
