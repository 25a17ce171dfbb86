"""Functions with derivative or batching rules by the user."""
