"""Spelling loop IR as LLVM text: statements, types, scalar operations, vector loops, shared routines."""
