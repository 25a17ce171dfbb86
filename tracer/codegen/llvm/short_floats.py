"""The 16-bit and 8-bit floats: widened to f32 to compute, rounded back to nearest even after every operation.

A register of such a dtype is spelled twice: its bits as an integer, and its value as a float.
Only integer operations are used, except where the machine converts `half` itself, so that nothing needs a
run-time library and all machines give the same bits. NaN stays NaN, quiet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tracer.codegen.llvm.types import ELEMENT, single, splat, vector
from tracer.codegen.llvm.writer import Writer
from tracer.ir.dtypes import BF16, F8E4M3FN, F8E5M2, F16, DType


@dataclass(frozen=True, slots=True)
class Format:
    """width and fraction in bits; `top` is the magnitude that overflow gives, `nan` the quiet NaN."""

    width: int
    fraction: int
    bias: int
    top: int
    nan: int

    @property
    def shift(self) -> int:
        return 23 - self.fraction


FORMATS: Final[dict[DType, Format]] = {
    F16: Format(width=16, fraction=10, bias=15, top=0x7C00, nan=0x7E00),
    F8E5M2: Format(width=8, fraction=2, bias=15, top=0x7C, nan=0x7E),
    F8E4M3FN: Format(width=8, fraction=3, bias=7, top=0x7F, nan=0x7F),
}


def widen(w: Writer, dtype: DType, bits: str, lanes: int) -> str:
    """The f32 value of the short float with these bits."""
    element, word, value = ELEMENT[dtype], vector("i32", lanes), vector("float", lanes)
    if dtype == F16 and w.half_native:
        half = w.let(f"bitcast {vector('i16', lanes)} {bits} to {vector('half', lanes)}")
        return w.let(f"fpext {vector('half', lanes)} {half} to {value}")
    wide = w.let(f"zext {vector(element, lanes)} {bits} to {word}")
    if dtype == BF16:
        return w.let(f"bitcast {word} {w.let(f'shl {word} {wide}, {_word(16, lanes)}')} to {value}")
    return _widen_by_integers(w, FORMATS[dtype], wide, lanes)


def _widen_by_integers(w: Writer, form: Format, wide: str, lanes: int) -> str:
    word, value, mask = vector("i32", lanes), vector("float", lanes), vector("i1", lanes)
    sign_bit = 1 << (form.width - 1)
    magnitude = w.let(f"and {word} {wide}, {_word(sign_bit - 1, lanes)}")
    placed = w.let(f"shl {word} {magnitude}, {_word(form.shift, lanes)}")
    # the multiplication moves the exponent, and makes normal what is subnormal in the short format
    scale = splat("float", single(2.0 ** (127 - form.bias)), lanes)
    scaled = w.let(f"fmul {value} {w.let(f'bitcast {word} {placed} to {value}')}, {scale}")
    finite = w.let(f"bitcast {value} {scaled} to {word}")
    special = w.let(f"icmp uge {word} {magnitude}, {_word(form.top, lanes)}")
    high = w.let(f"or {word} {placed}, {_word(0x7F800000, lanes)}")
    is_nan = w.let(f"icmp uge {word} {magnitude}, {_word(_first_nan(form), lanes)}")
    quiet = w.let(f"or {word} {high}, {_word(0x400000, lanes)}")
    high = w.let(f"select {mask} {is_nan}, {word} {quiet}, {word} {high}")
    result = w.let(f"select {mask} {special}, {word} {high}, {word} {finite}")
    sign = w.let(f"and {word} {wide}, {_word(sign_bit, lanes)}")
    sign = w.let(f"shl {word} {sign}, {_word(32 - form.width, lanes)}")
    return w.let(f"bitcast {word} {w.let(f'or {word} {result}, {sign}')} to {value}")


def _first_nan(form: Format) -> int:
    return form.top if form.top == form.nan else form.top + 1


def shorten(w: Writer, dtype: DType, value: str, lanes: int) -> tuple[str, str]:
    """Round an f32 to the short float: its bits and the value that they stand for."""
    if dtype == BF16:
        return _shorten_bf16(w, value, lanes)
    if dtype == F16 and w.half_native:
        half = w.let(f"fptrunc {vector('float', lanes)} {value} to {vector('half', lanes)}")
        bits = w.let(f"bitcast {vector('half', lanes)} {half} to {vector('i16', lanes)}")
        return bits, w.let(f"fpext {vector('half', lanes)} {half} to {vector('float', lanes)}")
    bits = _shorten_by_integers(w, FORMATS[dtype], value, lanes)
    bits = w.let(f"trunc {vector('i32', lanes)} {bits} to {vector(ELEMENT[dtype], lanes)}")
    return bits, widen(w, dtype, bits, lanes)


def _shorten_bf16(w: Writer, value: str, lanes: int) -> tuple[str, str]:
    word, single_, mask = vector("i32", lanes), vector("float", lanes), vector("i1", lanes)
    bits = w.let(f"bitcast {single_} {value} to {word}")
    odd = w.let(f"and {word} {w.let(f'lshr {word} {bits}, {_word(16, lanes)}')}, {_word(1, lanes)}")
    rounded = w.let(f"add {word} {w.let(f'add {word} {bits}, {_word(0x7FFF, lanes)}')}, {odd}")
    is_nan = w.let(f"fcmp uno {single_} {value}, {value}")
    quiet = w.let(f"or {word} {bits}, {_word(0x400000, lanes)}")
    rounded = w.let(f"select {mask} {is_nan}, {word} {quiet}, {word} {rounded}")
    high = w.let(f"lshr {word} {rounded}, {_word(16, lanes)}")
    kept = w.let(f"and {word} {rounded}, {_word(0xFFFF0000, lanes)}")
    return (
        w.let(f"trunc {word} {high} to {vector('i16', lanes)}"),
        w.let(f"bitcast {word} {kept} to {single_}"),
    )


def _shorten_by_integers(w: Writer, form: Format, value: str, lanes: int) -> str:
    word, single_, mask = vector("i32", lanes), vector("float", lanes), vector("i1", lanes)
    shift = form.shift
    bits = w.let(f"bitcast {single_} {value} to {word}")
    magnitude = w.let(f"and {word} {bits}, {_word(0x7FFFFFFF, lanes)}")
    odd = w.let(f"and {word} {w.let(f'lshr {word} {magnitude}, {_word(shift, lanes)}')}, {_word(1, lanes)}")
    rebias = (1 << (shift - 1)) - 1 - ((127 - form.bias) << 23)
    normal = w.let(f"add {word} {w.let(f'add {word} {magnitude}, {_word(rebias, lanes)}')}, {odd}")
    normal = w.let(f"lshr {word} {normal}, {_word(shift, lanes)}")
    # a sum whose last place is the subnormals' step rounds them; the machine rounds to nearest even
    magic = (127 + 1 - form.bias - form.fraction + 23) << 23
    step = splat("float", single(2.0 ** (1 - form.bias - form.fraction + 23)), lanes)
    small = w.let(f"fadd {single_} {w.let(f'bitcast {word} {magnitude} to {single_}')}, {step}")
    small = w.let(f"sub {word} {w.let(f'bitcast {single_} {small} to {word}')}, {_word(magic, lanes)}")
    is_small = w.let(f"icmp ult {word} {magnitude}, {_word((128 - form.bias) << 23, lanes)}")
    result = w.let(f"select {mask} {is_small}, {word} {small}, {word} {normal}")
    result = w.intrinsic("llvm.umin", "i32", lanes, result, _word(form.top, lanes))
    payload = w.let(f"and {word} {magnitude}, {_word(0x7FFFFF, lanes)}")
    nan = w.let(f"lshr {word} {payload}, {_word(shift, lanes)}")
    nan = w.let(f"or {word} {nan}, {_word(form.nan, lanes)}")
    is_nan = w.let(f"icmp ugt {word} {magnitude}, {_word(0x7F800000, lanes)}")
    result = w.let(f"select {mask} {is_nan}, {word} {nan}, {word} {result}")
    sign = w.let(f"lshr {word} {bits}, {_word(32 - form.width, lanes)}")
    sign = w.let(f"and {word} {sign}, {_word(1 << (form.width - 1), lanes)}")
    return w.let(f"or {word} {result}, {sign}")


def round_to_odd(w: Writer, value: str, lanes: int) -> str:
    """An f64 as the f32 towards zero, its last bit set where that is inexact.

    Rounding the result again to a shorter format then rounds the f64 correctly, once (Boldo & Melquiond 2008).
    """
    word, single_, double = vector("i32", lanes), vector("float", lanes), vector("double", lanes)
    mask = vector("i1", lanes)
    near = w.let(f"fptrunc {double} {value} to {single_}")
    back = w.let(f"fpext {single_} {near} to {double}")
    bits = w.let(f"bitcast {single_} {near} to {word}")
    size, size_back = (w.intrinsic("llvm.fabs", "double", lanes, v) for v in (value, back))
    beyond = w.let(f"fcmp ogt {double} {size_back}, {size}")
    below = w.let(f"sub {word} {bits}, {w.let(f'zext {mask} {beyond} to {word}')}")
    inexact = w.let(f"fcmp one {double} {back}, {value}")
    odd = w.let(f"or {word} {below}, {w.let(f'zext {mask} {inexact} to {word}')}")
    return w.let(f"bitcast {word} {odd} to {single_}")


def _word(value: int, lanes: int) -> str:
    return splat("i32", str(value), lanes)
