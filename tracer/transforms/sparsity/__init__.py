"""Sparsity of derivatives: patterns by index sets, colourings, compressed products."""
