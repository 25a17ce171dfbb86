"""Functions whose derivative or batching rules the user wrote."""
