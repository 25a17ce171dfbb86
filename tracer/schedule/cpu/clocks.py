"""Clocks around the nests of a program's entry, for profiles: the cycles and the runs of each, in shared words.

A nest that threads share has a second clock, in its function. It adds up the time of its parts on all threads. A
library call, whose threads may be another library's, has a clock of the process's time on all processors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tracer.ir import loop
from tracer.ir.loop.walk import blocks_of


class Clocked(NamedTuple):
    """Statement of the entry between two readings of the clock.

    word: the index of its first word. parts: the first word of its parts on all threads, in cycles, for library calls
    in nanoseconds; None where threads do not share it.
    """

    statement: loop.Statement
    word: int
    parts: int | None


def with_clocks(module: loop.Module, words: Callable[[], int]) -> tuple[loop.Module, list[Clocked]]:
    """Return the module with the clock read before and after each nest and call of its entry, and these statements.

    words: returns the number of the first of two shared words, which get the cycles and the runs. Loops that hold calls
    are entered; they and branches have no clocks of their own.
    """
    found: list[Clocked] = []
    parts: dict[str, int] = {}  # by the name of a function that threads share

    def block(old: loop.Block) -> loop.Block:
        statements: list[loop.Statement] = []
        for statement in old.statements:
            if _is_timed(statement):
                word, shared = words(), None
                inner: tuple[loop.Statement, ...] = (statement,)
                if isinstance(statement, loop.Invoke) and statement.share is not None:
                    shared = parts[statement.function] = parts.get(statement.function) or words()
                elif isinstance(statement, loop.Library):
                    shared = words()
                    inner = _between(shared, statement, suffix="_processors")
                found.append(Clocked(statement, word, shared))
                statements += _between(word, *inner)
            else:
                statements.append(entered(statement))
        return replace(old, statements=tuple(statements))

    def entered(statement: loop.Statement) -> loop.Statement:
        match statement:
            case loop.For():
                return replace(statement, body=block(statement.body))
            case loop.While():
                return replace(statement, condition=block(statement.condition), body=block(statement.body))
            case loop.If():
                return replace(statement, then=block(statement.then), otherwise=block(statement.otherwise))
            case _:
                return statement

    entry = block(module.entry_function.body)

    def clocked(function: loop.Function) -> loop.Function:
        if function.name == module.entry:
            return replace(function, body=entry)
        if function.name in parts:
            inner = _between(parts[function.name], *function.body.statements)
            return replace(function, body=replace(function.body, statements=inner))
        return function

    return replace(module, functions=tuple(map(clocked, module.functions))), found


def _between(word: int, *statements: loop.Statement, suffix: str = "") -> tuple[loop.Statement, ...]:
    at = loop.index_constant(word)
    return (loop.Library(f"tick{suffix}", (at,)), *statements, loop.Library(f"tock{suffix}", (at,)))


def _is_timed(statement: loop.Statement) -> bool:
    match statement:
        case loop.Invoke() | loop.Library() | loop.Copy() | loop.Transpose():
            return True
        case loop.For(kind=loop.LoopKind.VECTOR | loop.LoopKind.PARALLEL):
            return True
        case loop.For():
            return not _holds_calls(statement)
        case _:
            return False


def _holds_calls(statement: loop.Statement) -> bool:
    return any(
        isinstance(inner, loop.Invoke | loop.Library | loop.While) or _holds_calls(inner)
        for block in blocks_of(statement)
        for inner in block.statements
    )
