"""Passes, one a file, which rewrite programs and keep their meaning; `pipeline` has their order."""
