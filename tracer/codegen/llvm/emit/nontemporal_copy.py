"""Stores to memory that is not read again soon: its lines are neither fetched before nor kept in caches afterwards."""

from __future__ import annotations

from tracer.codegen.llvm.emit.frame import Frame
from tracer.codegen.llvm.kernels.nontemporal import FENCE, LINE
from tracer.codegen.llvm.toolchain.target import is_x86


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
        f.w.declarations[FENCE] = f"declare void {FENCE}()"
        f.w.do(f"call void {FENCE}()")
