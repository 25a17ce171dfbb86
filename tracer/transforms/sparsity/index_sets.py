"""Sets of column indices, one for each element of an array: the pattern of a matrix, row by row.

Elements that depend on the same inputs share one set, so broadcasting a reduction costs no more than the reduction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Integers = np.ndarray[Any, np.dtype[np.int64]]

MAX_ENTRIES = 1 << 25  # 256 MiB of indices, some seconds of sorting


class TooDenseError(Exception):
    """A pattern of more than `MAX_ENTRIES` entries."""


@dataclass(frozen=True, eq=False, slots=True)
class IndexSets:
    """A set of integers below `columns` for each row.

    ids: the set of each row, [rows]. Set k holds indices[starts[k] : starts[k + 1]], ascending; set 0 is empty.
    """

    ids: Integers
    starts: Integers
    indices: Integers
    columns: int

    @property
    def rows(self) -> int:
        return len(self.ids)

    @property
    def is_empty(self) -> bool:
        return not self.ids.any()

    def take(self, rows: Integers) -> IndexSets:
        """Return the sets of these rows, the empty set for row -1."""
        ids = np.append(self.ids, 0)[rows]
        return IndexSets(ids, self.starts, self.indices, self.columns)

    def where(self, kept: np.ndarray[Any, np.dtype[np.bool_]]) -> IndexSets:
        """Return the sets of the rows that are kept, and empty sets for other rows."""
        return IndexSets(np.where(kept, self.ids, 0), self.starts, self.indices, self.columns)

    def merged(self, groups: Integers, count: int) -> IndexSets:
        """Return the union over each of `count` groups. groups: the group of each row, [rows]; -1 drops the row."""
        live = (self.ids > 0) & (groups >= 0)
        pairs = distinct(groups[live] * len(self.starts) + self.ids[live])
        owners, ids = np.divmod(pairs, len(self.starts))
        return _from_sets(self, owners, ids, count, np.arange(1, count + 1))

    def entries(self) -> tuple[Integers, Integers]:
        """Return the rows and columns of all entries, ordered by row, then by column."""
        rows, positions = _listed(self.starts, self.ids)
        return rows, self.indices[positions]

    def same(self, other: IndexSets) -> bool:
        """Whether the sets of all rows are equal."""
        mine, theirs = self.entries(), other.entries()
        return all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


def _listed(starts: Integers, ids: Integers) -> tuple[Integers, Integers]:
    """Return, for every element of the listed sets, the position in the list and the position among all indices."""
    sizes = np.diff(starts)[ids]
    total = int(sizes.sum())
    if total > MAX_ENTRIES:
        raise TooDenseError
    owners = np.repeat(np.arange(len(ids)), sizes)
    first = np.cumsum(sizes) - sizes
    return owners, np.arange(total) + np.repeat(starts[ids] - first, sizes)


def _from_sets(source: IndexSets, owners: Integers, ids: Integers, count: int, chosen: Integers) -> IndexSets:
    """Return sets 1 to `count`, each the union of the listed sets of the source. chosen: the sets of the rows."""
    listed, positions = _listed(source.starts, ids)
    keys = distinct(owners[listed] * source.columns + source.indices[positions])
    rows, indices = np.divmod(keys, source.columns) if source.columns else (keys, keys)
    starts = np.concatenate([[0, 0], np.cumsum(np.bincount(rows, minlength=count))]).astype(np.int64)
    empty = np.diff(starts)[chosen] == 0
    return IndexSets(np.where(empty, 0, chosen), starts, indices, source.columns)


def distinct(keys: Integers) -> Integers:
    """Return the distinct keys, ascending. Sorting is ten times as fast as the hashing of `numpy.unique`."""
    if (keys[1:] > keys[:-1]).all():
        return keys
    ordered: Integers = np.sort(keys)
    kept: Integers = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return kept


def identity(start: int, count: int, columns: int) -> IndexSets:
    """Return `count` rows, of which row i holds start + i alone."""
    return IndexSets(
        np.arange(1, count + 1), np.concatenate([[0], np.arange(count + 1)]), np.arange(start, start + count), columns
    )


def from_entries(rows: Integers, indices: Integers, count: int, columns: int) -> IndexSets:
    """Return `count` sets that hold the listed entries."""
    single = identity(0, columns, columns)
    return _from_sets(single, rows, indices + 1, count, np.arange(1, count + 1))


def union(a: IndexSets, b: IndexSets) -> IndexSets:
    """Return the union, row by row."""
    if a is b or b.is_empty:
        return a
    if a.is_empty:
        return b
    if a.indices is b.indices and np.array_equal(a.ids, b.ids):
        return a
    many = len(b.starts)
    pairs, chosen = np.unique(a.ids * many + b.ids, return_inverse=True)
    left, right = np.divmod(pairs, many)
    both = joined([a, b])
    order = np.arange(1, len(pairs) + 1)
    owners = np.repeat(np.arange(len(pairs)), 2)
    ids = np.stack([left, np.where(right > 0, right + len(a.starts) - 1, 0)], 1).ravel()
    return _from_sets(both, owners, ids, len(pairs), order[chosen.ravel()])


def joined(parts: Sequence[IndexSets]) -> IndexSets:
    """Return the rows of all parts, one after the other."""
    shift = np.cumsum([0, *(len(part.starts) - 1 for part in parts)])
    ids = [np.where(part.ids > 0, part.ids + by, 0) for part, by in zip(parts, shift, strict=False)]
    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    # each part's set 0 stays behind as an unused empty set
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return IndexSets(np.concatenate(ids), starts, np.concatenate([part.indices for part in parts]), parts[0].columns)


# Arrays of sets: rows in row-major order of a shape


def numbered(shape: Sequence[int], start: int = 0) -> Integers:
    """Return the row of each element, in the shape."""
    return np.arange(start, start + math.prod(shape)).reshape(shape)


def without_axes(shape: Sequence[int], axes: Sequence[int]) -> Integers:
    """Return for each element, flat, its row in the array without the axes."""
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    return np.broadcast_to(numbered(kept), shape).ravel()


def reduced(sets: IndexSets, shape: Sequence[int], axes: Sequence[int]) -> IndexSets:
    """Return the union along the axes."""
    if all(shape[axis] == 1 for axis in axes):
        return sets
    count = math.prod(size for axis, size in enumerate(shape) if axis not in axes)
    return sets.merged(without_axes(shape, axes), count)


def smeared(sets: IndexSets, shape: Sequence[int], axes: Sequence[int]) -> IndexSets:
    """Return the union along the axes at each of their elements."""
    if all(shape[axis] == 1 for axis in axes):
        return sets
    return reduced(sets, shape, axes).take(without_axes(shape, axes))
