"""Colourings of sparse matrices: groups of columns, or rows, whose entries one product with a vector separates.

Gebremedhin, Manne & Pothen 2005, "What color is your Jacobian?", SIAM Review 47(4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Integers = np.ndarray[Any, np.dtype[np.int64]]


def lists_by(keys: Integers, values: Integers, count: int) -> list[list[int]]:
    """Return the values of each key, in a list of `count` lists."""
    order = np.argsort(keys, kind="stable")
    ends = np.cumsum(np.bincount(keys, minlength=count))
    flat = values[order].tolist()
    return [flat[start:stop] for start, stop in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False)]


def color_columns(rows: Integers, columns: Integers, shape: tuple[int, int]) -> Integers:
    """Return a colour from 0 for each column, so that columns of one colour have no row in common.

    rows, columns: of the entries. Greedy, in the given order and by falling degree; fewer colours win.
    Columns without entries have colour 0.
    """
    owned = lists_by(columns, rows, shape[1])
    degree = np.bincount(columns, weights=np.bincount(rows, minlength=shape[0])[rows], minlength=shape[1])
    least = int(np.bincount(rows, minlength=1).max(initial=0))
    return _fewest(
        lambda order: _greedy(owned, order, shape[0]), [np.arange(shape[1]), np.argsort(-degree, kind="stable")], least
    )


def _fewest(color: Callable[[Integers], Integers], orders: Sequence[Integers], least: int) -> Integers:
    """Return the colouring of fewest colours; one of `least` colours is not to be beaten."""
    best: Integers | None = None
    for order in orders:
        found = color(order)
        if best is None or found.max(initial=-1) < best.max(initial=-1):
            best = found
        if best.max(initial=-1) < least:
            break
    assert best is not None
    return best


def _greedy(owned: Sequence[Sequence[int]], order: Integers, count: int) -> Integers:
    """Give each column the first colour that none of its rows has. Colours of a row are the bits of an integer."""
    used = [0] * count
    colors = [0] * len(owned)
    for column in order.tolist():
        taken = 0
        for row in owned[column]:
            taken |= used[row]
        bit = ~taken & (taken + 1)
        colors[column] = bit.bit_length() - 1
        for row in owned[column]:
            used[row] |= bit
    return np.asarray(colors, np.int64)


def color_symmetric(rows: Integers, columns: Integers, count: int) -> Integers:
    """Return a star colouring of a symmetric pattern: neighbours differ, and four in a path have three colours or more.

    So each entry has its column's colour alone in its row, or the entry across the diagonal has. Algorithm 4.1 of
    Gebremedhin, Manne & Pothen 2005, with the colours of neighbours counted.
    """
    off = rows != columns
    neighbors = lists_by(rows[off], columns[off], count)
    degree = np.bincount(rows[off], minlength=count)
    return _fewest(lambda order: _star(neighbors, order), [np.arange(count), np.argsort(-degree, kind="stable")], 1)


def _star(neighbors: Sequence[Sequence[int]], order: Integers) -> Integers:
    colors = [-1] * len(neighbors)
    near: list[int] = [0] * len(neighbors)  # colours of a vertex's neighbours, as bits
    twice: list[int] = [0] * len(neighbors)  # colours that two or more of them have
    for vertex in order.tolist():
        taken = 0
        for w in neighbors[vertex]:
            color = colors[w]
            if color < 0:
                taken |= near[w]
                continue
            bit = 1 << color
            taken |= bit
            for x in neighbors[w]:
                # vertex - w - x - y with colors[y] == colors[w]
                if twice[x] & bit and colors[x] >= 0:
                    taken |= 1 << colors[x]
        bit = ~taken & (taken + 1)
        colors[vertex] = bit.bit_length() - 1
        for w in neighbors[vertex]:
            twice[w] |= near[w] & bit
            near[w] |= bit
    return np.asarray(colors, np.int64)


def across(rows: Integers, columns: Integers, colors: Integers) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return the entries of a symmetric matrix that are to be read from the entry across the diagonal.

    These share their row with another entry of their column's colour.
    """
    many = int(colors.max(initial=0)) + 1
    keys = rows * many + colors[columns]
    _, place, found = np.unique(keys, return_inverse=True, return_counts=True)
    shared: np.ndarray[Any, np.dtype[np.bool_]] = found[place.ravel()] > 1
    return shared
