"""Reductions down columns: a few rows at a time are read in order and added to a row of accumulators.

Lanes of the loop over columns would each walk down a column, a cache line for every step. Instead a block of columns
keeps its partial results in a small buffer while whole rows stream by. Each column is still reduced from the first row
to the last.
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
    Carry,
    Compute,
    Constant,
    Fault,
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
from tracer.ir.loop.varying import varying_registers
from tracer.ir.loop.walk import operands_of, statements_of, with_operands
from tracer.ir.scalar import ScalarOp
from tracer.ir.target import Machine

_MIN_ROWS: Final = 4
_ROWS: Final = 4  # added at once, for one read and write of a row of accumulators
_FEW_STATEMENTS: Final = 12  # of one row, else they are taken in one by one


def streamed(loop: For, machine: Machine) -> For | None:
    """Return a parallel loop whose columns are reductions as a stream of rows, or None for other loops."""
    found = _reduction(loop)
    if found is None:
        return None
    chain, after = found
    columns = _trips(loop)
    innermost = chain[-1]
    widest = max(c.register.dtype.itemsize for c in innermost.carries)
    lanes = machine.vector_bytes // widest
    if columns < 2 * lanes or _trips(chain[0]) < _MIN_ROWS:
        return None
    width = min(columns, machine.first_cache // 4 // widest)
    width = max(min(width, -(-columns // (2 * lanes)) * lanes), lanes)  # two blocks at least, for two threads
    return _Stream(loop, chain, after, width, lanes).loop()


def _trips(loop: For) -> int:
    return int(loop.stop.value) if isinstance(loop.stop, Constant) else 0


def _reduction(loop: For) -> tuple[list[For], tuple[Statement, ...]] | None:
    """Return the reduced loops, outermost first, and the statements after them, or None for other loops."""
    if loop.kind is not LoopKind.PARALLEL or not loop.body.statements:
        return None
    first, *after = loop.body.statements
    if not isinstance(first, For) or any(not isinstance(s, Compute | Store) for s in after):
        return None
    chain = [first]
    while any(carry.combine is None for carry in chain[-1].carries):
        if len(chain[-1].body.statements) != 1 or not isinstance(chain[-1].body.statements[0], For):
            return None
        inner = chain[-1].body.statements[0]
        handed = tuple(c.register for c in chain[-1].carries) == tuple(c.initial for c in inner.carries)
        if not handed or chain[-1].body.yields != inner.results:
            return None
        chain.append(inner)
    plain = all(isinstance(s, Load | Compute | Fault) for s in chain[-1].body.statements)
    known = all(isinstance(s.start, Constant) and isinstance(s.stop, Constant) and s.step == 1 for s in chain)
    constant = all(isinstance(carry.initial, Constant) for carry in chain[0].carries)
    return (chain, tuple(after)) if chain[-1].carries and plain and known and constant else None


class _Stream:
    """One loop being turned inside out."""

    def __init__(self, loop: For, chain: Sequence[For], after: tuple[Statement, ...], width: int, lanes: int) -> None:
        self.outer, self.chain, self.after, self.width, self.lanes = loop, chain, after, width, lanes
        self.columns = _trips(loop)
        self.carries = chain[-1].carries
        self.block = Register(I64, "block")
        self.buffers = [
            Buffer(f"sums{n}", carry.register.dtype, width, Space.LOCAL, written=True)
            for n, carry in enumerate(self.carries)
        ]
        self.count: Operand = index_constant(width) if self.columns % width == 0 else Register(I64, "count")

    def loop(self) -> For:
        """Return the loop over blocks of columns."""
        statements: list[Statement] = [*map(Alloc, self.buffers)]
        if isinstance(self.count, Register):
            first, rest = Register(I64, "first"), Register(I64, "rest")
            statements += [
                Compute(first, ScalarOp.MUL, (self.block, index_constant(self.width))),
                Compute(rest, ScalarOp.SUB, (index_constant(self.columns), first)),
                Compute(self.count, ScalarOp.MIN, (rest, index_constant(self.width))),
            ]
        statements += [self._start(), *self._rows(), self._finish()]
        blocks = index_constant(-(-self.columns // self.width))
        return For(self.block, index_constant(0), blocks, Block(tuple(statements)), LoopKind.PARALLEL)

    def _across(self, index: Register, statements: Sequence[Statement]) -> For:
        body = Block(tuple(statements))
        return For(index, index_constant(0), self.count, body, LoopKind.VECTOR, 1, self.lanes)

    def _start(self) -> For:
        index = Register(I64, "j")
        stores = []
        for buffer, carry in zip(self.buffers, self.carries, strict=True):
            assert carry.identity is not None, "a carry that combines has an identity"
            stores.append(Store(buffer, Address(0, ((index, 1),)), carry.identity))
        return self._across(index, stores)

    def _rows(self) -> tuple[Statement, ...]:
        innermost = self.chain[-1]
        count, statements = _trips(innermost), len(innermost.body.statements)
        times = _ROWS if statements <= _FEW_STATEMENTS and count >= _ROWS else 1
        whole = count - count % times
        parts = [(0, whole, times)] + [(whole, count, 1)] * (whole < count)
        rows: tuple[Statement, ...] = tuple(self._some_rows(*part) for part in parts)
        for loop in reversed(self.chain[:-1]):
            rows = (replace(loop, body=Block(rows), kind=LoopKind.SERIAL, carries=(), results=()),)
        return rows

    def _some_rows(self, start: int, stop: int, times: int) -> For:
        """Return a loop over rows that adds `times` of them at once to every column, in order."""
        innermost, index, row = self.chain[-1], Register(I64, "j"), Register(I64, self.chain[-1].index.name)
        own = Address(0, ((index, 1),))
        sums: list[Operand] = [Register(c.register.dtype, c.register.name) for c in self.carries]
        statements: list[Statement] = []
        for total, buffer in zip(sums, self.buffers, strict=True):
            assert isinstance(total, Register)
            statements.append(Load(total, buffer, own))
        for number in range(times):
            names = dict(zip((c.register for c in self.carries), sums, strict=True))
            statements += _at_row(innermost, row, number, names)
            sums = [names.get(y, y) if isinstance(y, Register) else y for y in innermost.body.yields]
        statements += [Store(b, own, total) for b, total in zip(self.buffers, sums, strict=True)]
        body = Block(_with_shared_before(self._across(index, self._placed(index, statements))))
        return For(row, index_constant(start), index_constant(stop), body, LoopKind.SERIAL, times)

    def _finish(self) -> For:
        index = Register(I64, "j")
        statements: list[Statement] = []
        ends: Sequence[tuple[Carry, Register]] = list(zip(self.chain[0].carries, self.chain[0].results, strict=True))
        for buffer, carry, (entry, result) in zip(self.buffers, self.carries, ends, strict=True):
            assert carry.combine is not None
            joined = Register(buffer.dtype, "joined")
            statements.append(Load(joined, buffer, Address(0, ((index, 1),))))
            statements.append(Compute(result, carry.combine, (entry.initial, joined)))
        return self._across(index, [*statements, *self._placed(index, self.after)])

    def _placed(self, index: Register, statements: Sequence[Statement]) -> list[Statement]:
        """Return the statements for column block * width + index."""
        column = self.outer.index
        moved: list[Statement] = []
        renamed: Register = column
        if any(column in operands_of(s) for s in statements_of(Block(tuple(statements)))):
            first, renamed = Register(I64, "first"), Register(I64, "column")
            moved.append(Compute(first, ScalarOp.MUL, (self.block, index_constant(self.width))))
            moved.append(Compute(renamed, ScalarOp.ADD, (index, first)))
        for s in statements:
            moved.append(_renamed(s, column, renamed, ((index, 1), (self.block, self.width))))
        return moved


def _with_shared_before(loop: For) -> tuple[Statement, ...]:
    """Return the loop with its column-invariant loads and computations hoisted before it."""
    varying = varying_registers(loop)
    shared = [s for s in loop.body.statements if isinstance(s, Load | Compute) and s.result not in varying]
    own = tuple(s for s in loop.body.statements if s not in shared)
    return (*shared, replace(loop, body=Block(own)))


def _at_row(loop: For, row: Register, number: int, names: dict[Register, Operand]) -> list[Statement]:
    """Return a loop's statements at index row + number, with fresh registers. names: carries, extended in place."""
    statements: list[Statement] = []
    if any(loop.index in operands_of(s) for s in loop.body.statements):
        at = Register(I64, loop.index.name)
        statements.append(Compute(at, ScalarOp.ADD, (row, index_constant(number))))
        names[loop.index] = at

    def value(operand: Operand) -> Operand:
        return names.get(operand, operand) if isinstance(operand, Register) else operand

    def fresh(register: Register) -> Register:
        copy = names[register] = Register(register.dtype, register.name, register)
        return copy

    def address(a: Address) -> Address:
        shift = number * sum(c for r, c in a.terms if r is loop.index)
        terms = [(row if r is loop.index else value(r), c) for r, c in a.terms]
        return Address(a.constant + shift, tuple((r, c) for r, c in terms if isinstance(r, Register)))

    for s in loop.body.statements:
        match s:
            case Compute() | Load():
                statements.append(replace(with_operands(s, value, address), result=fresh(s.result)))
            case Fault():
                statements.append(with_operands(s, value, address))
            case _:
                raise AssertionError(s)
    return statements


def _renamed(s: Statement, old: Register, new: Register, place: tuple[tuple[Register, int], ...]) -> Statement:
    """Return the statement with `new` for the value of `old`, and `place` for it in addresses."""
    assert isinstance(s, Compute | Load | Store | Fault)

    def value(operand: Operand) -> Operand:
        return new if operand is old else operand

    def address(a: Address) -> Address:
        return Address(a.constant, tuple((q, c * k) for r, c in a.terms for q, k in (place if r is old else ((r, 1),))))

    return with_operands(s, value, address)
