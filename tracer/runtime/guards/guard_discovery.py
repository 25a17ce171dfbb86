"""Discovery of guards: the globals, closure cells and defaults that a user's function reads by name.

Functions under these names are followed in turn: plain functions, methods, partials, and results of transforms.
Deeper reads, such as attributes of objects and items of containers, are trace-time constants, as in JAX. Functions of
libraries are not followed.
"""

from __future__ import annotations

import dis
import sysconfig
from collections.abc import Iterator
from functools import lru_cache, partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from tracer.once import once
from tracer.runtime.guards.guards import FUNCTION_SLOTS, Guard
from tracer.trace.source import is_ours
from tracer.trace.transformed import Transformed

_PACKAGE = __name__.partition(".")[0]


def guards_of(function: Any) -> list[Guard]:
    """Return guards on the names that a function reads, and on the functions under these names, each once."""
    found: dict[tuple[int, str], Guard] = {}
    seen: set[int] = set()
    waiting = [function]  # a stack: users' functions call each other to any depth
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        inner: list[Any] = []
        for guard in _read_by(value) if is_users(value) else ():
            found.setdefault((id(guard.holder), guard.name), guard)
            inner.append(guard.value)
        waiting += reversed([*inner, *_behind(value)])
    return list(found.values())


def is_users(value: Any) -> bool:
    """Whether a value is a plain function from neither a library nor this package."""
    return isinstance(value, FunctionType) and not is_ours(value.__code__) and not _is_library(value.__code__)


def _read_by(function: FunctionType) -> Iterator[Guard]:
    """Yield guards on a function's code and defaults, its closure cells, and the globals that it names."""
    for slot in FUNCTION_SLOTS:
        if getattr(function, slot) is not None:
            yield Guard(function, slot)
    defaults: dict[str, Any] = function.__kwdefaults__ or {}
    for name in defaults:
        yield Guard(defaults, name, f"default of '{name}' in {function.__qualname__}")
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield Guard(cell, name)
    for name in _globals_in(function.__code__):
        yield Guard(function.__globals__, name)  # unbound if it is a builtin, which a global may come to hide


@lru_cache(maxsize=4096)
def _globals_in(code: CodeType) -> tuple[str, ...]:
    """Return the global names that code loads, and that functions within it load."""
    names = {i.argval: None for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= dict.fromkeys(_globals_in(constant))
    return tuple(names)


def _behind(value: Any) -> Iterator[Any]:
    """Yield functions that a callable runs without naming them: a wrapped one, a method's, a partial's, `__call__`.

    Closures of this package's functions and defaults of users' functions count as well.
    """
    if isinstance(value, FunctionType):
        yield from value.__defaults__ or () if is_users(value) else ()
        if is_ours(value.__code__):
            yield getattr(value, "__wrapped__", None)
            for cell in value.__closure__ or ():
                try:
                    yield cell.cell_contents
                except ValueError:  # not assigned
                    continue
    elif isinstance(value, MethodType):
        yield value.__func__
    elif isinstance(value, partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif type(value) is tuple:  # functions in a closure of this package
        yield from (item for item in value if isinstance(item, FunctionType | MethodType | partial | Transformed))
    elif type(value).__module__.partition(".")[0] == _PACKAGE:
        yield getattr(value, "__wrapped__", None)
        yield value.__call__ if isinstance(value, Transformed) else None
    else:
        yield getattr(type(value), "__call__", None)  # noqa: B004  # a function if the object's class is the user's


@lru_cache(maxsize=4096)
def _is_library(code: CodeType) -> bool:
    return code.co_filename.startswith(_libraries())


@once
def _libraries() -> tuple[str, ...]:
    """Return the folders of installed modules."""
    return tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
