"""Reductions and order: sums, cumulative sums, products, statistics, sorting, sets, histograms."""
