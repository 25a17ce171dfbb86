"""Passes, one a file, which rewrite programs and keep what they compute; `pipeline` has their order."""
