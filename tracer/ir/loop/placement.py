"""Placement rules of the loop IR: the statements that the surrounding loops allow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tracer.ir import loop
from tracer.ir.dtypes import is_float
from tracer.ir.loop.varying import varying_registers
from tracer.ir.scalar import ScalarOp

_INEXACT = (ScalarOp.ADD, ScalarOp.MUL)

# the loops that a statement may not stand in, at any depth
_BANNED: dict[type, tuple[loop.LoopKind, ...]] = {
    loop.Barrier: (loop.LoopKind.VECTOR,),
    loop.Shuffle: (loop.LoopKind.VECTOR,),
    loop.Copy: (loop.LoopKind.VECTOR,),
    loop.Transpose: (loop.LoopKind.VECTOR, loop.LoopKind.BLOCK, loop.LoopKind.THREAD),
    loop.Leave: (loop.LoopKind.PARALLEL,),
    loop.Invoke: (loop.LoopKind.VECTOR, loop.LoopKind.BLOCK, loop.LoopKind.THREAD),
    loop.Library: (loop.LoopKind.VECTOR, loop.LoopKind.BLOCK, loop.LoopKind.THREAD),
    loop.Callback: (loop.LoopKind.VECTOR, loop.LoopKind.PARALLEL, loop.LoopKind.BLOCK, loop.LoopKind.THREAD),
    loop.StackPush: (loop.LoopKind.VECTOR, loop.LoopKind.PARALLEL, loop.LoopKind.BLOCK, loop.LoopKind.THREAD),
    loop.StackPop: (loop.LoopKind.VECTOR, loop.LoopKind.PARALLEL, loop.LoopKind.BLOCK, loop.LoopKind.THREAD),
    loop.StackRead: (loop.LoopKind.VECTOR, loop.LoopKind.BLOCK, loop.LoopKind.THREAD),
    loop.StackWrite: (loop.LoopKind.VECTOR, loop.LoopKind.PARALLEL, loop.LoopKind.BLOCK, loop.LoopKind.THREAD),
    loop.StackLength: (loop.LoopKind.VECTOR, loop.LoopKind.BLOCK, loop.LoopKind.THREAD),
    loop.StackReset: (loop.LoopKind.VECTOR, loop.LoopKind.PARALLEL, loop.LoopKind.BLOCK, loop.LoopKind.THREAD),
}
_BANNED_LOOPS: dict[loop.LoopKind, tuple[loop.LoopKind, ...]] = {
    loop.LoopKind.SERIAL: (),
    loop.LoopKind.PARALLEL: (loop.LoopKind.VECTOR, loop.LoopKind.BLOCK, loop.LoopKind.THREAD),
    loop.LoopKind.VECTOR: (loop.LoopKind.VECTOR,),
    loop.LoopKind.BLOCK: (loop.LoopKind.VECTOR, loop.LoopKind.PARALLEL, loop.LoopKind.THREAD),
    loop.LoopKind.THREAD: (loop.LoopKind.VECTOR,),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Loops and branches that enclose a statement.

    loops: the kinds of the loops around it. by_lane, by_thread: the registers that vary within them.
    divergent: whether threads of one block may disagree on reaching the statement.
    """

    loops: tuple[loop.LoopKind, ...] = ()
    by_lane: frozenset[loop.Operand] = field(default_factory=frozenset)
    by_thread: frozenset[loop.Operand] = field(default_factory=frozenset)
    divergent: bool = False

    @property
    def threads(self) -> int:
        """Number of surrounding loops that spread work over a GPU's blocks and threads."""
        return sum(kind in (loop.LoopKind.BLOCK, loop.LoopKind.THREAD) for kind in self.loops)

    def inside(self, s: loop.Statement) -> Place:
        """Return the place of the blocks within a statement that stands here."""
        match s:
            case loop.For():
                return self._inside_for(s)
            case loop.While() if any(o in self.by_thread for o in s.condition.yields):
                return replace(self, divergent=True)
            case loop.If() if s.predicate in self.by_thread:
                return replace(self, divergent=True)
            case _:
                return self

    def _inside_for(self, s: loop.For) -> Place:
        place = replace(self, loops=(*self.loops, s.kind))
        if s.kind is loop.LoopKind.VECTOR:
            place = replace(place, by_lane=frozenset(varying_registers(s)))
        elif s.kind is loop.LoopKind.THREAD and loop.LoopKind.THREAD not in self.loops:
            place = replace(place, by_thread=frozenset(varying_registers(s)))
        if s.start in self.by_thread or s.stop in self.by_thread:
            place = replace(place, divergent=True)
        return place


