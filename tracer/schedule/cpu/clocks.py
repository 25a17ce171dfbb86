"""Clocks around the nests of a program's entry, for profiles: the cycles and the runs of each, in shared words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tracer.ir.loop import (
    Block,
    Copy,
    For,
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
    """Statement of the entry between two readings of the clock. word: the number of its first word."""

    statement: Statement
    word: int


def with_clocks(module: Module, words: Callable[[], int]) -> tuple[Module, list[Clocked]]:
    """Return the module with the clock read before and after each nest and call of its entry, and these statements.

    words: returns the number of the first of two shared words, which get the cycles and the runs. Loops that hold calls
    are entered; they and branches have no clocks of their own.
    """
    found: list[Clocked] = []

    def block(old: Block) -> Block:
        statements: list[Statement] = []
        for statement in old.statements:
            if _is_timed(statement):
                word = words()
                found.append(Clocked(statement, word))
                at = index_constant(word)
                statements += [Library("tick", (at,)), statement, Library("tock", (at,))]
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

    functions = [
        replace(function, body=block(function.body)) if function.name == module.entry else function
        for function in module.functions
    ]
    return replace(module, functions=tuple(functions)), found


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
