"""Rewrites of programs that keep what they compute."""
