"""Decisions about nests: which values are materialised, fused, updated in place or donated."""
