"""Schedules made by hand: products, convolutions, factorisations, sorts, cumulative sums."""
