"""Which reductions of memory are calls of functions that programs share, rather than vector loops in place.

A call computes the same bits, and LLVM has 4 ms less to do for it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from tracer.ir.loop import Block, Constant, For, If, LoopKind, Module, Statement, While
from tracer.ir.loop.memory_reductions import reduced_loads
from tracer.ir.loop.walk import with_bodies

LONG: Final = 1 << 12
"""Iterations. A call within a loop pays from here on. Several results of a longer loop share one pass over memory."""


def outline_reductions(module: Module) -> Module:
    """Mark every reduction of memory that is worth a call."""
    return with_bodies(module, partial(_marked, depth=0))


def _marked(block: Block, depth: int) -> Block:
    statements = [_statement(s, depth) for s in block.statements]
    if all(new is old for new, old in zip(statements, block.statements, strict=True)):
        return block
    return replace(block, statements=tuple(statements))


def _statement(s: Statement, depth: int) -> Statement:
    match s:
        case For(kind=LoopKind.VECTOR):
            return replace(s, outlined=True) if not s.outlined and _is_worth_a_call(s, depth) else s
        case For(body=body):
            inner = _marked(body, depth + 1)
            return s if inner is body else replace(s, body=inner)
        case While(condition=condition, body=body):
            first, inner = _marked(condition, depth + 1), _marked(body, depth + 1)
            return s if first is condition and inner is body else replace(s, condition=first, body=inner)
        case If(then=then, otherwise=otherwise):
            first, inner = _marked(then, depth), _marked(otherwise, depth)
            return s if first is then and inner is otherwise else replace(s, then=first, otherwise=inner)
        case _:
            return s


def _is_worth_a_call(s: For, depth: int) -> bool:
    if not isinstance(s.stop, Constant):
        return False
    is_long = int(s.stop.value) >= LONG
    pays = is_long if depth else not is_long or len(s.carries) == 1
    return pays and reduced_loads(s) is not None
