"""Backends: each spells loop IR, none decides."""
