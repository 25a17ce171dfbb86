"""Spelling loop IR as LLVM text: statements, types, scalar operations, vector loops, shared routines.

Choices here are LLVM's own, and no bit of a result depends on them: registers that are held in memory, instructions for
strided loads, the optimisation level, and where loops poll for Ctrl-C.
"""
