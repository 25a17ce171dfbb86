"""Cumulative operations on a CPU, a stretch at a time: rows in vector lanes, columns as a stream of rows.

A stretch is the part of the axis that one function processes in order. It is all of a short axis, else a tile (see
`cumulative_tiles`). Lanes and tiles follow from shape and dtype and belong to the meaning of the result. Cumulative
sums of non-negative values never decrease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Final

from tracer.ir import dtypes
from tracer.ir.loop import Buffer, Carry, LoopKind, Operand, Register, Space
from tracer.ir.loop.build import Builder
from tracer.ir.program import Equation
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType
from tracer.schedule.elements.pointwise import convert
from tracer.schedule.loops.minmax_keys import from_key, is_keyed, key_of
from tracer.schedule.terms.affine import ZERO, Affine, Flat, Index, flatten, of_register, plus, scaled, shifted
from tracer.schedule.terms.value_locations import Element, Memory
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter
from tracer.schedule.write.serial_reductions import join, start_of

_ROW_BYTES: Final = 64  # of the lanes along a row: belongs to the meaning of a result
_MAX_LANES: Final = 16  # of a row: 64 lanes of one byte would be shuffled six times
_ROWS: Final = 4  # rows that one iteration combines with the results before them

Place = tuple[Affine, Affine]
"""Where an element is along the axis, and in the row behind it."""
Sink = Callable[[Place, Element], None]
"""Takes what came out at a place."""


class Cumulative:
    """One cumulative operation and its parts in loop IR.

    outer, length, inner: the array as rows of `length` rows of `inner`. wide: dtype of the carries, `parts` of them."""

    def __init__(self, writer: BlockWriter, equation: Equation, op: ScalarOp) -> None:
        self.writer, self.equation, self.op = writer, equation, op
        self.machine = writer.module.target.machine
        (self.variable,), (self.operand,) = equation.outputs, equation.inputs
        type = self.variable.type
        assert isinstance(type, ArrayType)
        axis = equation.params["axis"]
        self.reverse = equation.params.get("reverse", False)
        self.shape = type.shape
        self.around, self.length, self.behind = type.shape[:axis], type.shape[axis], type.shape[axis + 1 :]
        self.outer, self.inner = prod(self.around), prod(self.behind)
        self.target = writer.target_of(self.variable)
        self.dtype = self.target.buffer.dtype
        self.parts = 2 if dtypes.is_complex(type.dtype) else 1
        self.wide = dtypes.accumulator_dtype(self.dtype)
        self.start = start_of(op, self.wide, self.parts)

    @property
    def associates(self) -> bool:
        """Whether parts may be joined on their own: products of floats might overflow there, and the whole not."""
        return self.op is not ScalarOp.MUL or not dtypes.is_float(self.wide)

    @property
    def lanes(self) -> int:
        """Of a row; 1 where its elements follow one another."""
        in_order = self.parts > 1 or dtypes.is_bool(self.wide) or not self.associates
        return 1 if in_order else min(_ROW_BYTES // self.wide.itemsize, _MAX_LANES)

    @property
    def column_lanes(self) -> int:
        """Of a row of columns."""
        return max(1, self.machine.vector_bytes // self.wide.itemsize)

    def element(self, f: FunctionWriter, around: Sequence[Affine], along: Affine, behind: Affine) -> Element:
        """Return an element of the operand, widened."""
        return tuple(
            convert(f.builder, x, self.wide) for x in f.element(self.operand, self._index(around, along, behind))
        )

    def join(self, f: FunctionWriter, x: Element, y: Element) -> Element:
        return join(f.builder, self.op, x, y)

    def store(
        self, f: FunctionWriter, result: Memory, around: Sequence[Affine], at: tuple[Affine, Affine], x: Element
    ) -> None:
        """Store x at result[around, at]."""
        narrow = tuple(convert(f.builder, part, self.dtype) for part in x)
        f.store_at(result, self._position(around, *at), narrow)

    def _along(self, along: Affine) -> Affine:
        return shifted(scaled(along, -1), self.length - 1) if self.reverse else along

    def _position(self, around: Sequence[Affine], along: Affine, behind: Affine) -> Affine:
        row = plus(scaled(flatten(around, self.around), self.length), self._along(along))
        return plus(scaled(row, self.inner), behind)

    def _index(self, around: Sequence[Affine], along: Affine, behind: Affine) -> Index:
        if sum(n != 1 for n in self.behind) > 1:
            return Flat(self._position(around, along, behind), self.shape)
        return (*around, self._along(along), *(ZERO if n == 1 else behind for n in self.behind))

    # -- stretches -------------------------------------------------------------------------------------------------

    def row(
        self,
        f: FunctionWriter,
        around: Sequence[Affine],
        first: Affine,
        count: Operand | int,
        most: int,
        sink: Sink,
        start: Element = (),
    ) -> Element:
        """Write `count` elements of a row from `first` on, `most` at most, and return the last result.

        start: the total before.
        """
        b, lanes, keyed = f.builder, self.lanes, self.lanes > 1 and is_keyed(self.op, self.wide)
        start = start or tuple(self.start)
        start = tuple(key_of(b, self.op, x) for x in start) if keyed else start
        carries = [Carry(Register(x.dtype, "before"), x) for x in start]
        kind = LoopKind.VECTOR if lanes > 1 else LoopKind.SERIAL
        loop = b.for_("k", 0, count, kind=kind, lanes=lanes, carries=carries)
        with loop:
            f.extents[loop.index] = most
            along = plus(first, of_register(loop.index))
            x = self.element(f, around, along, ZERO)
            if lanes > 1:
                x = (key_of(b, self.op, x[0]),) if keyed else x
                shown: Element
                so_far, last = b.prefix(self.op, x[0], loop.carries[0])
                shown = self._of_keys(b, (so_far,)) if keyed else (so_far,)
                yielded: Element = (last,)
            else:
                shown = yielded = self.join(f, loop.carries, x)
            sink((along, ZERO), shown)
            loop.yields(*yielded)
        return self._of_keys(b, loop.results) if keyed else loop.results

    def _of_keys(self, b: Builder, keys: Sequence[Register]) -> Element:
        """Return the floats of keys."""
        results = tuple(Register(self.wide, "found") for _ in keys)
        for key, result in zip(keys, results, strict=True):
            b.add(from_key(b, self.op, key, result))
        return results

    def columns(
        self,
        f: FunctionWriter,
        around: Sequence[Affine],
        first: tuple[Affine, Affine],
        counts: tuple[Operand | int, Operand | int],
        most: tuple[int, int],
        sink: Sink,
    ) -> Callable[[Affine], Element]:
        """Write `count` rows of columns from `first` on. Return a function that loads the last result of a column."""
        b, (begin, left), (rows, width) = f.builder, first, counts
        before = [
            b.alloc(Buffer(f"before{n}", self.wide, most[1], Space.LOCAL, written=True)) for n in range(self.parts)
        ]
        lanes = self.column_lanes
        with b.for_("j", 0, width, kind=LoopKind.VECTOR, lanes=lanes) as loop:
            for buffer, x in zip(before, self.start, strict=True):
                b.store(buffer, loop.index, x)

        def some(start: Operand | int, stop: Operand | int, times: int) -> None:
            with b.for_("row", start, stop, step=times) as row:
                f.extents[row.index] = most[0]
                with b.for_("j", 0, width, kind=LoopKind.VECTOR, lanes=lanes) as across:
                    f.extents[across.index] = most[1]
                    behind = plus(left, of_register(across.index))
                    so_far: Element = tuple(b.load(buffer, across.index) for buffer in before)
                    for number in range(times):
                        along = shifted(plus(begin, of_register(row.index)), number)
                        so_far = self.join(f, so_far, self.element(f, around, along, behind))
                        sink((along, behind), so_far)
                    for buffer, x in zip(before, so_far, strict=True):
                        b.store(buffer, across.index, x)

        if isinstance(rows, int):
            whole: Operand | int = rows - rows % _ROWS
            if whole:
                some(0, whole, _ROWS)
            if rows % _ROWS:
                some(whole, rows, 1)
        else:
            whole = b.compute(ScalarOp.AND, rows, -_ROWS)
            some(0, whole, _ROWS)
            some(whole, rows, 1)
        return lambda j: tuple(b.load(buffer, j) for buffer in before)

    # -- the whole at once -----------------------------------------------------------------------------------------

    def in_rows(self) -> None:
        """Write rows that threads may share, each from its first to its last element."""
        f = FunctionWriter(self.writer)
        result = f.memory(self.target, written=True)
        with f.loops(self.around, LoopKind.PARALLEL) as around:
            self.row(f, around, ZERO, self.length, self.length, partial(self.store, f, result, around))
        f.invoke()

    def in_columns(self) -> None:
        """Write blocks of columns that threads may share, row after row."""
        f = FunctionWriter(self.writer)
        b, result = f.builder, f.memory(self.target, written=True)
        lanes = self.column_lanes
        width = min(self.inner, self.machine.first_cache // 4 // self.wide.itemsize)
        width = max(min(width, -(-self.inner // (2 * lanes)) * lanes), 1)  # two blocks at least, for two threads
        blocks = -(-self.inner // width)
        with f.loops((*self.around, blocks), LoopKind.PARALLEL) as (*around, block):
            left = scaled(block, width)
            count: Operand | int = width
            if self.inner % width:
                ((register, _),) = block.terms
                rest = b.compute(ScalarOp.SUB, self.inner, b.compute(ScalarOp.MUL, register, width))
                count = b.compute(ScalarOp.MIN, rest, width)
            sink = partial(self.store, f, result, around)
            self.columns(f, around, (ZERO, left), (self.length, count), (self.length, width), sink)
        f.invoke()
