"""Large results stored past the caches: a vector loop that stores whole lines, in interleaved streams.

A core prefetches neighbouring lines up to the end of a page, one page after another. Streams that lie pages apart let
it prefetch several pages at once. Vectors begin at lines of the result, except the first and last. Elements and their
computation are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tracer.ir.loop import (
    Address,
    Block,
    Constant,
    For,
    Load,
    Operand,
    Register,
    Statement,
    Store,
    Update,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.build import Builder
from tracer.ir.loop.walk import statements_of
from tracer.ir.scalar import ScalarOp
from tracer.ir.target import Machine
from tracer.schedule.terms.loop_slicing import moved

MIN_ROW: Final = 3 << 10
"""Bytes of a row that is stored so: its first and last lines are fetched, and other rows have theirs."""


def fits(loop: For, stores: Sequence[Store], least: int, machine: Machine) -> bool:
    """Whether iterations of a vector loop may run in any order, and twice, and store at least `least` bytes."""
    statements = list(statements_of(loop.body))
    read = {s.buffer for s in statements if isinstance(s, Load)}
    written = {s.buffer for s in statements if isinstance(s, Store)}
    plain = not loop.carries and not read & written and not any(isinstance(s, Update) for s in statements)
    if not plain or not isinstance(loop.stop, Constant):
        return False
    length, itemsize = int(loop.stop.value), max(s.buffer.dtype.itemsize for s in stores)
    return length * itemsize >= least and length >= lanes_of(loop, stores, machine)


def lanes_of(loop: For, stores: Sequence[Store], machine: Machine) -> int:
    """Return the lanes that store at least a whole line to each result."""
    return max(loop.lanes, *(machine.line_bytes // s.buffer.dtype.itemsize for s in stores))


def on_lines(loop: For, stores: Sequence[Store], machine: Machine) -> bool:
    """Whether every vector that is stored fills lines, if the results begin at one."""
    return all(
        n * s.buffer.dtype.itemsize % machine.line_bytes == 0
        for s in stores
        for n in (loop.lanes, s.address.constant, *(c for r, c in s.address.terms if r is not loop.index))
    )


def past_caches(loop: For, stores: Sequence[Store]) -> For:
    """Return the loop with these stores past the caches."""
    statements = tuple(
        replace(s, past=True) if isinstance(s, Store) and s in stores else s for s in loop.body.statements
    )
    return replace(loop, body=Block(statements, loop.body.yields))


def in_streams(
    loop: For, stores: Sequence[Store], begins: int, length: Operand, page: int, machine: Machine
) -> Sequence[Statement]:
    """Return a vector loop over `length` elements, which `fits`, with stores past the caches.

    Vectors of the first store fill lines. begins: offset of its result from a line, in elements. page: min bytes of a
    stream.
    """
    b, first = Builder(), stores[0]
    lanes, line = lanes_of(loop, stores, machine), machine.line_bytes // first.buffer.dtype.itemsize
    loop = past_caches(replace(loop, lanes=lanes), stores)
    before: Operand = index_constant((first.address.constant + begins) % line)
    for register, coefficient in first.address.terms:
        if register is not loop.index and coefficient % line:
            before = b.compute(ScalarOp.ADD, before, b.compute(ScalarOp.MUL, register, coefficient % line))
    most = line - 1
    if isinstance(before, Constant):
        most = int(before.value)
    else:
        before = b.compute(ScalarOp.AND, before, line - 1)
    exact = False
    least = int(length.value) if isinstance(length, Constant) else 0
    if least:
        times = _times(loop, least * first.buffer.dtype.itemsize, page, machine)
        rows: Operand = index_constant(-(-(least + most) // (times * lanes)))
        exact = most == 0 and least % (times * lanes) == 0
    else:
        times = machine.streams[0] if _reads_along(loop) else 1
        more = b.compute(ScalarOp.ADD, length, most + times * lanes - 1)
        rows = b.compute(ScalarOp.SHR_LOGICAL, more, (times * lanes).bit_length() - 1)
    width, last = b.compute(ScalarOp.MUL, rows, lanes), b.compute(ScalarOp.SUB, length, lanes)
    with b.for_("row", 0, rows) as row, b.for_("stream", 0, times) as stream:
        far, near = b.compute(ScalarOp.MUL, stream.index, width), b.compute(ScalarOp.MUL, row.index, lanes)
        start = b.compute(ScalarOp.SUB, b.compute(ScalarOp.ADD, far, near), before)
        start = start if most == 0 else b.compute(ScalarOp.MAX, start, 0)
        start = start if exact else b.compute(ScalarOp.MIN, start, last)
        assert isinstance(start, Register)
        b.add(moved(loop, Address(0, ((start, 1),)), index_constant(lanes)))
    return b.finish().statements


def _reads_along(loop: For) -> bool:
    return any(isinstance(s, Load) and loop.index in dict(s.address.terms) for s in loop.body.statements)


def _times(loop: For, size: int, page: int, machine: Machine) -> int:
    """Return the number of streams, as many as are a page long, one where nothing is read."""
    return next((n for n in machine.streams if size >= n * page and _reads_along(loop)), 1)
