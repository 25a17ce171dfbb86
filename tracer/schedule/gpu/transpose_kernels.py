"""Transposed reads on a GPU: tiles in shared memory, so that threads read and write neighbouring elements.

A map stores along its last axis, its columns. A crossing load runs along another axis, its rows. A block takes a tile
of rows and columns:

1. threads that follow each other along rows bring the tile of each crossing load to shared memory;
2. behind a barrier, threads that follow each other along columns compute the map, and read crossing loads from there.

A column of a tile takes one bank more than its rows: no warp asks a bank twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Final

from tracer.ir.dtypes import I64, DType
from tracer.ir.loop import (
    Block,
    Buffer,
    Compute,
    For,
    Load,
    LoopKind,
    Operand,
    Register,
    Space,
    Statement,
    Store,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.build import Builder, address
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.threads import WARP, Axes, Names, in_thread

_THREADS: Final = 256
_MIN: Final = 1 << 10  # elements of a map whose reads are worth a tile
_BANK: Final = 4  # bytes
_SHARED: Final = 40 << 10  # bytes of all tiles of a block
_NEAR: Final = 2  # elements from a row to the next one, at most: a complex number


@dataclass(frozen=True, slots=True)
class Tile:
    """Part of a map that a block takes. row: the index along which crossing loads run. sizes: rows and columns."""

    row: Register
    column: Register
    crossing: tuple[Load, ...]
    sizes: tuple[int, int]


def tile_of(axes: Axes, body: Sequence[Statement]) -> Tile | None:
    """Return the tile of a map with transposed reads, or None for other nests."""
    column = axes.last
    plain = all(isinstance(s, Compute | Load | Store) for s in body)
    if column is None or not plain or prod(axes.sizes) < _MIN:
        return None
    stored = {s.buffer for s in body if isinstance(s, Store)}
    loads = [s for s in body if isinstance(s, Load) and s.mask is None and s.buffer not in stored]
    found = {s: row for s in loads if (row := _row(s, axes, column)) is not None}
    if not found:
        return None
    row = max(axes.registers, key=list(found.values()).count)
    crossing = tuple(s for s, of in found.items() if of is row)
    counts = axes.sizes[axes.registers.index(row)], axes.sizes[-1]
    sizes = _sizes(*counts, max(s.buffer.dtype.itemsize for s in crossing))
    shared = sum(sizes[1] * _pitch(sizes[0], s.buffer.dtype) * s.buffer.dtype.itemsize for s in crossing)
    return Tile(row, column, crossing, sizes) if min(counts) > 1 and shared <= _SHARED else None


def _row(s: Load, axes: Axes, column: Register) -> Register | None:
    """Return the index along which a load reads neighbours, if it is not the last axis."""
    steps = {r: abs(c) for r, c in s.address.terms}
    if column not in steps or not steps.keys() <= set(axes.registers):
        return None
    row = min(steps, key=lambda r: steps[r])
    return row if row is not column and steps[row] <= _NEAR else None


def _sizes(rows: int, columns: int, itemsize: int) -> tuple[int, int]:
    """Return a tile's rows and columns. Short axes are taken whole, with more of the other one."""
    edge = WARP if itemsize >= _BANK else 2 * WARP
    if min(rows, columns) >= edge:
        return edge, edge
    short = min(rows, columns)
    long = max(edge, edge * edge // short // WARP * WARP)
    return (short, min(columns, long)) if rows <= columns else (min(rows, long), short)


def _buffer(number: int, s: Load, tile: Tile) -> Buffer:
    rows, columns = tile.sizes
    size = columns * _pitch(rows, s.buffer.dtype)
    return Buffer(f"tile{number}", s.buffer.dtype, size, Space.SHARED, written=True)


def _pitch(rows: int, dtype: DType) -> int:
    return rows + max(1, _BANK // dtype.itemsize)


def map_tiles(axes: Axes, body: Sequence[Statement], tile: Tile, loads: Sequence[Statement] = ()) -> Block:
    """Return a kernel with one block of threads for each tile."""
    edges = dict(zip((tile.row, tile.column), tile.sizes, strict=True))
    counts = tuple(-(-n // edges.get(r, 1)) for r, n in zip(axes.registers, axes.sizes, strict=True))
    b = Builder()
    with b.for_("b", 0, prod(counts), kind=LoopKind.BLOCK) as block:
        cut = [(r, n) for r, n in zip(axes.registers, counts, strict=True) if n > 1]
        names: dict[Register, Operand] = dict.fromkeys(axes.registers, index_constant(0))
        names.update(Axes(tuple(r for r, _ in cut), tuple(n for _, n in cut)).locate(b, block.index))
        for index, edge in edges.items():
            names[index] = b.compute(ScalarOp.MUL, names[index], edge, name="first")
        tiles = {s: b.alloc(_buffer(n, s, tile)) for n, s in enumerate(tile.crossing)}
        threads = min(_THREADS, -(-prod(tile.sizes) // WARP) * WARP)
        with b.for_("t", 0, threads, kind=LoopKind.THREAD) as thread:
            for load in loads:
                b.add(load)
            for reads in (True, False):
                elements = _Elements(axes, tile, names, reads)
                b.add(elements.loop(thread.index, threads, elements.body(body, tiles)))
                if reads:
                    b.barrier()
    return b.finish()


class _Elements:
    """Writer of one phase of a tile's kernel. names: the first indices of the tile. reads: whether it is phase 1."""

    def __init__(self, axes: Axes, tile: Tile, names: Names, reads: bool) -> None:
        self.axes, self.tile, self.names, self.reads = axes, tile, names, reads
        self.within = Register(I64, "r"), Register(I64, "c")

    def body(self, body: Sequence[Statement], tiles: Mapping[Load, Buffer]) -> list[Statement]:
        """Return the statements of an element. tiles: the memory of crossing loads."""
        row, column = self.within
        places = {s: address(row, (column, _pitch(self.tile.sizes[0], s.buffer.dtype))) for s in tiles}
        if self.reads:
            values = {s: Register(s.buffer.dtype, "x") for s in tiles}  # a register is assigned once in a kernel
            moves = [(replace(s, result=x), Store(tiles[s], places[s], x)) for s, x in values.items()]
            return [each for move in moves for each in move]
        moved = {s: replace(s, buffer=held, address=places[s]) for s, held in tiles.items()}
        return [moved.get(s, s) if isinstance(s, Load) else s for s in body]

    def loop(self, thread: Register, threads: int, body: Sequence[Statement]) -> For:
        """Return the loop over a thread's elements: by rows in phase 1, else by columns."""
        (rows, columns), count = self.tile.sizes, prod(self.tile.sizes)
        b, turn = Builder(), Register(I64, "k")
        element = b.compute(ScalarOp.ADD, b.compute(ScalarOp.MUL, turn, threads), thread, name="e")
        fast = rows if self.reads else columns
        places = b.compute(ScalarOp.IREM, element, fast), b.compute(ScalarOp.IDIV, element, fast)
        names = dict(self.names)
        checks = [] if count % threads == 0 else [b.compute(ScalarOp.LT, element, count, name="inside")]
        for index, own, place, edge in zip(
            (self.tile.row, self.tile.column), self.within, places if self.reads else places[::-1], self.tile.sizes,
            strict=True,
        ):  # fmt: skip
            names[own] = place
            names[index] = b.compute(ScalarOp.ADD, names[index], place, name=index.name)
            length = self.axes.sizes[self.axes.registers.index(index)]
            if length % edge:
                checks.append(b.compute(ScalarOp.LT, names[index], length, name="inside"))
        with b.if_(reduce(lambda x, y: b.compute(ScalarOp.AND, x, y), checks)) if checks else nullcontext():
            for s in in_thread(body, names):
                b.add(s)
        turns = index_constant(-(-count // threads))
        return For(turn, index_constant(0), turns, b.finish(), unrolled=self.reads)
