"""Bit layouts of the floats that backends widen to f32 to compute, for conversions by integer operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tracer.ir.dtypes import (
    F4E2M1FN,
    F6E2M3FN,
    F6E3M2FN,
    F8E3M4,
    F8E4M3,
    F8E4M3B11FNUZ,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F16,
    DType,
)


@dataclass(frozen=True, slots=True)
class Format:
    """Layout of a float: width and fraction in bits, `top` the magnitude of an overflow, `nan` the quiet NaN.

    specials: whether magnitudes from `top` on are infinity and NaN. Otherwise finite values go on to the largest
    magnitude, and a NaN becomes the bits `nan` with its sign. In a format with `unsigned_zero`, the bits of -0 are the
    only NaN.
    """

    width: int
    fraction: int
    bias: int
    top: int
    nan: int
    specials: bool = True
    unsigned_zero: bool = False

    @property
    def shift(self) -> int:
        """Bits of fraction that an f32 has beyond this format."""
        return 23 - self.fraction

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    @property
    def first_nan(self) -> int:
        return self.top if self.top == self.nan else self.top + 1

    @property
    def rebias(self) -> int:
        """Term that moves the bits of an f32 to this format's exponents, and rounds all but ties."""
        return (1 << (self.shift - 1)) - 1 - ((127 - self.bias) << 23)

    @property
    def step(self) -> int:
        """Exponent of the f32 whose last place is this format's smallest value."""
        return 1 - self.bias - self.fraction + 23

    @property
    def first_normal(self) -> int:
        """Bits of the smallest normal value, as an f32."""
        return (128 - self.bias) << 23


def _finite(width: int, fraction: int, bias: int) -> Format:
    return Format(width, fraction, bias, top=(1 << (width - 1)) - 1, nan=1 << (width - 1), specials=False)


def _unsigned_zero(fraction: int, bias: int) -> Format:
    return Format(8, fraction, bias, top=0x80, nan=0x80, specials=False, unsigned_zero=True)


FORMATS: Final[dict[DType, Format]] = {
    F16: Format(width=16, fraction=10, bias=15, top=0x7C00, nan=0x7E00),
    F8E5M2: Format(width=8, fraction=2, bias=15, top=0x7C, nan=0x7E),
    F8E4M3: Format(width=8, fraction=3, bias=7, top=0x78, nan=0x7C),
    F8E3M4: Format(width=8, fraction=4, bias=3, top=0x70, nan=0x78),
    F8E4M3FN: Format(width=8, fraction=3, bias=7, top=0x7F, nan=0x7F),
    F8E4M3FNUZ: _unsigned_zero(fraction=3, bias=8),
    F8E4M3B11FNUZ: _unsigned_zero(fraction=3, bias=11),
    F8E5M2FNUZ: _unsigned_zero(fraction=2, bias=16),
    F6E2M3FN: _finite(width=6, fraction=3, bias=1),
    F6E3M2FN: _finite(width=6, fraction=2, bias=3),
    F4E2M1FN: _finite(width=4, fraction=1, bias=1),
}
"""Every widened float but bf16, the upper half of an f32, and f8e8m0fnu, an f32's exponent."""
