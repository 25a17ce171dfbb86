"""Prefixes of a vector's lanes by shuffles: halves joined by halves, as `ir.loop.Prefix` says."""

from __future__ import annotations

from tracer.codegen.llvm.emit.compute import apply
from tracer.codegen.llvm.emit.frame import Frame
from tracer.codegen.llvm.toolchain.types import ELEMENT, indices, literal, splat, vector
from tracer.ir.loop import Constant, Prefix
from tracer.ir.reductions import identity


def prefix(f: Frame, s: Prefix) -> None:
    """Write result = op(before, lanes so far), last = op(before, all lanes), in each lane.

    Only one operation of an iteration's `last` depends on the iteration before.
    """
    w, n, dtype = f.w, f.lanes, s.value.dtype
    element = ELEMENT[dtype]
    kind, value, before = vector(element, n), f.operand(s.value, n), f.operand(s.before, n)
    if f.mask is not None:
        neutral = splat(element, literal(Constant(identity(s.op, dtype), dtype)), n)
        value = w.let(f"select {vector('i1', n)} {f.mask}, {kind} {value}, {kind} {neutral}")
    half = 1
    while half < n:
        ends = [lane // (2 * half) * 2 * half + half - 1 for lane in range(n)]
        end = w.let(f"shufflevector {kind} {value}, {kind} poison, {indices(*ends)}")
        joined = apply(w, s.op, dtype, end, value, n)
        taken = indices(*(n + lane if lane & half else lane for lane in range(n)))
        value = w.let(f"shufflevector {kind} {value}, {kind} {joined}, {taken}")
        half *= 2
    whole = w.let(f"shufflevector {kind} {value}, {kind} poison, {indices(*[n - 1] * n)}")
    f.define(s.result, apply(w, s.op, dtype, before, value, n))
    f.define(s.last, apply(w, s.op, dtype, before, whole, n))
