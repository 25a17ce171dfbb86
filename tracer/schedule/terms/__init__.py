"""Nouns of the schedule: value locations, affine indices, element costs, cost models."""
