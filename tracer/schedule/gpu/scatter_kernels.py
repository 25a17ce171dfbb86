"""Scatters on a GPU: every memory cell belongs to one thread, which applies its updates in order.

Threads share the windows' elements, and the destinations: of P parts, a power of two, part p has the destinations
p, p + P, p + 2P, ... Each thread walks all updates and applies the ones to its part. So the order of updates to a cell
is the program's, as on a CPU: sums have its bits, and of several values that are set the last one stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Block,
    Compute,
    Fault,
    For,
    If,
    Load,
    LoopKind,
    Operand,
    Register,
    Statement,
    Store,
    Update,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.build import Builder, address
from tracer.ir.loop.walk import accesses_of, operands_of, results_of
from tracer.ir.scalar import ScalarOp
from tracer.schedule.gpu.threads import Axes, trips

_THREADS: Final = 1 << 14  # of a kernel: some blocks for each multiprocessor of a large GPU


@dataclass(frozen=True, slots=True)
class Scatter:
    """A nest that writes where data say. batch: loops around whose iterations are independent. updates: loops in order.

    window: loops within, whose iterations write different cells. span: cells of a window.
    """

    batch: tuple[For, ...]
    updates: tuple[For, ...]
    window: tuple[For, ...]
    span: int
    statements: tuple[Statement, ...]
    write: Update | Store


def scatter_of(body: Block) -> Scatter | None:
    """Return a nest as a scatter, or None for other nests."""
    loops: list[For] = []
    statements = body.statements
    while len(statements) == 1 and isinstance(statements[0], For) and not statements[0].carries:
        loops.append(statements[0])
        statements = statements[0].body.statements
    if not loops or not statements or any(trips(loop) < 0 for loop in loops):
        return None
    statements, part = _with_one_write(statements)
    loops += part
    *others, write = statements
    simple = all(isinstance(s, Compute | Load | Fault) for s in others)
    if not simple or not isinstance(write, Update | Store):
        return None
    if any(b is write.buffer for s in others for b, _, _ in accesses_of(s)):
        return None
    order = [n for n, loop in enumerate(loops) if loop.kind is LoopKind.SERIAL]
    if not order:
        return None
    batch, updates, window = loops[: order[0]], loops[order[0] : order[-1] + 1], loops[order[-1] + 1 :]
    span = _span(write.address, window)
    return Scatter(tuple(batch), tuple(updates), tuple(window), span, tuple(others), write) if span else None


def _with_one_write(statements: tuple[Statement, ...]) -> tuple[tuple[Statement, ...], Sequence[For]]:
    """Return statements with one write, in a loop over parts, in the place of the two of a complex number."""
    if len(statements) < 2:
        return statements, ()
    *others, first, second = statements
    if not isinstance(first, Update | Store) or second != replace(
        first, address=replace(first.address, constant=first.address.constant + 1), value=_value_of(second)
    ):
        return statements, ()
    b, part = Builder(), Register(I64, "part")
    value = b.select(b.compute(ScalarOp.EQ, part, 0), first.value, _value_of(second))
    write = replace(first, address=address(first.address, part), value=value)
    loop = For(part, index_constant(0), index_constant(2), Block(()), LoopKind.PARALLEL)
    return (*others, *b.finish().statements, write), (loop,)


def _value_of(s: Statement) -> Operand:
    return s.value if isinstance(s, Update | Store) else index_constant(0)


def _span(place: Address, window: Sequence[For]) -> int:
    """Return the cells of a window if windows either coincide or lie apart, else 0."""
    steps, span = dict(place.terms), 1
    for loop in sorted(window, key=lambda loop: steps.get(loop.index, 0)):
        if steps.get(loop.index) != span:
            return 0
        span *= trips(loop)
    inner = {loop.index for loop in window}
    apart = all(c % span == 0 for r, c in place.terms if r not in inner)
    return span if apart and place.constant % span == 0 else 0


def scattered(s: Scatter) -> tuple[Axes, Sequence[Statement]]:
    """Return the independent axes of a scatter's kernel, and the statements of each of their elements."""
    loops = (*s.batch, *s.window)
    count = prod(trips(loop) for loop in loops)
    destinations = s.write.buffer.size // max(s.span * prod(trips(loop) for loop in s.batch), 1)
    parts = 1
    while 2 * parts * max(count, 1) <= _THREADS and 2 * parts <= destinations:
        parts *= 2
    part = Register(I64, "part")
    order = (*s.batch, None, *s.window) if parts > 1 else loops
    axes = Axes(
        tuple(part if loop is None else loop.index for loop in order),
        tuple(parts if loop is None else trips(loop) for loop in order),
    )
    body = Block(tuple(_update(s, part, parts)))
    for loop in reversed(s.updates):
        body = Block((For(loop.index, loop.start, loop.stop, body, LoopKind.SERIAL, loop.step),))
    return axes, body.statements


def _update(s: Scatter, part: Register, parts: int) -> list[Statement]:
    """Return the statements of one update, which find its cell and are applied if the cell is the thread's."""
    write = s.write
    applied: list[Statement] = []
    if isinstance(write, Update):
        old, new = Register(write.buffer.dtype, "old"), Register(write.buffer.dtype, "new")
        applied += [Load(old, write.buffer, write.address, write.mask), Compute(new, write.op, (old, write.value))]
        applied.append(Store(write.buffer, write.address, new, write.mask))
    else:
        applied.append(write)
    if parts == 1:
        return [*s.statements, *applied]
    finding, rest = sliced(s)
    b = Builder()
    inner = {loop.index for loop in s.window}
    destination: Operand | None = None
    for register, step in write.address.terms:
        if register in inner:
            continue
        term = b.compute(ScalarOp.MUL, register, step // s.span)
        destination = term if destination is None else b.compute(ScalarOp.ADD, destination, term)
    assert destination is not None
    own = b.compute(ScalarOp.EQ, b.compute(ScalarOp.AND, destination, parts - 1), part, name="own")
    return [*finding, *b.finish().statements, If(own, Block((*rest, *applied)))]


def sliced(s: Scatter, *values: Operand | None) -> tuple[list[Statement], list[Statement]]:
    """Return the statements on which the cell and some values depend, with checks, and all further ones."""
    needed = {*(r for r, _ in s.write.address.terms), *(v for v in values if isinstance(v, Register))}
    finding: list[Statement] = []
    rest: list[Statement] = []
    for statement in reversed(s.statements):
        if isinstance(statement, Fault) or needed.intersection(results_of(statement)):
            finding.insert(0, statement)
            needed.update(o for o in operands_of(statement) if isinstance(o, Register))
            needed.update(r for _, address, _ in accesses_of(statement) for r, _ in address.terms)
        else:
            rest.insert(0, statement)
    return finding, rest
