"""Captured arrays of a Python function, found in its closure, globals and attributes without running it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from tracer.trace.array import Array
from tracer.trace.source import is_ours

_DEEPEST = 6


def captured_arrays(*functions: Any) -> list[Array]:
    """Return the arrays in closures, named globals, defaults, and attributes of callable objects; each once."""
    found: dict[int, Array] = {}
    seen: set[int] = set()

    def visit(value: Any, depth: int) -> None:
        if isinstance(value, Array):
            found[id(value)] = value
        elif depth and id(value) not in seen:
            seen.add(id(value))
            for inner in _held(value):
                visit(inner, depth - 1)

    for function in functions:
        visit(function, _DEEPEST)
    return list(found.values())


def _held(value: Any) -> Iterator[Any]:
    """Yield the objects that a function, a container or a callable object refers to."""
    match value:
        case FunctionType() if not is_ours(value.__code__):
            for cell in value.__closure__ or ():
                try:
                    yield cell.cell_contents
                except ValueError:  # not assigned yet
                    continue
            yield from value.__defaults__ or ()
            yield from (value.__kwdefaults__ or {}).values()
            for name in _names(value.__code__):
                if name in value.__globals__:
                    yield value.__globals__[name]
        case MethodType():
            yield value.__func__
            yield value.__self__
        case partial():
            yield value.func
            yield from value.args
            yield from value.keywords.values()
        case tuple() | list():
            yield from value
        case dict():
            yield from value.values()
        case _ if callable(value) and not isinstance(value, type):
            yield from getattr(value, "__dict__", {}).values()


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global and attribute names in a function's code, and in the functions defined in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
