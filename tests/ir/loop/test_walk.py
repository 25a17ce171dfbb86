"""Walking and rewriting loop IR: unchanged blocks stay the same objects, operands are replaced everywhere."""

from __future__ import annotations

from tests.grids import each
from tracer.ir.dtypes import BOOL, F32, I64
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Compute,
    Constant,
    Fault,
    Load,
    Prefix,
    Register,
    Space,
    Store,
    Update,
)
from tracer.ir.loop.build import Builder, constant
from tracer.ir.loop.walk import Simple, operands_of, statements_of, with_operands, with_statements
from tracer.ir.scalar import ScalarOp

A = Buffer("a", F32, 8, Space.INPUT)
OUT = Buffer("out", F32, 8, Space.OUTPUT, written=True)
INDEX, X, Y, P = Register(I64, "i"), Register(F32, "x"), Register(F32, "y"), Register(BOOL, "p")
AT = Address(2, ((INDEX, 3),))


def nested() -> Block:
    b = Builder()
    with b.for_("i", 0, 8) as loop:
        x = b.load(A, loop.index)
        with b.if_(b.compute(ScalarOp.GT, x, 0)):
            b.store(OUT, loop.index, x)
    return b.finish()


def test_a_rewrite_that_changes_nothing_returns_the_block() -> None:
    block = nested()
    assert with_statements(block, lambda s: (s,)) is block


def test_a_rewrite_reaches_inner_blocks() -> None:
    found = with_statements(nested(), lambda s: () if isinstance(s, Store) else (s,))
    assert not any(isinstance(s, Store) for s in statements_of(found))
    assert any(isinstance(s, Load) for s in statements_of(found))


@each(
    "statement",
    [
        Compute(Y, ScalarOp.ADD, (X, X)),
        Load(Y, A, AT, P, X),
        Store(OUT, AT, X, P),
        Update(OUT, AT, ScalarOp.ADD, X),
        Fault(0, P, INDEX, (INDEX,)),
        Prefix(Y, Register(F32), ScalarOp.ADD, X, X),
    ],
    ids=lambda s: type(s).__name__,
)
def test_every_operand_is_replaced(statement: Simple) -> None:
    new = {X: constant(1, F32), P: constant(True, BOOL), INDEX: constant(4, I64)}
    moved = Address(7)
    found = with_operands(statement, lambda o: new[o] if isinstance(o, Register) else o, lambda a: moved)
    assert all(isinstance(o, Constant) for o in operands_of(found))
    assert getattr(found, "address", moved) is moved
    assert getattr(found, "result", None) is getattr(statement, "result", None)
