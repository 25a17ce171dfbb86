"""The nouns: types, programs, primitives and the loop IR. Nothing here runs."""
