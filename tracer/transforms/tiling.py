"""Tiling of an array by its parts: cotangents of slices as one concatenation.

The cotangents of `x[k:]` and `x[:k]`, one after the other, are the cotangent of x, without a zero. So the gradient of a
roll is a roll, and the gradient of a split is a concatenation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from tracer.ir.primitive import Onto
from tracer.ir.types import Shape
from tracer.primitives.arrays.slice_pad_concatenate import concatenate


@dataclass(frozen=True, slots=True)
class _Tile:
    """Box of an array: one part, or other tiles in a row along an axis."""

    start: Shape
    sizes: Shape
    content: Onto | Sequence[_Tile]
    axis: int = 0

    def parts(self) -> list[Onto]:
        if isinstance(self.content, Onto):
            return [self.content]
        return [part for tile in self.content for part in tile.parts()]

    def value(self) -> Any:
        if isinstance(self.content, Onto):
            return self.content.value
        return concatenate([tile.value() for tile in self.content], self.axis)


def laid_out(parts: Sequence[Onto]) -> tuple[list[Any], list[Onto]]:
    """Return the whole arrays that parts of one array make, and the remaining parts."""
    (whole,) = {part.type.shape for part in parts}
    given = [part for part in parts if part.start is not None]
    tiles = [_Tile(part.start, part.value.type.shape, part) for part in given if part.start is not None]
    for axis, size in enumerate(whole):
        tiles = _joined_along(axis, size, tiles)
    complete = [tile for tile in tiles if tile.sizes == whole]
    used = {id(part) for tile in complete for part in tile.parts()}
    return [tile.value() for tile in complete], [part for part in parts if id(part) not in used]


def _joined_along(axis: int, size: int, tiles: Sequence[_Tile]) -> list[_Tile]:
    """Join tiles into rows that span the axis, each as one tile. Return these, and the tiles in no such row."""
    groups: dict[Hashable, list[_Tile]] = {}
    for tile in tiles:
        others = tuple(zip(tile.start, tile.sizes, strict=True))
        groups.setdefault(others[:axis] + others[axis + 1 :], []).append(tile)
    result: list[_Tile] = []
    for group in groups.values():
        while row := _row(axis, size, group):
            start = row[0].start
            sizes = (*row[0].sizes[:axis], size, *row[0].sizes[axis + 1 :])
            result.append(row[0] if len(row) == 1 else _Tile(start, sizes, row, axis))
            taken = set(map(id, row))
            group = [tile for tile in group if id(tile) not in taken]
        result += group
    return result


def _row(axis: int, size: int, tiles: Sequence[_Tile]) -> list[_Tile]:
    """Return tiles one after another from 0 to `size` along an axis, or none."""
    follower: dict[int, _Tile] = {}  # by its start: a tile from which the end is reached
    for tile in sorted(tiles, key=lambda t: -t.start[axis]):
        end = tile.start[axis] + tile.sizes[axis]
        if tile.sizes[axis] and (end == size or end in follower):
            follower.setdefault(tile.start[axis], tile)
    row, start = [], 0
    while start in follower:
        row.append(follower[start])
        start += row[-1].sizes[axis]
    return row
