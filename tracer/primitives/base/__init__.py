"""Rules that many primitives share: shapes, broadcasting, references, nested programs."""
