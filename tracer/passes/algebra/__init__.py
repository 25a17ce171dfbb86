"""Rewrite rules by what they rewrite: identities, conversions, layouts, indexing, ranges, products."""
