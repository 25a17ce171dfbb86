"""Reductions along short rows: rows become the lanes, and the reduced loop is written out.

Partial results are joined by halving, as a vector loop joins its lanes, so every bit is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tracer.ir.loop import (
    Address,
    Block,
    Compute,
    Constant,
    For,
    Load,
    LoopKind,
    Operand,
    Register,
    Statement,
    Store,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.walk import statements_of, with_operands
from tracer.ir.scalar import ScalarOp
from tracer.ir.target import Machine
from tracer.schedule.terms.cost_model import statements_written_out, trips

_MAX_ELEMENTS: Final = 8  # elements of a row, and of the distance from one lane to the next
_MAX_STATEMENTS: Final = 64  # of one row, written out


def with_rows_in_lanes(loop: For, machine: Machine) -> For | None:
    """Return a parallel loop over short rows with their reductions written out, or None for other loops."""
    inner = [s for s in loop.body.statements if isinstance(s, For)]
    if loop.kind is not LoopKind.PARALLEL or not inner or trips(loop) < machine.lane_rows:
        return None
    if not all(isinstance(s, For | Compute | Load | Store) for s in loop.body.statements):
        return None
    if not all(_is_short(s, loop.index) for s in inner) or _reads_its_stores(loop):
        return None
    if sum(trips(s) * statements_written_out(s.body.statements) for s in inner) > _MAX_STATEMENTS:
        return None
    written: list[Statement] = []
    for s in loop.body.statements:
        written += _written_out(s) if isinstance(s, For) else [s]
    return replace(loop, body=Block(tuple(written)))


def _is_short(loop: For, row: Register) -> bool:
    """Whether a loop reduces a few elements, close in memory to the elements of the next row."""
    known = loop.start == index_constant(0) and isinstance(loop.stop, Constant) and loop.step == 1
    if not known or not loop.carries or not 1 < trips(loop) <= _MAX_ELEMENTS:
        return False
    reduces = all(carry.combine is not None and carry.identity is not None for carry in loop.carries)
    plain = all(isinstance(s, Load | Compute | Store) for s in loop.body.statements)
    return reduces and plain and all(
        abs(coefficient) <= _MAX_ELEMENTS
        for s in loop.body.statements if isinstance(s, Load | Store)
        for register, coefficient in s.address.terms if register is row
    )  # fmt: skip


def _reads_its_stores(loop: For) -> bool:
    """Whether an iteration might read an element that another stores, so that they must run in order."""
    statements = list(statements_of(loop.body))
    read = {s.buffer for s in statements if isinstance(s, Load)}
    return any(isinstance(s, Store) and s.buffer in read for s in statements)


def _written_out(loop: For) -> list[Statement]:
    """Return the iterations of a reduction in order, and the statements that join them."""
    statements: list[Statement] = []
    yielded: list[tuple[Operand, ...]] = []
    for number in range(trips(loop)):
        values: dict[Register, Operand] = {loop.index: index_constant(number)}
        for carry in loop.carries:
            assert carry.identity is not None
            values[carry.register] = carry.identity
        for s in loop.body.statements:
            assert isinstance(s, Compute | Load | Store)
            statements.append(_with_values(s, values))
        yielded.append(tuple([_value(x, values) for x in loop.body.yields]))
    for carry, result, partial in zip(loop.carries, loop.results, zip(*yielded, strict=True), strict=True):
        assert carry.combine is not None
        joined = _joined(carry.combine, partial, statements)
        statements.append(Compute(result, carry.combine, (carry.initial, joined)))
    return statements


def _joined(op: ScalarOp, partial: Sequence[Operand], statements: list[Statement]) -> Operand:
    """Return the values joined by halving, as by lanes where all but the first ones hold the identity."""
    half = 1 << (len(partial) - 1).bit_length()
    while half > 1:
        half //= 2
        lower = list(partial[:half])
        for n, upper in enumerate(partial[half:]):
            result = Register(lower[n].dtype)
            statements.append(Compute(result, op, (lower[n], upper)))
            lower[n] = result
        partial = lower
    return partial[0]


def _with_values(s: Compute | Load | Store, values: dict[Register, Operand]) -> Statement:
    """Return a statement with a fresh result and its operands replaced. values: extended by the result."""

    def value(operand: Operand) -> Operand:
        return _value(operand, values)

    def place(address: Address) -> Address:
        return _place(address, values)

    if isinstance(s, Store):
        return with_operands(s, value, place)
    new = with_operands(s, value, place)
    result = values[s.result] = Register(s.result.dtype, s.result.name, s.result)
    return replace(new, result=result)


def _value(operand: Operand, values: dict[Register, Operand]) -> Operand:
    return values.get(operand, operand) if isinstance(operand, Register) else operand


def _place(address: Address, values: dict[Register, Operand]) -> Address:
    constant, terms = address.constant, []
    for register, coefficient in address.terms:
        value = values.get(register, register)
        if isinstance(value, Constant):
            constant += int(value.value) * coefficient
        else:
            terms.append((value, coefficient))
    return Address(constant, tuple(terms))
