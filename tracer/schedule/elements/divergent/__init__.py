"""Loops whose lanes stop at different iterations."""
