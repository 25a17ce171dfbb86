"""Columns on a GPU: reductions along an outer axis, read as memory lies.

A block takes a tile of W neighbouring columns, with G = 256 // W threads each:

1. thread g of a column joins rows g, g + G, g + 2G, ... in this order, starting from the operation's identity;
2. through shared memory, the column's first thread joins the G totals in order;
3. the reduction's initial value comes in from the left.

Neighbouring threads read neighbouring columns, so that each row of a tile is read at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import reduce
from math import prod
from typing import Final

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Block,
    Buffer,
    Carry,
    Compute,
    For,
    Load,
    LoopKind,
    Operand,
    Register,
    Space,
    Statement,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.build import Builder
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.row_programs import Phase, RowProgram
from tracer.schedule.gpu.threads import WARP, Axes, in_thread

_THREADS: Final = 256
_WIDEST: Final = 128  # columns that one tile takes all of, so that rows follow each other without a gap


def tile_width(columns: int) -> int:
    """Return the columns of a tile."""
    return max(columns, 1) if columns <= _WIDEST else WARP


def tiles_of(axes: Axes) -> int:
    """Return the number of tiles: blocks of the kernel."""
    return prod(axes.sizes[:-1]) * -(-axes.sizes[-1] // tile_width(axes.sizes[-1]))


def map_columns(axes: Axes, program: RowProgram, loads: Sequence[Statement] = ()) -> Block:
    """Return a kernel with one block of threads for each tile of columns."""
    at = next(i for i, step in enumerate(program.steps) if isinstance(step, Phase))
    before, after = (_plain(steps) for steps in (program.steps[:at], program.steps[at + 1 :]))
    phase, columns = program.phases[0], axes.sizes[-1]
    width = tile_width(columns)
    groups, across = _THREADS // width, -(-columns // width)
    threads = -(-groups * width // WARP) * WARP
    carries = phase.loops[-1].carries
    b = Builder()
    with b.for_("b", 0, tiles_of(axes), kind=LoopKind.BLOCK) as block:
        outer: Operand = block.index
        tile: Operand = block.index if across > 1 else index_constant(0)
        if across > 1 and len(axes.sizes) > 1:
            tile = b.compute(ScalarOp.IREM, block.index, across, name="tile")
            outer = b.compute(ScalarOp.IDIV, block.index, across, name="outer")
        names = dict(Axes(axes.registers[:-1], axes.sizes[:-1]).locate(b, outer))
        first = b.compute(ScalarOp.MUL, tile, width, name="first")
        shared = [
            b.alloc(Buffer(f"s{n}", c.register.dtype, threads, Space.SHARED, written=True))
            for n, c in enumerate(carries)
        ]
        with b.for_("t", 0, threads, kind=LoopKind.THREAD) as thread:
            for load in loads:
                b.add(load)
            group = b.compute(ScalarOp.IDIV, thread.index, width, name="group")
            within = b.compute(ScalarOp.IREM, thread.index, width, name="within")
            column = b.compute(ScalarOp.ADD, first, within, name="column")
            checks = [(column, columns)] if across * width > columns else []
            checks += [(group, groups)] if groups * width < threads else []
            inside: list[Operand] = [b.compute(ScalarOp.LT, found, limit, name="inside") for found, limit in checks]
            names[axes.registers[-1]] = column
            with _where(b, inside):
                own = _with_copies(b, before, names)
                for buffer, part in zip(shared, _partial(b, phase, own, group, groups), strict=True):
                    b.store(buffer, thread.index, part)
            b.barrier()
            with _where(b, [*inside[: across * width > columns], b.compute(ScalarOp.EQ, group, 0)]):
                _add(b, before, names)
                _join(b, phase, names, shared, (within, width, groups))
                _add(b, after, names)
    return b.finish()


def _where(b: Builder, checks: Sequence[Operand]) -> AbstractContextManager[object]:
    """Open a branch where all checks hold."""
    if not checks:
        return nullcontext()
    return b.if_(reduce(lambda x, y: b.compute(ScalarOp.AND, x, y), checks))


def _plain(steps: Sequence[Statement | Phase]) -> list[Statement]:
    return [step for step in steps if not isinstance(step, Phase)]


def _add(b: Builder, statements: Sequence[Statement], names: dict[Register, Operand]) -> None:
    for s in in_thread(statements, names):
        b.add(s)


def _with_copies(
    b: Builder, statements: Sequence[Statement], names: dict[Register, Operand]
) -> dict[Register, Operand]:
    """Write statements with results of their own, since they are written twice. Return the names with them."""
    own = dict(names)
    for s in statements:
        for found in in_thread((s,), own):
            if isinstance(found, Compute | Load):
                own[found.result] = result = Register(found.result.dtype, found.result.name)
                b.add(replace(found, result=result))
            else:
                b.add(found)
    return own


def _partial(
    b: Builder, phase: Phase, names: dict[Register, Operand], group: Operand, groups: int
) -> tuple[Register, ...]:
    """Write step 1: a thread's share of its column."""
    innermost = phase.loops[-1]
    index = innermost.index if len(phase.loops) == 1 else Register(I64, "k")
    carries = tuple(Carry(c.register, c.identity) for c in innermost.carries if c.identity is not None)
    results = tuple(Register(c.register.dtype, "part") for c in carries)
    inner = Builder()
    within = {**names, **phase.axes.locate(inner, index)}
    _add(inner, innermost.body.statements, within)
    yields = [within.get(v, v) if isinstance(v, Register) else v for v in innermost.body.yields]
    length = index_constant(phase.length)
    b.add(For(index, group, length, inner.finish(*yields), LoopKind.SERIAL, groups, 1, carries, results))
    return results


def _join(
    b: Builder, phase: Phase, names: dict[Register, Operand], shared: Sequence[Buffer], tile: tuple[Operand, int, int]
) -> None:
    """Write steps 2 and 3. tile: the column within it, its width, and the threads of a column."""
    within, width, groups = tile
    carries, outermost = phase.loops[-1].carries, phase.loops[0]
    totals: list[Operand] = [b.load(buffer, within) for buffer in shared]
    if groups > 1:
        sums = [Carry(Register(c.register.dtype, "sum"), total) for c, total in zip(carries, totals, strict=True)]
        with b.for_("g", 1, groups, carries=sums) as loop:
            place = b.compute(ScalarOp.ADD, b.compute(ScalarOp.MUL, loop.index, width), within)
            joined = []
            for carry, so_far, buffer in zip(carries, loop.carries, shared, strict=True):
                assert carry.combine is not None
                joined.append(b.apply(carry.combine, so_far, b.load(buffer, place)))
            loop.yields(*joined)
        totals = list(loop.results)
    for start, carry, result, total in zip(outermost.carries, carries, outermost.results, totals, strict=True):
        assert carry.combine is not None
        initial = names.get(start.initial, start.initial) if isinstance(start.initial, Register) else start.initial
        b.add(Compute(result, carry.combine, (initial, total)))
