"""Values that record scalar operations, in which the expansions of the math functions are written.

An expansion is Python arithmetic on `Value`s. Each operator appends one `Compute` to the `Code` it belongs to, and
Python numbers beside a value become constants of its dtype. Equal operations on equal operands are recorded once in a
block, so that sinh(x) beside cosh(x) shares its reduction.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from tracer.ir.dtypes import BOOL, F32, F64, I32, I64, DType, is_float
from tracer.ir.loop import Block, Compute, Constant, If, Operand, Register, Statement
from tracer.ir.scalar import ScalarOp

T = TypeVar("T")

Number = float | int


@dataclass(frozen=True, slots=True)
class Format:
    """The layout of a binary floating-point dtype.

    integer: the signed dtype of equal width. fraction: stored bits of the significand. bias: of the exponent.
    """

    dtype: DType
    integer: DType
    fraction: int
    bias: int

    @property
    def magic(self) -> float:
        """1.5 * 2^fraction: adding it to a small float leaves the nearest integer in the sum's low bits."""
        return 1.5 * 2.0**self.fraction

    @property
    def tiny(self) -> float:
        """The least normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def fraction_mask(self) -> int:
        return (1 << self.fraction) - 1

    @property
    def sign_bit(self) -> int:
        return 1 << (8 * self.dtype.itemsize - 1)

    def bits(self, value: float) -> int:
        """Return the encoding of a float, as an integer."""
        source, target = ("<f", "<I") if self.dtype == F32 else ("<d", "<Q")
        return int(struct.unpack(target, struct.pack(source, value))[0])

    def of(self, single: T, double: T) -> T:
        """Return the first for f32, the second for f64."""
        return single if self.dtype == F32 else double


SINGLE: Final = Format(F32, I32, fraction=23, bias=127)
DOUBLE: Final = Format(F64, I64, fraction=52, bias=1023)
FORMATS: Final = {F32: SINGLE, F64: DOUBLE}


_LONG: Final = 16
"""Statements of a block that is worth a call, where hardly any lane runs it."""


class Code:
    """The statements of one block as they are recorded."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self._recorded: dict[tuple[object, ...], Value] = {}
        self._unnamed: dict[Register, tuple[object, ...]] = {}  # statement that `define` may still rename, with its key

    def apply(self, op: ScalarOp, dtype: DType, *operands: Operand) -> Value:
        """Record op(*operands) of that result dtype, or finds it again."""
        key = (op, dtype, *map(id, operands))
        found = self._recorded.get(key)
        if found is None:
            result = Register(dtype)
            self.statements.append(Compute(result, op, operands))
            self._unnamed[result] = key
            found = self._recorded[key] = Value(self, result)
        return found

    def rarely(
        self, predicate: Value, usual: tuple[Value, ...], rare: Callable[[Code], tuple[Value, ...]]
    ) -> tuple[Value, ...]:
        """Return the values of `rare` where `predicate` holds, else the `usual` ones.

        A branch, taken by a vector loop where any lane wants it. `rare` may read values recorded so far, through
        `Code.adopt`.
        """
        inner = Code()
        yields = tuple(value.operand for value in rare(inner))
        results = tuple(Register(value.dtype) for value in usual)
        self.statements.append(
            If(
                predicate.operand,
                Block(tuple(inner.statements), yields),
                Block((), tuple(value.operand for value in usual)),
                results,
                outlined=len(inner.statements) >= _LONG,
            )
        )
        return tuple(Value(self, result) for result in results)

    def define(self, register: Register, value: Value) -> None:
        """Make `register` hold the value: by renaming, where the last statement computes it."""
        last = self.statements[-1] if self.statements else None
        if isinstance(last, Compute) and last.result is value.operand and last.result in self._unnamed:
            self.statements[-1] = Compute(register, last.op, last.operands)
            self._recorded[self._unnamed.pop(last.result)] = Value(self, register)
        else:
            copy = (constant(1, BOOL), value.operand, value.operand)
            self.statements.append(Compute(register, ScalarOp.SELECT, copy))

    def adopt(self, value: Value) -> Value:
        """Return a value of an enclosing block, to compute with in this one."""
        return Value(self, value.operand)


