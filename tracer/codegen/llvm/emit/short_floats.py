"""Floats of 16 bits and fewer: widened to f32 to compute, rounded to nearest even after every operation.

A register of such a dtype is spelled twice: its bits as an integer, and its value as a float. Only integer operations
are used, except where the machine converts `half` itself. So nothing needs a run-time library and all machines give the
same bits. NaN stays NaN, quiet.
"""

from __future__ import annotations

from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.types import ELEMENT, single, splat, vector
from tracer.ir.dtypes import BF16, F8E8M0FNU, F16, DType
from tracer.ir.formats import FORMATS, Format

_QUIET = 0x7FC00000


def widen(w: Writer, dtype: DType, bits: str, lanes: int) -> str:
    """Return the f32 value of the short float with these bits."""
    element, word, value = ELEMENT[dtype], vector("i32", lanes), vector("float", lanes)
    if dtype == F16 and w.half_native:
        half = w.let(f"bitcast {vector('i16', lanes)} {bits} to {vector('half', lanes)}")
        return w.let(f"fpext {vector('half', lanes)} {half} to {value}")
    wide = w.let(f"zext {vector(element, lanes)} {bits} to {word}")
    if dtype == F8E8M0FNU:
        return _widen_exponent(w, wide, lanes)
    if dtype == BF16:
        return w.let(f"bitcast {word} {w.let(f'shl {word} {wide}, {_word(16, lanes)}')} to {value}")
    return _widen_by_integers(w, FORMATS[dtype], wide, lanes)


def _widen_by_integers(w: Writer, form: Format, wide: str, lanes: int) -> str:
    word, value, mask = vector("i32", lanes), vector("float", lanes), vector("i1", lanes)
    magnitude = w.let(f"and {word} {wide}, {_word(form.sign - 1, lanes)}")
    placed = w.let(f"shl {word} {magnitude}, {_word(form.shift, lanes)}")
    # the multiplication moves the exponent, and normalises the short format's subnormals
    scale = splat("float", single(2.0 ** (127 - form.bias)), lanes)
    scaled = w.let(f"fmul {value} {w.let(f'bitcast {word} {placed} to {value}')}, {scale}")
    finite = w.let(f"bitcast {value} {scaled} to {word}")
    result = _with_specials(w, form, magnitude, placed, finite, lanes) if form.specials else finite
    sign = w.let(f"and {word} {wide}, {_word(form.sign, lanes)}")
    sign = w.let(f"shl {word} {sign}, {_word(32 - form.width, lanes)}")
    bits = w.let(f"or {word} {result}, {sign}")
    if form.unsigned_zero:
        is_nan = w.let(f"icmp eq {word} {wide}, {_word(form.nan, lanes)}")
        bits = w.let(f"select {mask} {is_nan}, {word} {_word(_QUIET, lanes)}, {word} {bits}")
    return w.let(f"bitcast {word} {bits} to {value}")


def _with_specials(w: Writer, form: Format, magnitude: str, placed: str, finite: str, lanes: int) -> str:
    word, mask = vector("i32", lanes), vector("i1", lanes)
    special = w.let(f"icmp uge {word} {magnitude}, {_word(form.top, lanes)}")
    high = w.let(f"or {word} {placed}, {_word(0x7F800000, lanes)}")
    is_nan = w.let(f"icmp uge {word} {magnitude}, {_word(form.first_nan, lanes)}")
    quiet = w.let(f"or {word} {high}, {_word(0x400000, lanes)}")
    high = w.let(f"select {mask} {is_nan}, {word} {quiet}, {word} {high}")
    return w.let(f"select {mask} {special}, {word} {high}, {word} {finite}")


def _widen_exponent(w: Writer, wide: str, lanes: int) -> str:
    word, mask = vector("i32", lanes), vector("i1", lanes)
    bits = w.let(f"shl {word} {wide}, {_word(23, lanes)}")
    is_least = w.let(f"icmp eq {word} {wide}, {_word(0, lanes)}")
    is_nan = w.let(f"icmp eq {word} {wide}, {_word(0xFF, lanes)}")
    bits = w.let(f"select {mask} {is_least}, {word} {_word(0x400000, lanes)}, {word} {bits}")
    bits = w.let(f"select {mask} {is_nan}, {word} {_word(_QUIET, lanes)}, {word} {bits}")
    return w.let(f"bitcast {word} {bits} to {vector('float', lanes)}")


