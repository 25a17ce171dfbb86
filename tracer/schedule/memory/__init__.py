"""Buffers' lifetimes and their places in the arena."""
