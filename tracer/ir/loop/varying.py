"""Divergence analysis: the registers of a vector or thread loop that differ between lanes or threads."""

from __future__ import annotations

from collections.abc import Set

from tracer.ir import loop
from tracer.ir.loop.walk import operands_of


def varying_registers(s: loop.For) -> set[loop.Register]:
    """Return the registers that vary by lane of a VECTOR loop, or by thread of an outermost THREAD loop.

    A loaded value varies where its address does, or its buffer is private to the thread.
    """
    given = {s.index, *(carry.register for carry in s.carries if carry.combine is not None)}
    return varying_from(s.body, given, threads=s.kind is loop.LoopKind.THREAD)


def varying_from(block: loop.Block, given: Set[loop.Register], *, threads: bool = False) -> set[loop.Register]:
    """Return the registers of a loop's body that vary, given the registers that vary on entry."""
    varying = set(given)
    _block(block, varying, threads=threads)
    return varying


def _any(operands: tuple[loop.Operand, ...], varying: set[loop.Register]) -> bool:
    return any(operand in varying for operand in operands)


def _block(block: loop.Block, varying: set[loop.Register], *, threads: bool) -> None:
    for s in block.statements:
        match s:
            case loop.Compute() | loop.Shuffle():
                if _any(operands_of(s), varying):
                    varying.add(s.result)
            case loop.Prefix():
                varying.add(s.result)
            case loop.Load():
                where = tuple([register for register, _ in s.address.terms])
                private = threads and s.buffer.space is loop.Space.LOCAL
                if private or _any((*operands_of(s), *where), varying):
                    varying.add(s.result)
            case loop.For():
                _for(s, varying, threads=threads)
            case loop.While():
                _while(s, varying, threads=threads)
            case loop.If():
                _if(s, varying, threads=threads)
            case _:
                pass  # assigns no register


def _for(s: loop.For, varying: set[loop.Register], *, threads: bool) -> None:
    is_thread = threads and s.kind is loop.LoopKind.THREAD
    if is_thread or s.start in varying:
        varying.add(s.index)
    if is_thread or s.start in varying or s.stop in varying:
        varying.update(carry.register for carry in s.carries)
    _enter(s, varying)
    _block(s.body, varying, threads=threads)
    while _carry_over(s, varying):
        _block(s.body, varying, threads=threads)
    _hand_out(s, varying)


def _while(s: loop.While, varying: set[loop.Register], *, threads: bool) -> None:
    _enter(s, varying)
    while True:
        _block(s.condition, varying, threads=threads)
        _block(s.body, varying, threads=threads)
        if _any(s.condition.yields, varying):
            varying.update(carry.register for carry in s.carries)
        if not _carry_over(s, varying):
            break
    _hand_out(s, varying)


def _enter(s: loop.For | loop.While, varying: set[loop.Register]) -> None:
    varying.update(c.register for c in s.carries if c.initial in varying)


def _carry_over(s: loop.For | loop.While, varying: set[loop.Register]) -> bool:
    """Mark the carries whose next value varies. Return whether any was new."""
    pairs = zip(s.carries, s.body.yields, strict=False)
    new = [c.register for c, value in pairs if value in varying and c.register not in varying]
    varying.update(new)
    return bool(new)


def _hand_out(s: loop.For | loop.While, varying: set[loop.Register]) -> None:
    varying.update(r for c, r in zip(s.carries, s.results, strict=False) if c.register in varying)


def _if(s: loop.If, varying: set[loop.Register], *, threads: bool) -> None:
    _block(s.then, varying, threads=threads)
    _block(s.otherwise, varying, threads=threads)
    if s.predicate in varying:
        varying.update(s.results)
    for yields in (s.then.yields, s.otherwise.yields):
        varying.update(r for r, value in zip(s.results, yields, strict=False) if value in varying)
