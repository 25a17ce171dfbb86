"""Training steps of the same work in each library, one module a library, and `shapes` of arrays that are updated."""

from __future__ import annotations

import math


def shapes(row: str) -> list[tuple[int, ...]]:
    """The shapes of an update: of twelve blocks of a transformer, 21.3 M numbers, or of one array of as many."""
    block = [*[(384, 384), (384,)] * 4, (1536, 384), (1536,), (384, 1536), (384,)]
    return 12 * block if "144" in row else [(12 * sum(map(math.prod, block)),)]