class Value:
    """A register or constant that operators apply to; see the module docstring."""

    __slots__ = ("code", "operand")

    def __init__(self, code: Code, operand: Operand) -> None:
        self.code = code
        self.operand = operand

    @property
    def dtype(self) -> DType:
        return self.operand.dtype

    @property
    def format(self) -> Format:
        return FORMATS[self.dtype]

    def like(self, number: Value | Number) -> Value:
        """Return the number as a constant of this value's dtype."""
        return number if isinstance(number, Value) else Value(self.code, constant(number, self.dtype))

    def _unary(self, op: ScalarOp) -> Value:
        return self.code.apply(op, self.dtype, self.operand)

    def _binary(self, op: ScalarOp, other: Value | Number, *, swap: bool = False) -> Value:
        a, b = self.operand, self.like(other).operand
        return self.code.apply(op, self.dtype, *((b, a) if swap else (a, b)))

    def _compare(self, op: ScalarOp, other: Value | Number) -> Value:
        return self.code.apply(op, BOOL, self.operand, self.like(other).operand)

    def __add__(self, other: Value | Number) -> Value:
        return self._binary(ScalarOp.ADD, other)

    def __radd__(self, other: Number) -> Value:
        return self._binary(ScalarOp.ADD, other, swap=True)

    def __sub__(self, other: Value | Number) -> Value:
        return self._binary(ScalarOp.SUB, other)

    def __rsub__(self, other: Number) -> Value:
        return self._binary(ScalarOp.SUB, other, swap=True)

    def __mul__(self, other: Value | Number) -> Value:
        return self._binary(ScalarOp.MUL, other)

    def __rmul__(self, other: Number) -> Value:
        return self._binary(ScalarOp.MUL, other, swap=True)

    def __truediv__(self, other: Value | Number) -> Value:
        return self._binary(ScalarOp.DIV, other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._binary(ScalarOp.DIV, other, swap=True)

    def __neg__(self) -> Value:
        return self._unary(ScalarOp.NEG)

    def __abs__(self) -> Value:
        return self._unary(ScalarOp.ABS)

    def __and__(self, other: Value | Number) -> Value:
        return self._binary(ScalarOp.AND, other)

    def __or__(self, other: Value | Number) -> Value:
        return self._binary(ScalarOp.OR, other)

    def __xor__(self, other: Value | Number) -> Value:
        return self._binary(ScalarOp.XOR, other)

    def __invert__(self) -> Value:
        return self._unary(ScalarOp.NOT)

    def __lshift__(self, count: int) -> Value:
        return self._binary(ScalarOp.SHL, count)

    def __rshift__(self, count: int) -> Value:
        """Return the arithmetic shift of a signed integer."""
        return self._binary(ScalarOp.SHR_ARITHMETIC, count)

    def shift_left(self, count: Value) -> Value:
        return self._binary(ScalarOp.SHL, count)

    def logical_shift(self, count: Value | int) -> Value:
        """Return the shift to the right of a signed integer, zeros coming in."""
        return self._binary(ScalarOp.SHR_LOGICAL, count)

    def __lt__(self, other: Value | Number) -> Value:
        return self._compare(ScalarOp.LT, other)

    def __le__(self, other: Value | Number) -> Value:
        return self._compare(ScalarOp.LE, other)

    def __gt__(self, other: Value | Number) -> Value:
        return self._compare(ScalarOp.GT, other)

    def __ge__(self, other: Value | Number) -> Value:
        return self._compare(ScalarOp.GE, other)

    def equals(self, other: Value | Number) -> Value:
        return self._compare(ScalarOp.EQ, other)

    def differs(self, other: Value | Number) -> Value:
        return self._compare(ScalarOp.NE, other)

    @property
    def bits(self) -> Value:
        """The encoding as a signed integer."""
        return self.code.apply(ScalarOp.BITCAST, self.format.integer, self.operand)

    @property
    def as_float(self) -> Value:
        """The float that an integer encodes."""
        dtype = F32 if self.dtype == I32 else F64
        return self.code.apply(ScalarOp.BITCAST, dtype, self.operand)

    def convert(self, dtype: DType) -> Value:
        return self if dtype == self.dtype else self.code.apply(ScalarOp.CONVERT, dtype, self.operand)

    @property
    def exponent(self) -> Value:
        """e with self = 2^e m, m in [3/4, 3/2)."""
        return self._unary(ScalarOp.EXPONENT)

    @property
    def significand(self) -> Value:
        return self._unary(ScalarOp.SIGNIFICAND)

    def scale(self, n: Value) -> Value:
        """Return self * 2^n, rounded once."""
        return self._binary(ScalarOp.SCALE, n)

    def sqrt(self) -> Value:
        return self._unary(ScalarOp.SQRT)

    def floor(self) -> Value:
        return self._unary(ScalarOp.FLOOR)

    def round_even(self) -> Value:
        return self._unary(ScalarOp.ROUND_EVEN)

    def copysign(self, sign: Value | Number) -> Value:
        return self._binary(ScalarOp.COPYSIGN, sign)

    def at_most(self, bound: Value | Number) -> Value:
        """Return min(self, bound), NaN where self is NaN: one instruction if hardware's min returns its second."""
        return select(self.like(bound) < self, bound, self)

    def at_least(self, bound: Value | Number) -> Value:
        return select(self.like(bound) > self, bound, self)


def constant(number: Number, dtype: DType) -> Constant:
    """Return a typed constant; integers wrap into the dtype."""
    key = (struct.pack("<d", number) if isinstance(number, float) else number, dtype)
    found = _CONSTANTS.get(key)
    if found is None:
        if is_float(dtype) or dtype == BOOL:
            value = dtype.type(number)
        else:
            width = 8 * dtype.itemsize
            value = np.asarray(number % (1 << width), f"u{dtype.itemsize}").view(dtype)[()]
        found = _CONSTANTS[key] = Constant(value, dtype)
    return found


_CONSTANTS: dict[tuple[object, DType], Constant] = {}  # few: the coefficients that expansions use


def fma(a: Value | Number, b: Value | Number, c: Value | Number) -> Value:
    """Return a * b + c, rounded once."""
    model = next(v for v in (a, b, c) if isinstance(v, Value))
    return model.code.apply(ScalarOp.FMA, model.dtype, *(model.like(v).operand for v in (a, b, c)))


def select(predicate: Value, a: Value | Number, b: Value | Number) -> Value:
    """Return `a` where `predicate` holds, else `b`. One of them is a value, whose dtype the other takes."""
    model = a if isinstance(a, Value) else b
    if not isinstance(model, Value):
        raise TypeError("select between two numbers: give one of them a dtype with `like`")
    return predicate.code.apply(
        ScalarOp.SELECT, model.dtype, predicate.operand, model.like(a).operand, model.like(b).operand
    )


def lookup(index: Value, values: tuple[float, ...]) -> Value:
    """Return the entry of a table of sixteen at the lowest four bits of the integer, as a float."""
    dtype = F32 if index.dtype == I32 else F64
    entries = [constant(value, dtype) for value in values]
    return index.code.apply(ScalarOp.LOOKUP, dtype, index.operand, *entries)


def polynomial(x: Value, coefficients: tuple[float, ...]) -> Value:
    """Return the sum of coefficients[k] * x^k.

    Horner's rule. From 8 coefficients on even and odd powers run side by side, which halves the latency for one more
    multiplication. From 16 on each of them does.
    """
    if len(coefficients) < 8:
        return horner(x, coefficients)
    square = x * x
    return fma(polynomial(square, coefficients[1::2]), x, polynomial(square, coefficients[0::2]))


def horner(x: Value, coefficients: tuple[float, ...]) -> Value:
    """Return the sum of coefficients[k] * x^k by Horner's rule, one FMA a coefficient."""
    result: Value | float = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = fma(result, x, coefficient)
    return x.like(result)