def problems(s: loop.Statement, place: Place) -> Iterator[str]:
    """Yield a sentence for each rule that the statement breaks at this place."""
    banned = _BANNED_LOOPS[s.kind] if isinstance(s, loop.For) else _BANNED.get(type(s), ())
    nested = f"a {s.kind.value} loop" if isinstance(s, loop.For) else type(s).__name__
    for kind in banned:
        if kind in place.loops:
            yield f"{nested} inside a {kind.value} loop"
    match s:
        case loop.For():
            yield from _for(s, place)
        case loop.If() if s.predicate in place.by_lane:
            if s.otherwise.statements or not all(isinstance(inner, loop.Compute) for inner in s.then.statements):
                yield "an If whose predicate varies by lane, and whose arms do more than compute"
        case loop.Barrier() | loop.Shuffle():
            if loop.LoopKind.THREAD not in place.loops:
                yield f"{nested} outside a thread loop"
            elif place.divergent:
                yield f"{nested} under a condition that varies by thread"
        case loop.Leave() if place.divergent:
            yield "Leave under a condition that varies by thread"
        case loop.Prefix():
            if place.loops[-1:] != (loop.LoopKind.VECTOR,):
                yield "Prefix not directly in a vector loop"
            elif s.before in place.by_lane:
                yield "Prefix after a value that varies by lane"
        case loop.Alloc() if s.buffer.space is loop.Space.SHARED and loop.LoopKind.BLOCK not in place.loops:
            yield "a shared buffer outside a block loop"
        case _:
            pass


def _for(s: loop.For, place: Place) -> Iterator[str]:
    if s.start in place.by_lane or s.stop in place.by_lane:
        yield "a loop whose range varies by lane"
    if s.kind is not loop.LoopKind.VECTOR and s.lanes != 1:
        yield f"a {s.kind.value} loop of {s.lanes} lanes"
    combines = all(carry.combine is not None for carry in s.carries)
    match s.kind:
        case loop.LoopKind.VECTOR:
            if s.lanes < 1 or s.lanes & (s.lanes - 1):
                yield f"a vector loop of {s.lanes} lanes, which is not a power of two"
            if not _is(s.start, 0) or s.step != 1:
                yield "a vector loop that does not count from 0 by 1"
            by_lane = varying_registers(s)
            if any(c.combine is None and y in by_lane for c, y in zip(s.carries, s.body.yields, strict=False)):
                yield "a vector loop with a serial carry that varies by lane"
        case loop.LoopKind.THREAD:
            if loop.LoopKind.BLOCK not in place.loops:
                yield "a thread loop outside a block loop"
            if s.start in place.by_thread or s.stop in place.by_thread:
                yield "a thread loop whose range varies by thread"
            if s.carries and not (combines and _is_power_of_two(s)):
                yield "a thread loop's carries are reductions over a constant power of two of threads"
        case loop.LoopKind.BLOCK:
            if s.carries:
                yield "a block loop with carries: blocks do not meet"
        case loop.LoopKind.PARALLEL:
            yield from _parallel(s, combines)
        case loop.LoopKind.SERIAL:
            pass


def _parallel(s: loop.For, combines: bool) -> Iterator[str]:
    if not combines:
        yield "a parallel loop with a serial carry"
    for carry in s.carries:
        if carry.combine in _INEXACT and is_float(carry.register.dtype):
            yield f"a parallel loop that reduces floats with {carry.combine.label}: the order would show"


def _is(operand: loop.Operand, value: int) -> bool:
    return isinstance(operand, loop.Constant) and int(operand.value) == value


def _is_power_of_two(s: loop.For) -> bool:
    if not (isinstance(s.stop, loop.Constant) and _is(s.start, 0) and s.step == 1):
        return False
    stop = int(s.stop.value)
    return stop > 0 and stop & (stop - 1) == 0
