"""Liveness of buffers and their offsets in the arena."""
