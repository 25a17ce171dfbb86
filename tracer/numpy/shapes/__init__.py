"""Shapes and indices: creation, manipulation, joining, indexing, `where`, updates."""
