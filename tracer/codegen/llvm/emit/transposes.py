"""Transpose statements: calls of the routine for elements of their size."""

from __future__ import annotations

from tracer.codegen.llvm.emit.frame import Frame
from tracer.codegen.llvm.kernels.transpose import PAST, SYMBOL
from tracer.ir.loop import Transpose


def transpose(f: Frame, s: Transpose) -> None:
    """Call the helper for elements of this size."""
    size = s.target.buffer.dtype.itemsize
    target = f.pointer(s.target.buffer, s.target.start)
    source = f.pointer(s.source.buffer, s.source.start)
    strides = f"ptr {target}, i64 {s.target_stride}, ptr {source}, i64 {s.source_stride}"
    name = f"@{SYMBOL}{size}{'_past' if s.past and size in PAST else ''}"
    f.w.declarations[name] = f"declare void {name}(ptr, i64, ptr, i64, i64, i64)"
    f.w.do(f"call void {name}({strides}, i64 {f.operand(s.rows)}, i64 {f.operand(s.columns)})")
