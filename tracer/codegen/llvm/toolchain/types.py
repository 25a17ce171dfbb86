"""Spelling of dtypes, vectors and constants in LLVM text.

A bool is `i1` in a register and one byte in memory. The short floats (16 bits and fewer) are integers of their width:
`short_floats` computes with them in f32. Narrow dtypes are the byte that holds them, its high bits clear. Floating
constants are written as the hexadecimal bits of a double.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Final

from tracer.ir.dtypes import (
    BF16,
    BOOL,
    C64,
    C128,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    NARROW_FLOATS,
    NARROW_INTEGERS,
    U8,
    U16,
    U32,
    U64,
    DType,
)  # fmt: skip
from tracer.ir.loop import Constant

ELEMENT: Final[dict[DType, str]] = {
    BOOL: "i1",
    I8: "i8", I16: "i16", I32: "i32", I64: "i64",
    U8: "i8", U16: "i16", U32: "i32", U64: "i64",
    F16: "i16", BF16: "i16", F32: "float", F64: "double",
    **dict.fromkeys((*NARROW_FLOATS, *NARROW_INTEGERS), "i8"),
}  # fmt: skip
MEMORY: Final[dict[DType, str]] = ELEMENT | {BOOL: "i8", C64: "[2 x float]", C128: "[2 x double]"}
SHORT_FLOATS: Final = frozenset((F16, BF16, *NARROW_FLOATS))
SUFFIX: Final = {"float": "f32", "double": "f64"}
"""Part of an intrinsic's name for a floating type; integers have their own names."""


@cache
def vector(element: str, lanes: int) -> str:
    """Return the type of `lanes` elements; a scalar for no lanes."""
    return f"<{lanes} x {element}>" if lanes else element


@cache
def suffix(element: str, lanes: int) -> str:
    """Return the part of an intrinsic's name that says on which type it works."""
    name = SUFFIX.get(element, element)
    return f".v{lanes}{name}" if lanes else f".{name}"


@cache
def iota(element: str, lanes: int) -> str:
    """Return the constant vector 0, 1, 2, ..."""
    return "<" + ", ".join(f"{element} {lane}" for lane in range(lanes)) + ">"


@cache
def indices(*lanes: int) -> str:
    """Return the mask of a `shufflevector`, with its type."""
    return f"<{len(lanes)} x i32> <" + ", ".join(f"i32 {lane}" for lane in lanes) + ">"


@cache
def leading_mask(count: int, lanes: int) -> str:
    """Return the mask of the first `count` lanes."""
    return "<" + ", ".join(f"i1 {'true' if lane < count else 'false'}" for lane in range(lanes)) + ">"


def leading_lanes(mask: str) -> int | None:
    """Return how many lanes a leading mask has; None for one in a register."""
    return mask.count("true") if mask.startswith("<") else None


def splat(element: str, literal: str, lanes: int) -> str:
    """Return a constant in every lane."""
    return f"splat ({element} {literal})" if lanes else literal


def bits_of_single(bits: int) -> str:
    """Return the literal of an f32 given by its bits. LLVM writes it as the double of equal value, NaN payload kept."""
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return f"0x{sign << 63 | 0x7FF << 52 | fraction << 29:016X}"
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def single(value: float) -> str:
    """Return the literal of an f32 value."""
    return bits_of_single(struct.unpack("<I", struct.pack("<f", value))[0])


def real(dtype: DType, value: float) -> str:
    """Return the literal of an f32 or f64 value."""
    return single(value) if dtype == F32 else f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def literal(constant: Constant) -> str:
    """Return a constant as LLVM writes it, without its type; short floats as the integer of their bits.

    >>> import numpy as np
    >>> literal(Constant(np.float32(1.5), F32))
    '0x3FF8000000000000'
    """
    dtype, kind = constant.dtype, constant.dtype.kind
    if kind in "iu":
        return str(int(constant.value))
    if kind == "b":
        return "true" if constant.value else "false"
    bits = int.from_bytes(constant.bits, "little")
    if dtype == F32:
        return bits_of_single(bits)
    if dtype == F64:
        return f"0x{bits:016X}"
    return str(bits)


def zero(dtype: DType) -> str:
    """Return the literal of zero bits, in a register."""
    return {"i1": "false", "float": "0.0", "double": "0.0"}.get(ELEMENT[dtype], "0")
