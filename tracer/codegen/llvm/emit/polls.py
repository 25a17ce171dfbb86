"""Polls of the stop word. A loop polls where its iterations, times the steps of each, are too many to wait for.

A step is a statement on one register, some cycles at most. While a function is written, its frame counts the steps
since the last poll, loops multiplied out. A loop that would exceed `PATIENCE` polls every few iterations, counted by
its index. So neither short nor long iterations pay. Polls choose no instruction of the body: bits stay.
"""

from __future__ import annotations

from typing import Final

from tracer.codegen.llvm.emit.frame import Frame
from tracer.ir import loop
from tracer.ir.loop.walk import statements_of
from tracer.ir.scalar import ScalarOp

PATIENCE: Final = 1 << 24
"""Steps between polls: some 10 ms, or 0.2 s where every one misses the caches."""
_SOME: Final = 1 << 12
"""Steps between the polls of a loop that polls, as far as its iterations allow."""
_REGISTER: Final = 32  # bytes
_LINE: Final = 64  # bytes


def patient(module: loop.Module) -> bool:
    """Return whether calls may begin to listen to Ctrl-C late: a loop of unknown length polls on the call's own thread.

    Threads share nothing of it, and no library reads the stop word.
    """
    kinds = [s for function in module.functions for s in statements_of(function.body)]
    shared = any(isinstance(s, loop.Invoke) and s.share is not None for s in kinds)
    outside = any(isinstance(s, loop.Library | loop.Callback) for s in kinds)
    return any(isinstance(s, loop.While) for s in kinds) and not shared and not outside


def shares(module: loop.Module) -> dict[str, int]:
    """Return the longest range that threads share of each function, by its name."""
    longest: dict[str, int] = {}
    for function in module.functions:
        for s in statements_of(function.body):
            if isinstance(s, loop.Invoke) and isinstance(s.share, loop.Share):
                longest[s.function] = max(s.share.count, longest.get(s.function, 0))
    return longest


def part_lengths(function: loop.Function, count: int) -> dict[tuple[object, object], int]:
    """Return a bound on the length of the ranges (start, stop) within a part of `count` iterations."""
    begin, end = function.parameters[-2:]
    bounds: dict[tuple[object, object], int] = {(begin, end): count}
    for s in statements_of(function.body):
        if isinstance(s, loop.Compute) and s.op is ScalarOp.SUB and s.operands == (end, begin):
            bounds[None, s.result] = count
    return bounds


def steps(f: Frame, s: loop.Statement) -> int:
    """Return the steps of a statement that holds no other statements."""
    match s:
        case loop.Compute() | loop.Load() if s.result in f.varying:
            return max(f.lanes * s.result.dtype.itemsize // _REGISTER, 1)
        case loop.Copy():
            return s.count * s.target.buffer.dtype.itemsize // _LINE + 1
        case loop.Transpose():
            sizes = [int(x.value) if isinstance(x, loop.Constant) else _SOME for x in (s.rows, s.columns)]
            return sizes[0] * sizes[1]
        case loop.Library("mark" | "tick" | "tock" | "tick_processors" | "tock_processors"):
            return 1
        case loop.Library():
            return PATIENCE + 1  # a kernel that found the word set has left its results unfinished
        case loop.Callback():
            return _SOME
        case _:
            return 1


def trips(f: Frame, s: loop.For) -> int | None:
    """Return a bound on a loop's iterations; None where only the call knows."""
    if isinstance(s.start, loop.Constant) and isinstance(s.stop, loop.Constant):
        indices = len(range(int(s.start.value), int(s.stop.value), s.step))
    else:
        start = None if isinstance(s.start, loop.Constant) else s.start
        known = f.part_lengths.get((start, s.stop)) if isinstance(s.stop, loop.Register) and s.step == 1 else None
        if known is None:
            return None
        indices = known
    return -(-indices // s.lanes)


def latch(f: Frame, index: str, count: int | None, step: int) -> int:
    """Poll at the end of a loop's iteration if need be. Return the steps of the loop since its last poll.

    count: a bound on the iterations, or None. index: the loop's, which counts by `step`.
    """
    each = f.unpolled + 1
    if (count is not None and count * each <= PATIENCE) or not f.hears:
        return (count or 1) * each
    every = 1 << max((_SOME // each).bit_length() - 1, 0)
    if every == 1 or abs(step) & (abs(step) - 1):
        f.poll()
        return each
    w = f.w
    look, go_on = w.label("look"), w.label("go")
    bits = w.let(f"and i64 {index}, {(every - 1) * abs(step)}")
    w.branch(w.let(f"icmp eq i64 {bits}, 0"), look, go_on, unlikely=True)
    w.open(look)
    f.poll()
    w.jump(go_on)
    w.open(go_on)
    return each * every


def after(f: Frame, count: int) -> None:
    """Count the steps of a statement, and poll where that is too many since the last poll."""
    f.unpolled += count
    if f.unpolled > PATIENCE and f.hears:
        f.poll()
