"""Spelling of dtypes, constants and names in CUDA C++.

The types have the loop IR's own names, by the typedefs of `PREAMBLE`. A bool is `bool` in a register and one byte
(`u8`) in memory. The short floats (16 bits and fewer) are unsigned integers, which hold their bits, and so are the
narrow integers.
"""

from __future__ import annotations

import re
from typing import Final

from tracer.ir.dtypes import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    NARROW_FLOATS,
    DType,
    is_float,
    is_narrow,
    is_signed,
    short_name,
)
from tracer.ir.loop import Constant

SHORT_FLOATS: Final = (F16, BF16, *NARROW_FLOATS)

PREAMBLE: Final = """\
typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef float f32; typedef double f64;
typedef u16 f16; typedef u16 bf16;  // bits; computed with as f32
"""

RESERVED: Final = frozenset(
    re.findall(
        r"\w+",
        """
        alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default
        delete do double else enum explicit export extern false float for friend goto if inline int long mutable
        namespace new not operator or private protected public register return short signed sizeof static struct
        switch template this throw true try typedef typename union unsigned using virtual void volatile while xor
        abs acos acosh asin asinh atan atanh cbrt ceil copysign cos cosh erf exp fabs fault floor fma fmod hypot isinf
        isnan j0 j1 jn log max min norm pow remainder rint round signbit sin sinh sqrt tan tanh trunc y0 y1 yn
        """,
    )
)
"""Names that a kernel's variables may not have: C++'s own, and functions that NVRTC declares."""


def type_name(dtype: DType) -> str:
    """Return the type of a register."""
    return "u8" if is_narrow(dtype) else short_name(dtype)


def memory_name(dtype: DType) -> str:
    """Return the type of an element in memory."""
    return "u8" if dtype == BOOL else type_name(dtype)


def word_name(dtype: DType) -> str:
    """Return the unsigned integer of equal width."""
    return f"u{8 * dtype.itemsize}"


def computing_name(dtype: DType) -> str:
    """Return the unsigned integer in which arithmetic on an integer dtype wraps: at least C's int."""
    return f"u{max(32, 8 * dtype.itemsize)}"


def literal(constant: Constant) -> str:
    """Return a constant, exactly.

    >>> import numpy as np
    >>> [literal(Constant(np.float32(x), F32)) for x in (1.5, 0.1, np.inf)]
    ['1.5f', '0x1.99999ap-4f', '__int_as_float(0x7f800000)']
    """
    dtype = constant.dtype
    if dtype == BOOL:
        return "true" if constant.value else "false"
    if is_float(dtype) or is_narrow(dtype):
        bits = int.from_bytes(constant.bits, "little")
        return _real(float(constant.value), bits, dtype) if dtype in (F32, F64) else f"({type_name(dtype)})0x{bits:x}"
    return integer(int(constant.value), dtype)


def integer(value: int, dtype: DType) -> str:
    """Return an integer constant of the dtype."""
    width = 8 * dtype.itemsize
    suffix = ("" if is_signed(dtype) else "u") + ("ll" if width == 64 else "")
    if width < 32:
        return f"({type_name(dtype)}){value}"
    lowest = is_signed(dtype) and value == -(1 << (width - 1))
    return f"({value + 1}{suffix} - 1)" if lowest else f"{value}{suffix}"


def _real(value: float, bits: int, dtype: DType) -> str:
    """Return a float: decimal where that is short and exact, else hexadecimal, which all compilers read alike."""
    suffix = "f" if dtype == F32 else ""
    if value != value or value in (float("inf"), float("-inf")):
        if dtype == F32:
            return f"__int_as_float(0x{bits:08x})"
        return f"__longlong_as_double(0x{bits:016x}ll)"
    if abs(value) < 1 << 20 and value * 1024 == int(value * 1024):
        return f"{value!r}{suffix}"
    mantissa, exponent = value.hex().split("p")
    head, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    return f"{head}{'.' + fraction if fraction else ''}p{int(exponent)}{suffix}"
