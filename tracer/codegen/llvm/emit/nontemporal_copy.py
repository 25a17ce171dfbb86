"""Copies to memory that is not read again soon: its lines are neither fetched before nor kept in caches afterwards."""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.emit.frame import Frame
from tracer.codegen.llvm.toolchain.target import is_x86

NAME: Final = "library.stream"
LINE: Final = 64
"""Bytes of a cache line. A store may bypass the caches if it fills whole lines."""
_TEXT: Final = """\
FENCE_DECLARATION
define internal void @library.stream(ptr noalias %to, ptr noalias %from, i64 %count, i64 %size) #0 {
entry:
  %bytes = mul i64 %count, %size
  %address = ptrtoint ptr %to to i64
  %negated = sub i64 0, %address
  %to.line = and i64 %negated, 63
  %head = call i64 @llvm.umin.i64(i64 %to.line, i64 %bytes)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %head, i1 false)
  %rest = sub i64 %bytes, %head
  %lines = and i64 %rest, -64
  %end = add i64 %head, %lines
  %any = icmp ne i64 %lines, 0
  br i1 %any, label %line, label %tail
line:
  %i = phi i64 [ %head, %entry ], [ %i.next, %line ]
  %source = getelementptr i8, ptr %from, i64 %i
  %target = getelementptr i8, ptr %to, i64 %i
  %values = load <16 x i32>, ptr %source, align 1
  store <16 x i32> %values, ptr %target, align 64, !nontemporal !1
  %i.next = add i64 %i, 64
  %more = icmp ult i64 %i.next, %end
  br i1 %more, label %line, label %fence
fence:
  FENCE
  br label %tail
tail:
  %left = sub i64 %bytes, %end
  %last.source = getelementptr i8, ptr %from, i64 %end
  %last.target = getelementptr i8, ptr %to, i64 %end
  call void @llvm.memcpy.p0.p0.i64(ptr %last.target, ptr %last.source, i64 %left, i1 false)
  ret void
}
declare i64 @llvm.umin.i64(i64, i64)
"""


_FENCE: Final = "@llvm.x86.sse.sfence"


def stream_definition() -> str:
    """Return the routine that copies to[: count] = from[: count]. size: bytes of an element."""
    fence = (f"declare void {_FENCE}()", f"call void {_FENCE}()") if is_x86() else ("", "")
    return _TEXT.replace("FENCE_DECLARATION", fence[0]).replace("FENCE", fence[1])


def store_lines(f: Frame, kind: str, value: str, pointer: str, size: int) -> None:
    """Store a vector of whole lines past the caches, if it begins at a line. size: bytes of an element."""
    w = f.w
    past, plain, done = w.label("past"), w.label("plain"), w.label("stored")
    low = w.let(f"and i64 {w.let(f'ptrtoint ptr {pointer} to i64')}, {LINE - 1}")
    w.branch(w.let(f"icmp eq i64 {low}, 0"), past, plain)
    w.open(past)
    w.do(f"store {kind} {value}, ptr {pointer}, align {LINE}, !nontemporal !1")
    w.jump(done)
    w.open(plain)
    w.do(f"store {kind} {value}, ptr {pointer}, align {size}")
    w.jump(done)
    w.open(done)
    f.passes_caches = True


def fence(f: Frame) -> None:
    """Order the function's nontemporal stores before its return, so that other threads see them."""
    if f.passes_caches and is_x86():
        f.w.declarations[_FENCE] = f"declare void {_FENCE}()"
        f.w.do(f"call void {_FENCE}()")
