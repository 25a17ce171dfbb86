"""CONVERT from any dtype to any other, spelled so that every lane is defined and all machines agree."""

from __future__ import annotations

from tracer.codegen.llvm.emit.scalar_ops import Place
from tracer.codegen.llvm.emit.short_floats import round_to_odd, shorten
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.types import ELEMENT, SHORT_FLOATS, splat, vector
from tracer.ir.dtypes import BOOL, F32, F64, DType, bits, is_float, is_narrow, is_signed, wide_dtype


def convert(w: Writer, source: DType, target: DType, value: str, lanes: int) -> tuple[str, str | None]:
    """Return the converted value, and its f32 twin for a short float.

    `value` is of dtype `source`. A short float is given as its f32 value, and `source` is f32.
    """
    if target in SHORT_FLOATS:
        return _to_short_float(w, source, target, value, lanes)
    if source == target:
        return value, None
    if is_narrow(source):
        return convert(w, wide_dtype(source), target, _spread(w, source, value, lanes), lanes)
    if is_narrow(target):
        return _to_narrow(w, source, target, value, lanes), None
    p, kind = Place(w, source, lanes), vector(ELEMENT[target], lanes)
    if target == BOOL:
        zero = p.real(0.0) if is_float(source) else p.constant(0)
        return w.let(f"{'fcmp une' if is_float(source) else 'icmp ne'} {p.type} {value}, {zero}"), None
    if is_float(target):
        return _to_float(p, kind, value), None
    if is_float(source):
        return _saturate(p, target, value, bits(target)), None
    if source.itemsize == target.itemsize and source != BOOL:
        return value, None
    if source != BOOL and source.itemsize > target.itemsize:
        return w.let(f"trunc {p.type} {value} to {kind}"), None
    return w.let(f"{'sext' if is_signed(source) else 'zext'} {p.type} {value} to {kind}"), None


def _spread(w: Writer, source: DType, value: str, lanes: int) -> str:
    """Return a narrow integer sign-extended to the bits of its byte."""
    word, width = vector("i8", lanes), bits(source)
    if not is_signed(source):
        return w.let(f"and {word} {value}, {splat('i8', str((1 << width) - 1), lanes)}")
    free = splat("i8", str(8 - width), lanes)
    return w.let(f"ashr {word} {w.let(f'shl {word} {value}, {free}')}, {free}")


def _to_narrow(w: Writer, source: DType, target: DType, value: str, lanes: int) -> str:
    """Return a value converted to a narrow integer: floats saturate, integers wrap, and the high bits are clear."""
    width, wide = bits(target), wide_dtype(target)
    if is_float(source):
        value = _saturate(Place(w, source, lanes), wide, value, width)
    else:
        value, _ = convert(w, source, wide, value, lanes)
    return w.let(f"and {vector('i8', lanes)} {value}, {splat('i8', str((1 << width) - 1), lanes)}")


def _to_float(p: Place, kind: str, value: str) -> str:
    if p.dtype == F32:
        return p.w.let(f"fpext {p.type} {value} to {kind}")
    if p.dtype == F64:
        return p.w.let(f"fptrunc {p.type} {value} to {kind}")
    return p.w.let(f"{'s' if is_signed(p.dtype) else 'u'}itofp {p.type} {value} to {kind}")


def _to_short_float(w: Writer, source: DType, target: DType, value: str, lanes: int) -> tuple[str, str]:
    if source == F64:
        value = round_to_odd(w, value, lanes)
    elif source != F32:
        value, _ = convert(w, source, F32, value, lanes)
    return shorten(w, target, value, lanes)


def _saturate(p: Place, target: DType, value: str, bits: int) -> str:
    """Truncate a float to an integer of some bits, saturating, NaN to 0.

    `llvm.fptosi.sat` means this too, but LLVM 22 takes it apart lane by lane on x86. So values in range are converted,
    and the limits replace all other values. Both bounds are powers of two or zero, exact in the source's dtype.
    """
    w, signed = p.w, is_signed(target)
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    above = w.let(f"fcmp oge {p.type} {value}, {p.real(float(high))}")
    inside = w.let(f"fcmp oge {p.type} {value}, {p.real(float(low))}")
    below = w.let(f"fcmp olt {p.type} {value}, {p.real(float(low))}")
    mask = vector("i1", p.lanes)
    inside = w.let(f"and {mask} {inside}, {w.let(f'xor {mask} {above}, {_all_ones(p.lanes)}')}")
    safe = p.choose(inside, value, p.real(0.0))
    integer, kind = Place(w, target, p.lanes), vector(ELEMENT[target], p.lanes)
    if bits < 32:
        word = vector("i32", p.lanes)
        whole = w.let(f"trunc {word} {w.let(f'fptosi {p.type} {safe} to {word}')} to {kind}")
    else:
        whole = w.let(f"fpto{'s' if signed else 'u'}i {p.type} {safe} to {kind}")
    whole = integer.choose(above, integer.constant(high - 1), whole)
    return integer.choose(below, integer.constant(low), whole)


def _all_ones(lanes: int) -> str:
    return "splat (i1 true)" if lanes else "true"
