"""Copies of loop IR: equal statements with fresh registers, and other names for registers and buffers from outside."""

from __future__ import annotations

from dataclasses import replace

from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Carry,
    Compute,
    For,
    Load,
    Operand,
    Prefix,
    Register,
    Statement,
    Store,
)  # fmt: skip
from tracer.ir.loop.walk import Simple, with_operands

Names = dict[Buffer | Register, Buffer | Register]


def copied(block: Block, names: Names) -> Block:
    """Return a copy of loops over plain statements. names: replacements of outer registers and buffers, extended."""
    return _Copy(names).block(block)


class _Copy:
    def __init__(self, names: Names) -> None:
        self.names = names

    def block(self, block: Block) -> Block:
        statements = tuple([self.statement(s) for s in block.statements])
        return Block(statements, tuple(map(self.operand, block.yields)))

    def statement(self, s: Statement) -> Statement:
        match s:
            case Compute():
                return replace(self.read(s), result=self.fresh(s.result))
            case Load():
                return replace(self.read(s), buffer=self.buffer(s.buffer), result=self.fresh(s.result))
            case Store():
                return replace(self.read(s), buffer=self.buffer(s.buffer))
            case Prefix():
                return replace(self.read(s), result=self.fresh(s.result), last=self.fresh(s.last))
            case For():
                return self.loop(s)
            case _:
                raise AssertionError(s)

    def read(self, s: Simple) -> Simple:
        """Return the statement with the operands and addresses that it reads replaced."""
        return with_operands(s, self.operand, self.address)

    def loop(self, s: For) -> For:
        start, stop = self.operand(s.start), self.operand(s.stop)
        initial = [self.operand(c.initial) for c in s.carries]
        index = self.fresh(s.index)
        carries = [
            Carry(self.fresh(c.register), x, c.combine, c.identity) for c, x in zip(s.carries, initial, strict=True)
        ]
        body = self.block(s.body)
        results = tuple(map(self.fresh, s.results))
        return For(index, start, stop, body, s.kind, s.step, s.lanes, tuple(carries), results)

    def fresh(self, register: Register) -> Register:
        copy = Register(register.dtype, register.name, register)
        self.names[register] = copy
        return copy

    def operand(self, operand: Operand) -> Operand:
        if not isinstance(operand, Register):
            return operand
        found = self.names[operand]
        assert isinstance(found, Register)
        return found

    def buffer(self, buffer: Buffer) -> Buffer:
        found = self.names[buffer]
        assert isinstance(found, Buffer)
        return found

    def address(self, address: Address) -> Address:
        terms = []
        for register, coefficient in address.terms:
            found = self.operand(register)
            assert isinstance(found, Register)
            terms.append((found, coefficient))
        return Address(address.constant, tuple(terms))
