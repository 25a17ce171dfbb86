"""Colours of columns: few for bands, and every entry of a symmetric matrix is read from a product alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from tracer.transforms.sparsity import coloring


def test_a_band_takes_as_many_colours_as_it_is_wide() -> None:
    for below, above in ((0, 0), (1, 1), (0, 2), (3, 1)):
        for n in (6, 50, 1000):
            offsets = range(-below, above + 1)
            m = scipy.sparse.diags_array([np.ones(n)] * len(offsets), offsets=list(offsets), shape=(n, n)).tocoo()
            rows, columns = (np.asarray(c, np.int64) for c in m.coords)
            colors = coloring.color_columns(rows, columns, (n, n))
            assert colors.max() + 1 == below + above + 1
            assert len(set(zip(rows.tolist(), colors[columns].tolist(), strict=True))) == len(rows)


@pytest.mark.parametrize("seed", range(6))
def test_star_colourings_read_every_entry(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 30
    p = rng.random((n, n)) < (0.02, 0.05, 0.1, 0.3, 0.7, 0.0)[seed]
    p = p | p.T
    rows, columns = np.nonzero(p)
    colors = coloring.color_symmetric(rows, columns, n)
    values = rng.standard_normal((n, n)) * p
    values = values + values.T
    products = values @ (colors[:, None] == np.arange(colors.max() + 1))
    swapped = coloring.across(rows, columns, colors)
    read = np.where(swapped, products[columns, colors[rows]], products[rows, colors[columns]])
    np.testing.assert_allclose(read, values[rows, columns])
