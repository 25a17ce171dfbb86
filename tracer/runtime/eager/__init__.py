"""Execution of operations outside `jit`, one at a time."""
