"""Loops whose iterations must store in order: index and value in lanes, then the stores one lane after another.

Iterations of a scatter may write the same element, but their indices and values are independent. So a block of
iterations runs in lanes. Its single store or update comes last, in order of the lanes, as `Store` and `Update` in a
vector loop are defined.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Block,
    Compute,
    Constant,
    Fault,
    For,
    Load,
    LoopKind,
    Operand,
    Register,
    Statement,
    Store,
    Update,
    index_constant,
)  # fmt: skip
from tracer.ir.scalar import ScalarOp
from tracer.schedule.terms.loop_slicing import moved

LANES: Final = 16


def in_order(loop: For) -> For:
    """Return a loop that stores in order as one over blocks of lanes."""
    length, block = int(loop.stop.value), Register(I64, "block")  # type: ignore[union-attr]  # see stores_in_order
    statements: list[Statement] = []
    count: Operand = index_constant(LANES)
    if length % LANES:
        begin, rest, count = (Register(I64, name) for name in ("first", "rest", "count"))
        statements += [
            Compute(begin, ScalarOp.MUL, (block, index_constant(LANES))),
            Compute(rest, ScalarOp.SUB, (index_constant(length), begin)),
            Compute(count, ScalarOp.MIN, (rest, index_constant(LANES))),
        ]
    lanes = replace(loop, kind=LoopKind.VECTOR, lanes=LANES)
    statements.append(moved(lanes, Address(0, ((block, LANES),)), count))
    return For(block, index_constant(0), index_constant(-(-length // LANES)), Block(tuple(statements)))


def stores_in_order(loop: For) -> bool:
    """Whether a serial loop computes and then stores once, to a buffer that it does not read."""
    counted = loop.start == index_constant(0) and isinstance(loop.stop, Constant) and loop.step == 1
    if loop.kind is not LoopKind.SERIAL or not counted or loop.carries or not loop.body.statements:
        return False
    *before, last = loop.body.statements
    if not isinstance(last, Store | Update) or int(loop.stop.value) < LANES:  # type: ignore[union-attr]  # counted
        return False
    read = [s.buffer for s in before if isinstance(s, Load)]
    return all(isinstance(s, Compute | Load | Fault) for s in before) and last.buffer not in read
