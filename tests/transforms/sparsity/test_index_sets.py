"""Index sets beside Python's sets: rows taken, dropped, merged and joined, and the bound on their entries."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.transforms.sparsity import index_sets
from tracer.transforms.sparsity.index_sets import IndexSets, TooDenseError

COLUMNS = 5
A = [{0, 3}, set(), {1}, {0, 3}, {2, 4}, {1}]
B = [{3}, {0}, set(), {0, 3}, {0, 1, 2, 3, 4}, {2}]


def made(rows: list[set[int]]) -> IndexSets:
    entries = [(row, column) for row, found in enumerate(rows) for column in found]
    listed = np.asarray(entries, np.int64).reshape(-1, 2)
    return index_sets.from_entries(listed[:, 0], listed[:, 1], len(rows), COLUMNS)


def shown(sets: IndexSets) -> list[set[int]]:
    result: list[set[int]] = [set() for _ in range(sets.rows)]
    for row, column in zip(*sets.entries(), strict=True):
        result[row].add(int(column))
    return result


def test_entries_are_what_was_listed_in_order() -> None:
    assert shown(made(A)) == A
    rows, columns = made(A).entries()
    keys = rows * COLUMNS + columns
    assert (np.diff(keys) > 0).all()


def test_rows_are_taken_and_left_out() -> None:
    assert shown(made(A).take(np.asarray([4, -1, 0, 0]))) == [{2, 4}, set(), {0, 3}, {0, 3}]
    kept = made(A).where(np.asarray([True, True, False, False, True, False]))
    assert shown(kept) == [{0, 3}, set(), set(), set(), {2, 4}, set()]
    assert made(A).where(np.zeros(6, bool)).is_empty


def test_groups_are_unions_of_their_rows() -> None:
    found = made(A).merged(np.asarray([1, 1, 1, -1, 0, 3]), 4)
    assert shown(found) == [{2, 4}, {0, 1, 3}, set(), {1}]


def test_unions_and_joins_are_those_of_sets() -> None:
    a, b = made(A), made(B)
    assert shown(index_sets.union(a, b)) == [x | y for x, y in zip(A, B, strict=True)]
    assert shown(index_sets.joined([a, b])) == A + B
    empty = made([set()] * 6)
    assert index_sets.union(a, empty) is a
    assert index_sets.union(empty, b) is b
    assert index_sets.union(a, b).same(index_sets.union(b, a))
    assert not a.same(b)


def test_reductions_go_along_axes() -> None:
    shape = (2, 3)
    rows, columns = ([a | b for a, b in zip(A[:3], A[3:], strict=True)], [A[0] | A[1] | A[2], A[3] | A[4] | A[5]])
    assert shown(index_sets.reduced(made(A), shape, (0,))) == rows
    assert shown(index_sets.reduced(made(A), shape, (1,))) == columns
    assert shown(index_sets.smeared(made(A), shape, (0,))) == rows * 2
    assert shown(index_sets.smeared(made(A), shape, (1,))) == [columns[0]] * 3 + [columns[1]] * 3


def test_patterns_of_too_many_entries_are_given_up() -> None:
    row = made([set(range(COLUMNS))])
    count = index_sets.MAX_ENTRIES // COLUMNS + 1
    with pytest.raises(TooDenseError):
        row.take(np.zeros(count, np.int64)).entries()
