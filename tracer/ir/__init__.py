"""Nouns of the compiler: types, programs, primitives and the loop IR. Nothing here runs."""
