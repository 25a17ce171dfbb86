"""Scalars as the printed IR writes them, and their parser; bit for bit.

A float has the fewest digits that give it back in its dtype. Complex numbers are `(1+2j)`, booleans `true` and `false`.
A NaN other than the usual one shows its bits: `nan(0xffc00000)`.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tracer.ir import dtypes
from tracer.ir.dtypes import DType

_NUMBER: Final = r"(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|(?:inf|nan)(?=j\)|\b))"
SCALAR: Final = rf"nan\(0x[0-9a-f]+\)|-?{_NUMBER}|\(-?{_NUMBER}[+-]{_NUMBER}j\)"
"""The text that `scalar_text` writes, booleans aside, as a regular expression."""

_COMPLEX: Final = re.compile(rf"\((-?{_NUMBER})([+-]{_NUMBER})j\)")
_BITS: Final = re.compile(r"nan\(0x([0-9a-f]+)\)")
_INTEGER: Final = re.compile(r"-?\d+")


DIGITS: Final = 4000
"""Digits of an integer's text, at most: Python converts some 4,300."""


def is_integer_text(text: str) -> bool:
    """Whether an untyped scalar is an integer: digits alone, with or without a sign."""
    return _INTEGER.fullmatch(text) is not None


def is_complex_text(text: str) -> bool:
    """Whether an untyped scalar is complex: by its form, or by a NaN with as many bits as c128 has."""
    return text.startswith("(") or len(text) == len("nan(0x)") + 2 * dtypes.C128.itemsize


@lru_cache(maxsize=4096)
def scalar_text(bits: bytes, dtype: DType) -> str:
    """Return the text of the scalar whose memory is `bits`, without its type.

    >>> scalar_text(np.float32(0.1).tobytes(), np.dtype("float32"))
    '0.1'
    """
    value = np.frombuffer(bits, dtype)[0]
    if dtypes.is_bool(dtype):
        return "true" if value else "false"
    if dtypes.is_integer(dtype):
        return str(int(value))
    if dtypes.is_complex(dtype):
        part = dtypes.real_dtype(dtype)
        real, imag = (_shortest(half, part).removesuffix(".0") for half in (value.real, value.imag))
        text = f"({real}{'' if imag.startswith('-') else '+'}{imag}j)"
    else:
        text = _shortest(value, dtype)
    if scalar_value(text, dtype).tobytes() == bits:
        return text
    return f"nan(0x{int.from_bytes(bits, sys.byteorder):0{2 * len(bits)}x})"


def _shortest(value: Any, dtype: DType) -> str:
    """Return the fewest digits that give the float back when read as float64 and rounded to the dtype."""
    exact = float(value)
    if dtype == dtypes.F64 or not np.isfinite(exact):
        return repr(exact)
    with np.errstate(over="ignore"):
        for digits in range(1, 10):
            short = float(f"{exact:.{digits}g}")
            if float(np.asarray(short, dtype)) == exact:
                return repr(short)
    return repr(exact)


def scalar_value(text: str, dtype: DType) -> Any:
    """Return the NumPy scalar that the text stands for, or None if it is no value of the dtype."""
    if bits := _BITS.fullmatch(text):
        pattern = int(bits[1], 16)
        fits = dtypes.is_inexact(dtype) and pattern < 1 << 8 * dtype.itemsize
        return np.frombuffer(pattern.to_bytes(dtype.itemsize, sys.byteorder), dtype)[0] if fits else None
    value = _python_value(text, dtype)
    try:
        with np.errstate(over="ignore"):
            return None if value is None else np.asarray(value, dtype)[()]
    except OverflowError:
        return None


def _python_value(text: str, dtype: DType) -> bool | int | float | complex | None:
    if dtypes.is_bool(dtype):
        return {"true": True, "false": False}.get(text)
    if dtypes.is_integer(dtype):
        return int(text) if is_integer_text(text) and len(text) <= DIGITS else None
    if dtypes.is_complex(dtype):
        parts = _COMPLEX.fullmatch(text)
        return complex(float(parts[1]), float(parts[2])) if parts else None
    return None if text in ("true", "false") or text.startswith("(") else float(text)
