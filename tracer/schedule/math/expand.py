"""Values that record scalar operations: what the expansions of the math functions are written in.

An expansion is Python arithmetic on `Value`s; each operator appends one `Compute` to its `Code`. Python numbers
beside a value become constants of its dtype. Equal operations on equal operands are recorded once in a block,
so sinh(x) next to cosh(x) shares its reduction.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracer.ir.dtypes import BOOL, F32, F64, I32, I64, DType, is_float
from tracer.ir.loop import Block, Compute, Constant, If, Operand, Register, Statement
from tracer.ir.scalar import ScalarOp

Number = float | int


@dataclass(frozen=True, slots=True)
class Format:
    """The layout of a binary floating-point dtype.

    fraction: stored bits of the significand. bias: of the exponent. integer: the signed dtype of equal width.
    """

    dtype: DType
    integer: DType
    fraction: int
    bias: int

    @property
    def width(self) -> int:
        return 8 * self.dtype.itemsize

    @property
    def magic(self) -> float:
        """1.5 * 2^fraction: added to a float below 2^(fraction-1) it leaves the nearest integer in the low bits."""
        return 1.5 * 2.0**self.fraction

    @property
    def tiny(self) -> float:
        """The least normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def largest(self) -> float:
        return float(np.finfo(self.dtype).max)

    @property
    def sign_bit(self) -> int:
        return 1 << (self.width - 1)

    def bits(self, value: float) -> int:
        """The encoding of a float as an integer."""
        layout, target = ("<f", "<i") if self.dtype == F32 else ("<d", "<q")
        return int(struct.unpack(target, struct.pack(layout, value))[0])

    def split(self, value: str, bits: int = 0) -> tuple[float, float]:
        """(high, low) of a decimal constant: high has `bits` fewer significant bits than the format."""
        from fractions import Fraction  # noqa: PLC0415

        exact = Fraction(value)
        high = self.round(exact, bits)
        return high, self.round(exact - Fraction(high))

    def round(self, exact: object, bits: int = 0) -> float:
        raise NotImplementedError


SINGLE: Final = Format(F32, I32, fraction=23, bias=127)
DOUBLE: Final = Format(F64, I64, fraction=52, bias=1023)
