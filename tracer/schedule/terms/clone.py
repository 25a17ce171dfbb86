"""Copies of loop IR: equal statements with fresh registers, and other names for registers and buffers from outside."""

from __future__ import annotations

from dataclasses import replace

from tracer.ir import loop
from tracer.ir.loop.walk import Simple, with_operands

Names = dict[loop.Buffer | loop.Register, loop.Buffer | loop.Register]


def copied(block: loop.Block, names: Names) -> loop.Block:
    """Return a copy of loops over plain statements. names: replacements of outer registers and buffers, extended."""
    return _Copy(names).block(block)


class _Copy:
    def __init__(self, names: Names) -> None:
        self.names = names

    def block(self, block: loop.Block) -> loop.Block:
        statements = tuple([self.statement(s) for s in block.statements])
        return loop.Block(statements, tuple(map(self.operand, block.yields)))

    def statement(self, s: loop.Statement) -> loop.Statement:
        match s:
            case loop.Compute():
                return replace(self.read(s), result=self.fresh(s.result))
            case loop.Load():
                return replace(self.read(s), buffer=self.buffer(s.buffer), result=self.fresh(s.result))
            case loop.Store():
                return replace(self.read(s), buffer=self.buffer(s.buffer))
            case loop.Prefix():
                return replace(self.read(s), result=self.fresh(s.result), last=self.fresh(s.last))
            case loop.For():
                return self.for_loop(s)
            case _:
                raise AssertionError(s)

    def read(self, s: Simple) -> Simple:
        """Return the statement with the operands and addresses that it reads replaced."""
        return with_operands(s, self.operand, self.address)

    def for_loop(self, s: loop.For) -> loop.For:
        start, stop = self.operand(s.start), self.operand(s.stop)
        initial = [self.operand(c.initial) for c in s.carries]
        index = self.fresh(s.index)
        carries = [
            loop.Carry(self.fresh(c.register), x, c.combine, c.identity)
            for c, x in zip(s.carries, initial, strict=True)
        ]
        body = self.block(s.body)
        results = tuple(map(self.fresh, s.results))
        return loop.For(index, start, stop, body, s.kind, s.step, s.lanes, tuple(carries), results)

    def fresh(self, register: loop.Register) -> loop.Register:
        copy = loop.Register(register.dtype, register.name, register)
        self.names[register] = copy
        return copy

    def operand(self, operand: loop.Operand) -> loop.Operand:
        if not isinstance(operand, loop.Register):
            return operand
        found = self.names[operand]
        assert isinstance(found, loop.Register)
        return found

    def buffer(self, buffer: loop.Buffer) -> loop.Buffer:
        found = self.names[buffer]
        assert isinstance(found, loop.Buffer)
        return found

    def address(self, address: loop.Address) -> loop.Address:
        terms = []
        for register, coefficient in address.terms:
            found = self.operand(register)
            assert isinstance(found, loop.Register)
            terms.append((found, coefficient))
        return loop.Address(address.constant, tuple(terms))
