"""Compute statements as expressions: the table of scalar operations, with short floats computing in f32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tracer.codegen.cuda.scalar_ops import Place, spell
from tracer.codegen.cuda.types import SHORT_FLOATS, type_name
from tracer.ir.dtypes import (
    BOOL,
    F32,
    F64,
    I32,
    I64,
    NARROW_INTEGERS,
    U32,
    U64,
    DType,
    bits,
    is_float,
    is_integer,
    is_signed,
    short_name,
    wide_dtype,
)
from tracer.ir.loop import Compute, Operand
from tracer.ir.scalar import ScalarOp

Spell = Callable[[Operand], str]  # an operand's name or literal


def expression(s: Compute, operand: Spell, helpers: dict[str, None]) -> str:
    """Return the right-hand side of `result = op(*operands)`, and add the helpers that it calls to `helpers`."""
    dtype = s.operands[-1].dtype
    place = Place(dtype, helpers, s.operands[-1])
    values = [operand(o) for o in s.operands]
    match s.op:
        case ScalarOp.CONVERT:
            return convert(place, s.result.dtype, values[0])
        case ScalarOp.BITCAST:
            return bitcast(dtype, s.result.dtype, values[0])
        case ScalarOp.NEXTAFTER:
            return _nextafter(place, *values)
        case ScalarOp.LOOKUP:
            return f"{place.table(values[1:])}[{values[0]} & 15]"
        case _:
            pass
    if dtype not in SHORT_FLOATS or s.op is ScalarOp.SELECT:
        return spell(s.op, place, *values)
    wide = spell(s.op, Place(F32, helpers), *[widen(place, value) for value in values])
    return wide if s.result.dtype == BOOL else shorten(place, dtype, wide)


def binary(op: ScalarOp, dtype: DType, a: str, b: str, helpers: dict[str, None]) -> str:
    """Return op(a, b) on names."""
    place = Place(dtype, helpers)
    if dtype not in SHORT_FLOATS:
        return spell(op, place, a, b)
    return shorten(place, dtype, spell(op, Place(F32, helpers), widen(place, a), widen(place, b)))


def widen(p: Place, value: str) -> str:
    """Return a short float as f32; any other value unchanged."""
    return p.of_dtype("widen", value) if p.dtype in SHORT_FLOATS else value


def shorten(p: Place, target: DType, value: str) -> str:
    """Return an f32 rounded to a short float."""
    return p.call(f"shorten_{short_name(target)}", value)


def convert(p: Place, target: DType, value: str) -> str:
    """Return a value converted from the place's dtype."""
    source = F32 if p.dtype in SHORT_FLOATS else p.dtype
    if p.dtype == target:
        return value
    if p.dtype in NARROW_INTEGERS:
        return convert(Place(wide_dtype(p.dtype), p.helpers), target, _spread(p.dtype, value))
    wide = widen(p, value)
    if target in NARROW_INTEGERS:
        whole = p.call(f"{short_name(target)}_of_{short_name(source)}", wide) if is_float(source) else wide
        return f"(u8)({whole} & 0x{(1 << bits(target)) - 1:x})"
    if target == BOOL:
        return f"{wide} != 0"
    if target in SHORT_FLOATS:
        if source == F64:
            wide = p.call("round_to_odd", wide)
        return shorten(p, target, wide if source in (F32, F64) else f"(f32){wide}")
    if is_float(source) and is_integer(target):
        return p.call(f"{short_name(target)}_of_{short_name(source)}", wide)
    return wide if source == target else f"({type_name(target)}){wide}"


def _spread(dtype: DType, value: str) -> str:
    """Return a narrow integer sign-extended to the bits of its byte."""
    free = 8 - bits(dtype)
    if is_signed(dtype):
        return f"((i8)({value} << {free}) >> {free})"
    return f"({value} & 0x{(1 << bits(dtype)) - 1:x})"


_BITS: Final = {
    (F32, I32): "__float_as_int", (F32, U32): "__float_as_uint",
    (I32, F32): "__int_as_float", (U32, F32): "__uint_as_float",
    (F64, I64): "__double_as_longlong", (F64, U64): "(u64)__double_as_longlong",
    (I64, F64): "__longlong_as_double", (U64, F64): "__longlong_as_double",
}  # fmt: skip


def bitcast(source: DType, target: DType, value: str) -> str:
    """Return the bits of a value as another dtype; short floats are integers already."""
    known = _BITS.get((source, target))
    return f"{known}({value})" if known is not None else f"({type_name(target)}){value}"


def _nextafter(p: Place, a: str, b: str) -> str:
    """Return the next float, or a sum that is NaN where one operand is NaN."""
    x, y = widen(p, a), widen(p, b)
    short = p.dtype in SHORT_FLOATS
    bits = (a, b) if short else (bitcast(p.dtype, _word(p.dtype), a), bitcast(p.dtype, _word(p.dtype), b))
    following = p.of_dtype("nextafter", x, y, *bits)
    if short:
        return f"{x} != {x} || {y} != {y} ? {shorten(p, p.dtype, f'{x} + {y}')} : {following}"
    return f"{x} != {x} || {y} != {y} ? {x} + {y} : {bitcast(_word(p.dtype), p.dtype, following)}"


def _word(dtype: DType) -> DType:
    return U32 if dtype == F32 else U64
