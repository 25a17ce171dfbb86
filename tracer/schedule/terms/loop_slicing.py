"""Loops over a part of their range: the same body, its index counted from the start of the part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Block,
    Compute,
    For,
    Load,
    Operand,
    Register,
    Statement,
    Store,
    Update,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.walk import blocks_of, operands_of, statements_of, with_statements
from tracer.ir.scalar import ScalarOp


def moved(loop: For, start: Address, stop: Operand) -> For:
    """Return the loop over range(start, start + stop), its index counting from 0. `start` has one term at most."""
    index = Register(I64, loop.index.name)
    body = _with_index(loop.body, loop.index, index, start)
    if loop.index in set(_values(loop.body)):
        body = Block((*_position(loop.index, index, start), *body.statements), body.yields)
    return replace(loop, index=index, stop=stop, body=body)


def _position(position: Register, index: Register, start: Address) -> list[Statement]:
    """Return the statements of position = start + index, for readers of its value."""
    if not start.terms:
        return [Compute(position, ScalarOp.ADD, (index, index_constant(start.constant)))]
    ((register, coefficient),) = start.terms
    scaled = Register(I64, "scaled")
    shift = Compute(scaled, ScalarOp.MUL, (register, index_constant(coefficient)))
    return [shift, Compute(position, ScalarOp.ADD, (index, scaled))]


def _values(block: Block) -> Iterator[Operand]:
    """Yield the operands that the block reads other than in addresses."""
    for s in statements_of(block):
        yield from operands_of(s)
        for inner in blocks_of(s):
            yield from inner.yields
    yield from block.yields


def _with_index(block: Block, old: Register, new: Register, start: Address) -> Block:
    """Return the block with start + new for `old` in its addresses."""

    def shifted(address: Address) -> Address:
        coefficient = next((c for r, c in address.terms if r is old), 0)
        if not coefficient:
            return address
        kept = tuple((r, c) for r, c in address.terms if r is not old)
        added = ((new, coefficient), *((r, c * coefficient) for r, c in start.terms))
        return Address(address.constant + start.constant * coefficient, (*kept, *added))

    def changed(s: Statement) -> Sequence[Statement]:
        return (replace(s, address=shifted(s.address)) if isinstance(s, Load | Store | Update) else s,)

    return with_statements(block, changed)
