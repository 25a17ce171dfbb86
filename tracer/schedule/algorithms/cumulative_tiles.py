"""Long cumulative operations that threads share: tiles on their own first, then the total before each tile.

As many tiles as fit into caches are processed at a time. Each is computed alone in scratch memory, then the chain of
their totals, then the result. So the array comes from memory once and its elements are computed once. An element is
op(all tiles before, elements of its tile up to it), whichever thread computes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from tracer.ir.loop import LoopKind, Operand, Register
from tracer.ir.loop.build import Builder
from tracer.ir.primitive import Scan
from tracer.ir.program import Equation
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import array_type
from tracer.schedule.algorithms.cumulative import Cumulative, Place
from tracer.schedule.terms.affine import ZERO, Affine, of_register, operand_of, plus, scaled, shifted
from tracer.schedule.terms.cost import flops_of_operand
from tracer.schedule.terms.schedules import Schedule, no_operands
from tracer.schedule.terms.value_locations import Element, Memory
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter
from tracer.schedule.write.serial_reductions import join, write_cumulative

_AT_ONCE: Final = 16  # tiles that stay in caches between their two times
_MIN_TILES: Final = 8
_MAX_ROWS: Final = 64  # threads share rows, not tiles, where there are more
_MAX_INNER: Final = 2048  # bytes from which on they share columns


def write_prefixes(writer: BlockWriter, equation: Equation) -> None:
    """Write every partial result along one axis."""
    lower, tile = equation.primitive.lower, writer.module.target.blocks.cumulative
    assert isinstance(lower, Scan)
    op = lower.op
    if not tile:
        write_cumulative(writer, equation, op)
        return
    c = Cumulative(writer, equation, op)
    if not c.outer * c.length * c.inner:
        return
    length = _tile_length(c, tile)
    if length is not None:
        _Tiles(c, length).write()
    elif _is_narrow(c):
        write_cumulative(writer, equation, op)
    elif c.inner == 1:
        c.in_rows()
    else:
        c.in_columns()


def _tile_length(c: Cumulative, tile: int) -> int | None:
    """Return the rows of a tile, or None where the axis is not cut."""
    bytes_a_row = c.inner * c.parts * c.wide.itemsize
    most = max(1, tile // bytes_a_row)
    fits = c.outer < _MAX_ROWS and bytes_a_row < _MAX_INNER and not _is_narrow(c) and c.length >= _MIN_TILES * most
    return _divisor(c.length, most) if fits and c.associates else None


def _is_narrow(c: Cumulative) -> bool:
    """Whether a row behind the axis would leave most lanes with nothing to do."""
    return 1 < c.inner <= c.column_lanes // 2


def _divisor(length: int, near: int) -> int:
    """Return the divisor of the length nearest to `near`, within a factor of two, else `near`."""
    candidates = [n for n in range(max(1, near // 2), min(2 * near, length) + 1) if length % n == 0]
    return min(candidates, key=lambda n: abs(n - near), default=near)


class _Tiles:
    """One operation in tiles of `length` rows, `at_once` at a time."""

    def __init__(self, c: Cumulative, length: int) -> None:
        self.c, self.length = c, length
        tiles = -(-c.length // length)
        self.in_turns = c.inner == 1 and c.lanes > 1
        self.at_once = min(_AT_ONCE, tiles) if self.in_turns else _divisor(tiles, min(_AT_ONCE, tiles))
        self.groups = -(-tiles // self.at_once)
        self.even = length * self.at_once * self.groups == c.length
        slots = 2 if self.in_turns else 1
        self.alone = c.writer.allocate(array_type(c.wide, (slots * self.at_once * length, c.inner, c.parts)))
        self.totals = c.writer.allocate(array_type(c.wide, (self.at_once, c.inner, c.parts)))
        self.before = c.writer.allocate(array_type(c.wide, (self.at_once + 1, c.inner, c.parts)))

    def write(self) -> None:
        """Write the groups of tiles one after another."""
        b = self.c.writer.builder
        with ExitStack() as stack:
            around: list[Register | None] = []
            for axis, n in enumerate(self.c.around):
                around.append(stack.enter_context(b.for_(f"i{axis}", 0, n)).index if n > 1 else None)
            with b.for_("tile", 0, self.at_once + 1) as tile, self._each_column(b) as j:
                at = plus(scaled(of_register(tile.index), self.c.inner), j)
                self._store(b, self.before, at, tuple(self.c.start))  # in turns, the first group reads all of them
            if self.in_turns:
                group = stack.enter_context(b.for_("group", 0, self.groups + 1)).index
                self._write_in_turns(around, group, b.compute(ScalarOp.AND, group, 1))
                self._chain(b)
                return
            group = stack.enter_context(b.for_("group", 0, self.groups)).index
            self._write_alone(around, group)
            self._chain(b)
            self._write_results(around, group)

    def _chain(self, b: Builder) -> None:
        """Write the totals before each tile: the last group's total first, then joined tile by tile."""
        c, behind_last = self.c, self.at_once * self.c.inner
        with self._each_column(b) as j:
            self._store(b, self.before, j, self._load(b, self.before, shifted(j, behind_last)))
        with b.for_("tile", 0, self.at_once) as tile, self._each_column(b) as j:
            at = plus(scaled(of_register(tile.index), c.inner), j)
            x = join(b, c.op, self._load(b, self.before, at), self._load(b, self.totals, at))
            self._store(b, self.before, shifted(at, c.inner), x)

    @contextmanager
    def _each_column(self, b: Builder) -> Iterator[Affine]:
        if self.c.inner == 1:
            yield ZERO
            return
        lanes = self.c.column_lanes
        with b.for_("j", 0, self.c.inner, kind=LoopKind.VECTOR, lanes=lanes) as loop:
            yield of_register(loop.index)

    def _load(self, b: Builder, memory: Memory, position: Affine) -> Element:
        at = plus(memory.start, scaled(position, self.c.parts))
        return tuple(b.load(memory.buffer, shifted(at, part)) for part in range(self.c.parts))

    def _store(self, b: Builder, memory: Memory, position: Affine, x: Element) -> None:
        at = plus(memory.start, scaled(position, self.c.parts))
        for part, value in enumerate(x):
            b.store(memory.buffer, shifted(at, part), value)

    # -- a group ---------------------------------------------------------------------------------------------------

    def _write_alone(self, around: Sequence[Register | None], group: Register) -> None:
        """Write each tile on its own, with its last elements in a buffer."""
        c, f = self.c, FunctionWriter(self.c.writer)
        rows = self._around(f, around)
        alone, totals = (f.memory(memory, written=True) for memory in (self.alone, self.totals))
        with f.loops((self.at_once,), LoopKind.PARALLEL) as (tile,):
            first, count = self._stretch(f, group, tile)
            shift = plus(scaled(tile, self.length), scaled(first, -1))

            def sink(at: Place, x: Element) -> None:
                self._store(f.builder, alone, plus(scaled(plus(at[0], shift), c.inner), at[1]), x)

            if c.inner == 1:
                self._store(f.builder, totals, tile, c.row(f, rows, first, count, self.length, sink))
            else:
                last = c.columns(f, rows, (first, ZERO), (count, c.inner), (self.length, c.inner), sink)
                with self._each_column(f.builder) as j:
                    self._store(f.builder, totals, plus(scaled(tile, c.inner), j), last(j))
        f.invoke()

    def _write_results(self, around: Sequence[Register | None], group: Register) -> None:
        """Write each tile joined with the total before it."""
        c, f = self.c, FunctionWriter(self.c.writer)
        b, rows = f.builder, self._around(f, around)
        before, alone, result = f.memory(self.before), f.memory(self.alone), f.memory(c.target, written=True)
        with f.loops((self.at_once,), LoopKind.PARALLEL) as (tile,):
            first, count = self._stretch(f, group, tile)
            of_row = self._load(b, before, tile) if c.inner == 1 else ()

            def join(k: Affine, j: Affine) -> None:
                x = self._load(b, alone, plus(scaled(plus(scaled(tile, self.length), k), c.inner), j))
                earlier = of_row or self._load(b, before, plus(scaled(tile, c.inner), j))
                c.store(f, result, rows, (plus(first, k), j), c.join(f, earlier, x))

            if c.inner > 1:
                with b.for_("k", 0, count) as row, self._each_column(b) as j:
                    join(of_register(row.index), j)
            else:
                kind = LoopKind.VECTOR if c.lanes > 1 else LoopKind.SERIAL
                with b.for_("k", 0, count, kind=kind, lanes=c.lanes) as loop:
                    join(of_register(loop.index), ZERO)
        f.invoke()

    def _write_in_turns(self, around: Sequence[Register | None], group: Register, slot: Operand) -> None:
        """Write each tile on its own, interleaved by vectors with the result of the tile of the previous group.

        Reading goes on while results are written. slot: which half of the scratch memory the group has.
        """
        c, f = self.c, FunctionWriter(self.c.writer)
        b, rows = f.builder, self._around(f, around)
        before, result = f.memory(self.before), f.memory(c.target, written=True)
        alone, totals = (f.memory(memory, written=True) for memory in (self.alone, self.totals))
        number, size = self._given(f, group, self.groups + 1), self.at_once * self.length
        half = scaled(self._given(f, slot, 2), size)
        with f.loops((self.at_once,), LoopKind.PARALLEL) as (tile,):
            place = scaled(tile, self.length)
            first = plus(scaled(number, size), place)
            earlier = shifted(first, -size)
            live = b.compute(ScalarOp.MUL, b.compute(ScalarOp.MIN, operand_of(b, number), 1), self.length)
            read, stored = (self._left(b, of, first, c.length) for of, first in ((self.length, first), (live, earlier)))
            both = b.compute(ScalarOp.MIN, b.compute(ScalarOp.MIN, read, stored), self.length)  # a limit, for estimates
            assert isinstance(both, Register)
            of_row, behind = self._load(b, before, tile), of_register(both)

            def keep(found: Place, x: Element) -> None:
                self._store(b, alone, plus(half, place, found[0], scaled(first, -1)), x)

            def write(k: Affine) -> None:
                x = self._load(b, alone, shifted(plus(scaled(half, -1), place, k), size))
                c.store(f, result, rows, (plus(earlier, k), ZERO), c.join(f, of_row, x))

            def keep_and_write(found: Place, x: Element) -> None:
                write(plus(found[0], scaled(first, -1)))
                keep(found, x)

            last = c.row(f, rows, first, both, self.length, keep_and_write)
            rest = b.compute(ScalarOp.SUB, read, both)
            last = c.row(f, rows, plus(first, behind), rest, self.length, keep, last)
            self._store(b, totals, tile, last)
            left = b.compute(ScalarOp.SUB, stored, both)
            with b.for_("k", 0, left, kind=LoopKind.VECTOR, lanes=c.lanes) as loop:
                write(plus(behind, of_register(loop.index)))
        f.invoke()

    @staticmethod
    def _left(b: Builder, most: Operand | int, done: Affine, whole: Operand | int) -> Operand:
        """Return the count of elements of `whole` after the first `done`, at most `most`."""
        rest = b.compute(ScalarOp.SUB, whole, operand_of(b, done))
        return b.compute(ScalarOp.MIN, b.compute(ScalarOp.MAX, rest, 0), most)

    def _around(self, f: FunctionWriter, around: Sequence[Register | None]) -> list[Affine]:
        """Return the row of the array, as the function sees it."""
        rows: list[Affine] = []
        for register, n in zip(around, self.c.around, strict=True):
            rows.append(ZERO if register is None else self._given(f, register, n))
        return rows

    def _given(self, f: FunctionWriter, register: Operand, extent: int) -> Affine:
        inner = f.parameters.operand(register)
        assert isinstance(inner, Register)
        f.extents[inner] = extent
        return of_register(inner)

    def _stretch(self, f: FunctionWriter, group: Register, tile: Affine) -> tuple[Affine, Operand | int]:
        """Return the start and length of a tile. Tiles past the end of the array are empty."""
        number = plus(scaled(self._given(f, group, self.groups), self.at_once), tile)
        first = scaled(number, self.length)
        if self.even:
            return first, self.length
        return first, self._left(f.builder, self.length, first, self.c.length)


CUMULATIVE: Final = Schedule(Scan, "", flops_of_operand, write_prefixes, no_operands)
