"""Writing a planned program as loop IR."""
