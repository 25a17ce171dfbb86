"""Compute statements: the table of scalar operations, with short floats computing in f32."""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.emit.convert import convert
from tracer.codegen.llvm.emit.frame import Frame, as_f32
from tracer.codegen.llvm.emit.lookup import lookup
from tracer.codegen.llvm.emit.outlined_code import math_call
from tracer.codegen.llvm.emit.scalar_ops import Place, nextafter, spell
from tracer.codegen.llvm.emit.short_floats import shorten, widen
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.types import ELEMENT, SHORT_FLOATS, iota, vector
from tracer.ir.dtypes import F32, I64, DType, is_integer
from tracer.ir.loop import Compute, Operand
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp

_MATH: Final = frozenset(MATH_FUNCTIONS)


def compute(f: Frame, s: Compute) -> None:
    """Write result = op(*operands)."""
    result, op = s.result, s.op
    lanes = f.lanes if result in f.varying else 0
    dtype = s.operands[-1].dtype
    if lanes and op is ScalarOp.ADD and dtype == I64:
        _count_on(f, s)
    if op is ScalarOp.CONVERT and s.operands[0] in f.counters and is_integer(result.dtype):
        f.define(result, _counted(f, f.counters[s.operands[0]], result.dtype))
    elif op is ScalarOp.CONVERT:
        source, value = as_f32(f, s.operands[0], lanes)
        same_bits = dtype == result.dtype
        converted = (f.operand(s.operands[0], lanes), None) if same_bits else (
            convert(f.w, source, result.dtype, value, lanes))  # fmt: skip
        f.define(result, *converted)
    elif op is ScalarOp.BITCAST:
        f.define(result, _bitcast(f, s.operands[0], result.dtype, lanes))
    elif op is ScalarOp.NEXTAFTER:
        f.define(result, _nextafter(f, s.operands[0], s.operands[1], lanes))
    elif op is ScalarOp.LOOKUP:
        index, *values = s.operands
        f.define(result, lookup(f.w, dtype, lanes, f.operand(index, lanes), [f.operand(v) for v in values]))
    elif not lanes and op in _MATH and (callee := f.functions.get(s.callee)):
        f.define(result, math_call(f, s, callee))
    elif dtype not in SHORT_FLOATS or op is ScalarOp.SELECT:
        f.define(result, spell(f.w, op, dtype, lanes, *[f.operand(x, lanes) for x in s.operands]))
    else:
        value = spell(f.w, op, F32, lanes, *[f.wide(x, lanes) for x in s.operands])
        if result.dtype in SHORT_FLOATS:
            f.define(result, *shorten(f.w, result.dtype, value, lanes))
        else:
            f.define(result, value)


def _count_on(f: Frame, s: Compute) -> None:
    """Keep a sum as a counter where it adds a lane-invariant value to a counter."""
    for counter, other in (s.operands, s.operands[::-1]):
        if counter in f.counters and other not in f.varying:
            f.counters[s.result] = f.w.let(f"add i64 {f.counters[counter]}, {f.operand(other)}")
            return


def _counted(f: Frame, first: str, dtype: DType) -> str:
    """Return the counter whose first lane is given, as integers of another width, without making a wider vector."""
    element = ELEMENT[dtype]
    narrow = f.w.let(f"trunc i64 {first} to {element}") if dtype.itemsize < I64.itemsize else first
    lanes = f.w.splat(element, narrow, f.lanes)
    return f.w.let(f"add {vector(element, f.lanes)} {lanes}, {iota(element, f.lanes)}")


def apply(w: Writer, op: ScalarOp, dtype: DType, a: str, b: str, lanes: int) -> str:
    """Return op(a, b) on register values. Short floats are given and returned as their bits."""
    if dtype not in SHORT_FLOATS:
        return spell(w, op, dtype, lanes, a, b)
    wide = spell(w, op, F32, lanes, widen(w, dtype, a, lanes), widen(w, dtype, b, lanes))
    return shorten(w, dtype, wide, lanes)[0]


def _bitcast(f: Frame, operand: Operand, target: DType, lanes: int) -> str:
    value = f.operand(operand, lanes)
    source, result = ELEMENT[operand.dtype], ELEMENT[target]
    if operand.dtype.itemsize != target.itemsize or "i1" in (source, result):
        f.fail(f"bitcast from {operand.dtype} to {target}")
    if source == result:
        return value
    return f.w.let(f"bitcast {vector(source, lanes)} {value} to {vector(result, lanes)}")


def _nextafter(f: Frame, a: Operand, b: Operand, lanes: int) -> str:
    w, dtype = f.w, a.dtype
    kind, value = as_f32(f, a, lanes)
    other = as_f32(f, b, lanes)[1]
    word = f"i{dtype.itemsize * 8}"
    bits = [f.operand(x, lanes) for x in (a, b)]
    if dtype not in SHORT_FLOATS:
        floats = vector(ELEMENT[dtype], lanes)
        bits = [w.let(f"bitcast {floats} {x} to {vector(word, lanes)}") for x in bits]
    following = nextafter(Place(w, dtype, lanes), value, other, *bits)
    floats = vector(ELEMENT[kind], lanes)
    total = w.let(f"fadd {floats} {value}, {other}")
    is_nan = w.let(f"fcmp uno {floats} {value}, {other}")
    if dtype in SHORT_FLOATS:
        return Place(w, dtype, lanes).choose(is_nan, shorten(w, dtype, total, lanes)[0], following)
    following = w.let(f"bitcast {vector(word, lanes)} {following} to {floats}")
    return Place(w, dtype, lanes).choose(is_nan, total, following)
