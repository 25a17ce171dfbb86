"""Copies of loop IR: equal statements with fresh registers, and other names for registers and buffers from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracer.ir import loop
from tracer.ir.loop.build import address
from tracer.ir.loop.walk import Simple, with_operands

Names = dict[loop.Buffer | loop.Register, loop.Buffer | loop.Operand]


def copied(block: loop.Block, names: Names) -> loop.Block:
    """Return a copy of loops over plain statements. names: replacements of outer registers and buffers, extended."""
    return Copier(names).block(block)


class Copier:
    """Copies statements. names: replacements of registers and buffers; results and allocations are added."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def block(self, block: loop.Block) -> loop.Block:
        """Return a copy of a block."""
        statements = tuple([copy for s in block.statements for copy in self.statements(s)])
        return loop.Block(statements, tuple(map(self.operand, block.yields)))

    def statements(self, s: loop.Statement) -> Sequence[loop.Statement]:
        """Return the copy of a statement."""
        return (self.statement(s),)

    def statement(self, s: loop.Statement) -> loop.Statement:
        """Return a statement with other names, and fresh results."""
        match s:
            case loop.Compute():
                return replace(self.read(s), result=self.fresh(s.result))
            case loop.Load():
                return replace(self.read(s), buffer=self.buffer(s.buffer), result=self.fresh(s.result))
            case loop.Store():
                return replace(self.read(s), buffer=self.buffer(s.buffer))
            case loop.Fault():
                return self.read(s)
            case loop.Prefix():
                return replace(self.read(s), result=self.fresh(s.result), last=self.fresh(s.last))
            case loop.Shuffle():
                return replace(s, value=self.operand(s.value), result=self.fresh(s.result))
            case loop.Barrier():
                return s
            case loop.Alloc():
                copy = self.names[s.buffer] = replace(s.buffer)
                return loop.Alloc(copy)
            case loop.For():
                return self.for_loop(s)
            case loop.While():
                carries = self.carries(s.carries)
                condition, body = self.block(s.condition), self.block(s.body)
                return loop.While(carries, condition, body, tuple(map(self.fresh, s.results)))
            case loop.If():
                predicate, then = self.operand(s.predicate), self.block(s.then)
                otherwise = self.block(s.otherwise)
                return replace(
                    s, predicate=predicate, then=then, otherwise=otherwise, results=tuple(map(self.fresh, s.results))
                )
            case _:
                raise AssertionError(s)

    def read(self, s: Simple) -> Simple:
        """Return the statement with the operands and addresses that it reads replaced."""
        return with_operands(s, self.operand, self.address)

    def for_loop(self, s: loop.For) -> loop.For:
        """Return a copy of a counted loop."""
        start, stop = self.operand(s.start), self.operand(s.stop)
        index, carries = self.fresh(s.index), self.carries(s.carries)
        body = self.block(s.body)
        results = tuple(map(self.fresh, s.results))
        return loop.For(
            index, start, stop, body, s.kind, s.step, s.lanes, carries, results, s.outlined, s.multiplies_roots,
            s.unrolled,
        )  # fmt: skip

    def carries(self, carries: Sequence[loop.Carry]) -> tuple[loop.Carry, ...]:
        """Return copies of carries, all initial values read before any carry is named."""
        initial = [self.operand(c.initial) for c in carries]
        pairs = zip(carries, initial, strict=True)
        return tuple([loop.Carry(self.fresh(c.register), x, c.combine, c.identity) for c, x in pairs])

    def fresh(self, register: loop.Register) -> loop.Register:
        """Return a new register in the place of one that a statement assigns."""
        copy = loop.Register(register.dtype, register.name, register)
        self.names[register] = copy
        return copy

    def operand(self, operand: loop.Operand) -> loop.Operand:
        """Return the operand in the place of another."""
        if not isinstance(operand, loop.Register):
            return operand
        found = self.names[operand]
        assert not isinstance(found, loop.Buffer)
        return found

    def buffer(self, buffer: loop.Buffer) -> loop.Buffer:
        """Return the buffer in the place of another."""
        found = self.names[buffer]
        assert isinstance(found, loop.Buffer)
        return found

    def address(self, given: loop.Address) -> loop.Address:
        """Return an address with other registers."""
        return address(given.constant, *((self.operand(register), factor) for register, factor in given.terms))
