"""Loads, stores and updates of one element; a false mask sends the access to scratch memory, without a branch."""

from __future__ import annotations

from tracer.codegen.llvm.emit.compute import apply
from tracer.codegen.llvm.emit.frame import Frame
from tracer.codegen.llvm.emit.writer import Writer
from tracer.codegen.llvm.toolchain.types import ELEMENT, splat, zero
from tracer.ir.dtypes import BOOL, DType
from tracer.ir.loop import Load, Operand, Store, Update


def read(w: Writer, dtype: DType, pointer: str) -> str:
    """Return the element at `pointer` in its register form."""
    if dtype == BOOL:
        return w.let(f"icmp ne i8 {w.let(f'load i8, ptr {pointer}, align 1')}, 0")
    return w.let(f"load {ELEMENT[dtype]}, ptr {pointer}, align {dtype.itemsize}")


def write(w: Writer, dtype: DType, pointer: str, value: str) -> None:
    """Store a register's value at `pointer`."""
    if dtype == BOOL:
        w.do(f"store i8 {w.let(f'zext i1 {value} to i8')}, ptr {pointer}, align 1")
    else:
        w.do(f"store {ELEMENT[dtype]} {value}, ptr {pointer}, align {dtype.itemsize}")


def guarded(f: Frame, pointer: str, condition: str | None) -> str:
    """Return `pointer` where the condition holds or is absent, else scratch memory that is never read."""
    if condition is None:
        return pointer
    sink = f.scratch("sink", "[16 x i8]", 16)
    return f.w.let(f"select i1 {condition}, ptr {pointer}, ptr {sink}")


def _condition(f: Frame, mask: Operand | None) -> str | None:
    return None if mask is None else f.operand(mask)


def fill_value(f: Frame, s: Load, lanes: int) -> str:
    """Return the value of a masked load where its mask is false: its `fill`, or zero."""
    if s.fill is not None:
        return f.operand(s.fill, lanes)
    return splat(ELEMENT[s.result.dtype], zero(s.result.dtype), lanes)


def load(f: Frame, s: Load) -> None:
    """Write result = buffer[address], or the fill."""
    condition = _condition(f, s.mask)
    value = read(f.w, s.buffer.dtype, guarded(f, f.pointer(s.buffer, s.address), condition))
    if condition is not None:
        kind, fill = ELEMENT[s.result.dtype], fill_value(f, s, 0)
        value = f.w.let(f"select i1 {condition}, {kind} {value}, {kind} {fill}")
    f.define(s.result, value)


def store(f: Frame, s: Store) -> None:
    """Write buffer[address] = value."""
    pointer = guarded(f, f.pointer(s.buffer, s.address), _condition(f, s.mask))
    write(f.w, s.buffer.dtype, pointer, f.operand(s.value))


def update(f: Frame, s: Update) -> None:
    """Write buffer[address] = op(buffer[address], value)."""
    pointer = guarded(f, f.pointer(s.buffer, s.address), _condition(f, s.mask))
    update_at(f, s, pointer, f.operand(s.value))


def update_at(f: Frame, s: Update, pointer: str, value: str) -> None:
    """Read, combine and write one element."""
    old = read(f.w, s.buffer.dtype, pointer)
    write(f.w, s.buffer.dtype, pointer, apply(f.w, s.op, s.buffer.dtype, old, value, 0))