def shorten(w: Writer, dtype: DType, value: str, lanes: int) -> tuple[str, str]:
    """Round an f32 to the short float: return its bits and their value in f32."""
    if dtype == BF16:
        return _shorten_bf16(w, value, lanes)
    if dtype == F16 and w.half_native:
        half = w.let(f"fptrunc {vector('float', lanes)} {value} to {vector('half', lanes)}")
        bits = w.let(f"bitcast {vector('half', lanes)} {half} to {vector('i16', lanes)}")
        return bits, w.let(f"fpext {vector('half', lanes)} {half} to {vector('float', lanes)}")
    if dtype == F8E8M0FNU:
        bits = _shorten_to_exponent(w, value, lanes)
    else:
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
    normal = w.let(f"add {word} {w.let(f'add {word} {magnitude}, {_word(form.rebias, lanes)}')}, {odd}")
    normal = w.let(f"lshr {word} {normal}, {_word(shift, lanes)}")
    # a sum whose last place is the subnormals' step rounds them to nearest even, as the machine's additions do
    magic = (127 + form.step) << 23
    step = splat("float", single(2.0**form.step), lanes)
    small = w.let(f"fadd {single_} {w.let(f'bitcast {word} {magnitude} to {single_}')}, {step}")
    small = w.let(f"sub {word} {w.let(f'bitcast {single_} {small} to {word}')}, {_word(magic, lanes)}")
    is_small = w.let(f"icmp ult {word} {magnitude}, {_word(form.first_normal, lanes)}")
    result = w.let(f"select {mask} {is_small}, {word} {small}, {word} {normal}")
    result = w.intrinsic("llvm.umin", "i32", lanes, result, _word(form.top, lanes))
    is_nan = w.let(f"icmp ugt {word} {magnitude}, {_word(0x7F800000, lanes)}")
    if form.specials:
        payload = w.let(f"and {word} {magnitude}, {_word(0x7FFFFF, lanes)}")
        nan = w.let(f"lshr {word} {payload}, {_word(shift, lanes)}")
        nan = w.let(f"or {word} {nan}, {_word(form.nan, lanes)}")
        result = w.let(f"select {mask} {is_nan}, {word} {nan}, {word} {result}")
    sign = w.let(f"lshr {word} {bits}, {_word(32 - form.width, lanes)}")
    sign = w.let(f"and {word} {sign}, {_word(form.sign, lanes)}")
    signed = w.let(f"or {word} {result}, {sign}")
    if form.unsigned_zero:
        is_zero = w.let(f"icmp eq {word} {result}, {_word(0, lanes)}")
        signed = w.let(f"select {mask} {is_zero}, {word} {_word(0, lanes)}, {word} {signed}")
    return (
        signed if form.specials else w.let(f"select {mask} {is_nan}, {word} {_word(form.nan, lanes)}, {word} {signed}")
    )


def _shorten_to_exponent(w: Writer, value: str, lanes: int) -> str:
    """Return the nearest power of two, ties upwards; NaN for values that are not positive.

    A value above 2**-127, f32's only subnormal among them, rounds to the next one, as in ml_dtypes and XLA.
    """
    word, mask = vector("i32", lanes), vector("i1", lanes)
    bits = w.let(f"bitcast {vector('float', lanes)} {value} to {word}")
    bits = w.intrinsic("llvm.umin", "i32", lanes, bits, _word(_QUIET, lanes))  # a set sign bit is a larger word
    is_small = w.let(f"icmp ult {word} {bits}, {_word(0x800000, lanes)}")
    half = w.let(f"select {mask} {is_small}, {word} {_word(0x3FFFFF, lanes)}, {word} {_word(0x400000, lanes)}")
    rounded = w.let(f"lshr {word} {w.let(f'add {word} {bits}, {half}')}, {_word(23, lanes)}")
    rounded = w.intrinsic("llvm.umin", "i32", lanes, rounded, _word(0xFF, lanes))
    is_zero = w.let(f"icmp eq {word} {bits}, {_word(0, lanes)}")
    return w.let(f"select {mask} {is_zero}, {word} {_word(0xFF, lanes)}, {word} {rounded}")


def round_to_odd(w: Writer, value: str, lanes: int) -> str:
    """Return an f64 as the f32 towards zero, its last bit set where that is inexact.

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
