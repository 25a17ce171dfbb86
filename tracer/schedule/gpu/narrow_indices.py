"""32-bit indices: index arithmetic of kernels in i32 wherever the ranges of loops show that it fits.

A GPU has 32-bit registers, so that 64-bit arithmetic costs several instructions and twice the registers. An i64
register is replaced where its range, and its operands' ranges, are known to fit. Results never change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tracer.ir import loop
from tracer.ir.dtypes import I32, I64, U32
from tracer.ir.loop.walk import with_operands
from tracer.ir.scalar import ScalarOp

Range = tuple[int, int]

_FITS: Final[Range] = (-(1 << 31), (1 << 31) - 1)
_KNOWN: Final[dict[Any, Range]] = {
    I32: _FITS, U32: (0, (1 << 32) - 1), I64: (-(1 << 63), (1 << 63) - 1),
}  # fmt: skip
_ARITHMETIC: Final = (
    ScalarOp.ADD,
    ScalarOp.SUB,
    ScalarOp.MUL,
    ScalarOp.IDIV,
    ScalarOp.IREM,
    ScalarOp.MIN,
    ScalarOp.MAX,
)
_COMPARISONS: Final = (ScalarOp.EQ, ScalarOp.NE, ScalarOp.LT, ScalarOp.LE, ScalarOp.GT, ScalarOp.GE)


def narrow_indices(module: loop.Module) -> loop.Module:
    """Return the module with 32-bit indices in its kernels, where they fit."""
    kernels = [f if f.name == module.entry else _Narrowing().function(f) for f in module.functions]
    return replace(module, functions=tuple(kernels))


class _Narrowing:
    """One kernel. ranges: of the integers known so far. narrow: the i32 register that replaces an i64 one."""

    def __init__(self) -> None:
        self.ranges: dict[loop.Register, Range] = {}
        self.narrow: dict[loop.Register, loop.Register] = {}
        self.statements: list[loop.Statement] = []

    def function(self, function: loop.Function) -> loop.Function:
        return replace(function, body=self.block(function.body))

    def block(self, block: loop.Block) -> loop.Block:
        outer, self.statements = self.statements, []
        for s in block.statements:
            self.statement(s)
        yields = tuple(map(self.value, block.yields))
        found, self.statements = loop.Block(tuple(self.statements), yields), outer
        return found

    def statement(self, s: loop.Statement) -> None:
        match s:
            case loop.Compute():
                self.compute(s)
            case loop.Load() | loop.Store() | loop.Fault():
                self.statements.append(with_operands(s, self.value, self.address))
            case loop.Copy():
                target, source = (loop.View(v.buffer, self.address(v.start)) for v in (s.target, s.source))
                self.statements.append(replace(s, target=target, source=source))
            case loop.For():
                self.for_loop(s)
            case loop.While():
                carries = tuple(replace(c, initial=self.value(c.initial)) for c in s.carries)
                condition, body = self.block(s.condition), self.block(s.body)
                self.statements.append(loop.While(carries, condition, body, s.results))
            case loop.If():
                predicate = self.value(s.predicate)
                self.statements.append(loop.If(predicate, self.block(s.then), self.block(s.otherwise), s.results))
            case loop.Shuffle():
                self.statements.append(replace(s, value=self.value(s.value)))
            case _:
                self.statements.append(s)

    def for_loop(self, s: loop.For) -> None:
        (first, start), (stop, last) = self.range(s.start), self.range(s.stop)
        found = (first, max(start, last - 1)) if s.step > 0 else (min(first, stop + 1), start)
        ends = (found[0] + min(s.step, 0), found[1] + max(s.step, 0))  # with the value that ends the loop
        index, begin, end = s.index, self.short(s.start), self.short(s.stop)
        if begin is not None and end is not None and _fits(ends):
            index = self.named(s.index, found)
        else:
            begin, end = self.value(s.start), self.value(s.stop)
        carries = tuple(replace(c, initial=self.value(c.initial)) for c in s.carries)
        body = self.block(s.body)
        self.statements.append(replace(s, index=index, start=begin, stop=end, carries=carries, body=body))

    def compute(self, s: loop.Compute) -> None:
        found = self.result_range(s)
        if s.op is ScalarOp.CONVERT and s.result.dtype == I64 and _fits(found):
            source = self.short(s.operands[0]) or s.operands[0]
            self.statements.append(loop.Compute(self.named(s.result, found), s.op, (source,)))
            return
        wide = s.operands[-1].dtype == I64
        if s.op is ScalarOp.CONVERT and wide:
            self.statements.append(replace(s, operands=(self.short(s.operands[0]) or s.operands[0],)))
        elif wide and (s.op in _COMPARISONS or (s.op in _ARITHMETIC and _fits(found))):
            operands = [self.short(o) for o in s.operands]
            result = s.result
            if all(operands):
                result = self.named(result, found) if result.dtype == I64 else result
                self.statements.append(loop.Compute(result, s.op, tuple(o for o in operands if o is not None)))
            else:
                self.statements.append(with_operands(s, self.value, self.address))
        else:
            self.statements.append(with_operands(s, self.value, self.address))
        if s.result.dtype in _KNOWN:
            self.ranges[s.result] = found

    # -- operands

    def named(self, register: loop.Register, found: Range) -> loop.Register:
        """Return the i32 register in the place of an i64 one of this range."""
        self.ranges[register] = found
        self.narrow[register] = short = loop.Register(I32, register.name, register.copied)
        return short

    def short(self, operand: loop.Operand) -> loop.Operand | None:
        """Return an i64 operand as i32 without a statement, or None."""
        if isinstance(operand, loop.Register):
            return self.narrow.get(operand)
        fits = operand.dtype == I64 and _fits(self.range(operand))
        return loop.Constant(np.int32(operand.value), I32) if fits else None

    def value(self, operand: loop.Operand) -> loop.Operand:
        """Return an operand in its own dtype."""
        short = self.narrow.get(operand) if isinstance(operand, loop.Register) else None
        return operand if short is None else self.converted(short, I64)

    def converted(self, operand: loop.Operand, dtype: Any) -> loop.Register:
        result = loop.Register(dtype, operand.name if isinstance(operand, loop.Register) else "")
        self.statements.append(loop.Compute(result, ScalarOp.CONVERT, (operand,)))
        return result

    def address(self, address: loop.Address) -> loop.Address:
        """Return an address of i32 registers if no sum of its terms is beyond i32, else of i64 ones."""
        reach = abs(address.constant)
        for register, factor in address.terms:
            reach += abs(factor) * max(map(abs, self.range(register)))
        terms: list[tuple[loop.Register, int]] = []
        for register, factor in address.terms:
            short = self.narrow.get(register)
            if reach <= _FITS[1]:
                terms.append((short or self.converted(register, I32), factor))
            else:
                terms.append((register if short is None else self.converted(short, I64), factor))
        return loop.Address(address.constant, tuple(terms))

    # -- ranges

    def range(self, operand: loop.Operand) -> Range:
        """Return bounds of an integer operand: its dtype's bounds at worst."""
        if isinstance(operand, loop.Constant):
            return (int(operand.value), int(operand.value)) if operand.dtype in _KNOWN else _KNOWN[I64]
        return self.ranges.get(operand, _KNOWN.get(operand.dtype, _KNOWN[I64]))

    def result_range(self, s: loop.Compute) -> Range:
        """Return bounds of a result: its dtype's bounds where the operation may wrap or is not known."""
        whole = _KNOWN.get(s.result.dtype, _KNOWN[I64])
        if s.op not in (*_ARITHMETIC, ScalarOp.CONVERT) or any(o.dtype not in _KNOWN for o in s.operands):
            return whole
        found = _bounds(s.op, [self.range(o) for o in s.operands])
        return found if found is not None and whole[0] <= found[0] and found[1] <= whole[1] else whole


def _fits(found: Range) -> bool:
    return _FITS[0] <= found[0] and found[1] <= _FITS[1]


def _bounds(op: ScalarOp, given: Sequence[Range]) -> Range | None:
    """Return bounds of an exact result, or None where they are not known."""
    (a, b), (c, d) = given[0], given[-1]
    match op:
        case ScalarOp.CONVERT:
            return a, b
        case ScalarOp.ADD:
            return a + c, b + d
        case ScalarOp.SUB:
            return a - d, b - c
        case ScalarOp.MUL:
            products = (a * c, a * d, b * c, b * d)
            return min(products), max(products)
        case ScalarOp.MIN:
            return min(a, c), min(b, d)
        case ScalarOp.MAX:
            return max(a, c), max(b, d)
        case ScalarOp.IDIV if a >= 0 and c == d > 0:
            return a // c, b // c
        case ScalarOp.IREM if a >= 0 and c == d > 0:
            return 0, min(b, c - 1)
        case _:
            return None
