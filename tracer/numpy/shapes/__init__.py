"""Shapes and places: creation, manipulation, joining, indexing, `where`, updates."""
