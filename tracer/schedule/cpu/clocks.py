"""Clocks around the nests of a program's entry, for profiles: the cycles and the runs of each, in shared words.

A nest that threads share has a second clock, in its function. It adds up the time of its parts on all threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tracer.ir.loop import (
    Block,
    Copy,
    For,
    Function,
    If,
    Invoke,
    Library,
    LoopKind,
    Module,
    Statement,
    Transpose,
    While,
    index_constant,
)
from tracer.ir.loop.walk import blocks_of


class Clocked(NamedTuple):
    """Statement of the entry between two readings of the clock.

    word: the index of its first word. parts: the first word of its parts on all threads; None where threads do not
    share it.
    """

    statement: Statement
    word: int
    parts: int | None


def with_clocks(module: Module, words: Callable[[], int]) -> tuple[Module, list[Clocked]]:
    """Return the module with the clock read before and after each nest and call of its entry, and these statements.

    words: returns the number of the first of two shared words, which get the cycles and the runs. Loops that hold calls
    are entered; they and branches have no clocks of their own.
    """
    found: list[Clocked] = []
    parts: dict[str, int] = {}  # by the name of a function that threads share

    def block(old: Block) -> Block:
        statements: list[Statement] = []
        for statement in old.statements:
            if _is_timed(statement):
                word, shared = words(), None
                if isinstance(statement, Invoke) and statement.share is not None:
                    shared = parts[statement.function] = parts.get(statement.function) or words()
                found.append(Clocked(statement, word, shared))
                statements += _between(word, statement)
            else:
                statements.append(entered(statement))
        return replace(old, statements=tuple(statements))

    def entered(statement: Statement) -> Statement:
        match statement:
            case For():
                return replace(statement, body=block(statement.body))
            case While():
                return replace(statement, condition=block(statement.condition), body=block(statement.body))
            case If():
                return replace(statement, then=block(statement.then), otherwise=block(statement.otherwise))
            case _:
                return statement

    entry = block(next(function.body for function in module.functions if function.name == module.entry))

    def clocked(function: Function) -> Function:
        if function.name == module.entry:
            return replace(function, body=entry)
        if function.name in parts:
            inner = _between(parts[function.name], *function.body.statements)
            return replace(function, body=replace(function.body, statements=inner))
        return function

    return replace(module, functions=tuple(map(clocked, module.functions))), found


def _between(word: int, *statements: Statement) -> tuple[Statement, ...]:
    at = index_constant(word)
    return (Library("tick", (at,)), *statements, Library("tock", (at,)))


def _is_timed(statement: Statement) -> bool:
    match statement:
        case Invoke() | Library() | Copy() | Transpose():
            return True
        case For(kind=LoopKind.VECTOR | LoopKind.PARALLEL):
            return True
        case For():
            return not _holds_calls(statement)
        case _:
            return False


def _holds_calls(statement: Statement) -> bool:
    return any(
        isinstance(inner, Invoke | Library | While) or _holds_calls(inner)
        for block in blocks_of(statement)
        for inner in block.statements
    )
