"""Transposed reads: a nest whose stores run along one axis and whose loads run along another is cut into tiles.

A tile of the transposed operand is written to a small buffer, or to the result of a mere copy. So both sides touch
memory in whole cache lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Alloc,
    Block,
    Buffer,
    Compute,
    Constant,
    For,
    Load,
    LoopKind,
    Operand,
    Register,
    Space,
    Statement,
    Store,
    Transpose,
    View,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.walk import operands_of
from tracer.ir.scalar import ScalarOp
from tracer.ir.target import Machine

_TILE: Final = 32  # rows and columns of a tile in a buffer: 4 KiB of f32
_COPIED_TILE: Final = 128  # of one that goes where it belongs at once
_LONG_TILE: Final = (2048, 256)  # bytes of rows that are read and written, of one that goes to memory in whole lines
_MIN: Final = 8  # shorter axes are left to gathers


def tiled(loop: For, machine: Machine) -> For | None:
    """Return a nest of parallel loops in tiles, or None where no load is transposed."""
    chain = _chain(loop)
    if chain is None:
        return None
    loops, statements = chain
    inner = loops[-1].index
    crossing = [s for s in statements if isinstance(s, Load) and _coefficient(s.address, inner) > 1]
    rows = {next((r for r, c in s.address.terms if c == 1), None) for s in crossing}
    if len(rows) != 1 or None in rows or not _runs_along(statements, inner):
        return None
    (row,) = rows
    place = next((n for n, other in enumerate(loops[:-1]) if other.index is row), None)
    if place is None or min(_count(loops[place]), _count(loops[-1])) < _MIN:
        return None
    return _nest(loops, place, statements, crossing, machine)


def _chain(loop: For) -> tuple[list[For], tuple[Statement, ...]] | None:
    """Return two or more perfectly nested parallel loops, and the loads, computations and stores within."""
    loops = [loop]
    while len(loops[-1].body.statements) == 1 and isinstance(loops[-1].body.statements[0], For):
        loops.append(loops[-1].body.statements[0])
    statements = loops[-1].body.statements
    regular = all(
        s.kind is LoopKind.PARALLEL and not s.carries and s.start == index_constant(0) and isinstance(s.stop, Constant)
        and s.step == 1
        for s in loops
    )  # fmt: skip
    plain = all(isinstance(s, Load | Store | Compute) for s in statements)
    return (loops, statements) if len(loops) > 1 and regular and plain else None


def _runs_along(statements: Sequence[Statement], inner: Register) -> bool:
    """Whether every store steps by one along the innermost loop, to memory that is not read."""
    read = {s.buffer for s in statements if isinstance(s, Load)}
    stores = [s for s in statements if isinstance(s, Store)]
    return all(_coefficient(s.address, inner) == 1 and s.buffer not in read for s in stores)


def _coefficient(address: Address, register: Register) -> int:
    return next((c for r, c in address.terms if r is register), 0)


def _count(loop: For) -> int:
    assert isinstance(loop.stop, Constant)
    return int(loop.stop.value)


def _nest(
    loops: list[For], place: int, statements: tuple[Statement, ...], crossing: list[Load], machine: Machine
) -> For | None:
    """Return the outer loops, the loops over tiles, and the body of one tile."""
    row, column = loops[place], loops[-1]
    masked = any(s.mask is not None for s in crossing)
    values = {o for s in statements for o in operands_of(s)}
    copied = len(statements) == 2 and len(crossing) == 1 and isinstance(statements[1], Store)
    if masked or (copied and isinstance(statements[1], Store) and statements[1].mask is not None):
        return None
    sizes = _copied_tile(statements[1], row.index, machine) if copied else (_TILE, _TILE)
    rows, columns = (
        _Axis(loop.index, _count(loop), size, loop.index in values)
        for loop, size in zip((row, column), sizes, strict=True)
    )
    if copied:
        assert isinstance(statements[1], Store)
        body = _copy(statements[1], crossing[0], rows, columns)
    else:
        body = _through_buffers(statements, crossing, rows, columns)
    body = Block((*rows.sizes(), *columns.sizes(), *body.statements))
    for axis in (columns, rows):
        body = Block((For(axis.tile, index_constant(0), index_constant(axis.tiles), body, LoopKind.PARALLEL),))
    for outer in reversed([s for n, s in enumerate(loops[:-1]) if n != place]):
        body = Block((replace(outer, body=body),))
    (result,) = body.statements
    assert isinstance(result, For)
    return result


def _copied_tile(store: Statement, row: Register, machine: Machine) -> tuple[int, int]:
    """Return rows and columns of a tile that is stored to the result directly.

    Large results whose rows begin at lines bypass the caches (`nontemporal_stores`), and operands are read in long
    rows. 4000 x 2560 of f64 take 7.1 ms so. They take 20 ms in square tiles of 128, and 34 ms with ordinary stores.
    """
    assert isinstance(store, Store)
    itemsize = store.buffer.dtype.itemsize
    whole = _coefficient(store.address, row) * itemsize % machine.line_bytes == 0 and itemsize in (4, 8)
    if whole and store.buffer.size * itemsize >= machine.streamed_bytes:
        return _LONG_TILE[0] // itemsize, _LONG_TILE[1] // itemsize
    return _COPIED_TILE, _COPIED_TILE


class _Axis:
    """One of the two axes: the loop over its tiles, and how much of it a tile holds."""

    def __init__(self, index: Register, length: int, tile: int, read: bool) -> None:
        self.index, self.length, self.width, self.read = index, length, min(tile, length), read
        self.tiles = -(-length // self.width)
        self.tile, self.within = Register(I64, f"{index.name}.tile"), Register(I64, f"{index.name}.within")
        self.rest = Register(I64, "rest")
        self.count: Operand = index_constant(self.width) if length % self.width == 0 else Register(I64, "count")

    def sizes(self) -> list[Statement]:
        """Return the statements for the length of a tile."""
        if not isinstance(self.count, Register):
            return []
        first = Register(I64, "first")
        return [
            Compute(first, ScalarOp.MUL, (self.tile, index_constant(self.width))),
            Compute(self.rest, ScalarOp.SUB, (index_constant(self.length), first)),
            Compute(self.count, ScalarOp.MIN, (self.rest, index_constant(self.width))),
        ]

    def position(self) -> list[Statement]:
        """Return the index itself, where its value is read."""
        if not self.read:
            return []
        first = Register(I64, "first")
        return [
            Compute(first, ScalarOp.MUL, (self.tile, index_constant(self.width))),
            Compute(self.index, ScalarOp.ADD, (self.within, first)),
        ]

    def loop(self, body: Block) -> For:
        """Return the loop through a tile."""
        return For(self.within, index_constant(0), self.count, body, LoopKind.PARALLEL)


def _start(address: Address, *axes: _Axis) -> Address:
    """Return the address at the first element of a tile."""
    return _moved(address, {axis.index: ((axis.tile, axis.width),) for axis in axes})


def _within(address: Address, *axes: _Axis) -> Address:
    """Return the address at an element of a tile."""
    return _moved(address, {axis.index: ((axis.within, 1), (axis.tile, axis.width)) for axis in axes})


def _moved(address: Address, places: dict[Register, tuple[tuple[Register, int], ...]]) -> Address:
    terms = [(q, c * k) for r, c in address.terms for q, k in places.get(r, ((r, 1),))]
    return Address(address.constant, tuple(terms))


def _copy(store: Store, load: Load, rows: _Axis, columns: _Axis) -> Block:
    target = View(store.buffer, _start(store.address, rows, columns))
    source = View(load.buffer, _start(load.address, rows, columns))
    strides = _coefficient(store.address, rows.index), _coefficient(load.address, columns.index)
    return Block((Transpose(target, strides[0], source, strides[1], rows.count, columns.count),))


def _through_buffers(statements: Sequence[Statement], crossing: list[Load], rows: _Axis, columns: _Axis) -> Block:
    before: list[Statement] = []
    buffers: dict[Register, Buffer] = {}
    for number, load in enumerate(crossing):
        buffer = Buffer(f"tile{number}", load.buffer.dtype, rows.width * columns.width, Space.LOCAL, written=True)
        source = View(load.buffer, _start(load.address, rows, columns))
        stride = _coefficient(load.address, columns.index)
        before.append(Alloc(buffer))
        before.append(Transpose(View(buffer), columns.width, source, stride, rows.count, columns.count))
        buffers[load.result] = buffer
    inner: list[Statement] = [*rows.position(), *columns.position()]
    for s in statements:
        match s:
            case Load() if s.result in buffers:
                address = Address(0, ((rows.within, columns.width), (columns.within, 1)))
                inner.append(Load(s.result, buffers[s.result], address))
            case Load() | Store():
                inner.append(replace(s, address=_within(s.address, rows, columns)))
            case _:
                inner.append(s)
    return Block((*before, rows.loop(Block((columns.loop(Block(tuple(inner))),)))))
