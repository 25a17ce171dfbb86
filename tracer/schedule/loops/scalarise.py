"""Loops that run one element at a time, for machines and measurements without vectors.

Reductions keep their lanes, which belong to the meaning of their results (see `ir.loop`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tracer.ir.loop import For, LoopKind, Module, Statement
from tracer.ir.loop.walk import with_bodies, with_statements


def one_at_a_time(module: Module) -> Module:
    """Return the module with every independent vector loop as a serial one."""
    return with_bodies(module, partial(with_statements, change=_serial))


def _serial(statement: Statement) -> tuple[Statement]:
    if isinstance(statement, For) and statement.kind is LoopKind.VECTOR and not statement.carries:
        return (replace(statement, kind=LoopKind.SERIAL, lanes=1, unrolled=False),)
    return (statement,)
