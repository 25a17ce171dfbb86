"""Copies to memory that is not read again soon: its lines are neither fetched before nor kept in caches afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tracer.codegen.llvm.emit.frame import Frame
from tracer.codegen.llvm.toolchain.native_text import expanded, routines
from tracer.codegen.llvm.toolchain.target import is_x86

NAME: Final = "library.stream"
LINE: Final = 64
"""Bytes of a cache line. A store may bypass the caches if it fills whole lines."""
_FENCE: Final = "@llvm.x86.sse.sfence"


def stream_definition() -> str:
    """Return the routine that copies to[: count] = from[: count]. size: bytes of an element."""
    fence = (f"declare void {_FENCE}()", f"call void {_FENCE}()") if is_x86() else ("", "")
    values = {"Stream.fence_declaration": fence[0], "Stream.fence": fence[1]}
    return expanded(routines(Path(__file__).with_name("ll"), ("stream",)), values)


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
