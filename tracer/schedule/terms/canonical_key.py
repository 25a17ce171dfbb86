"""A key for functions of loop IR that is equal where they differ in names alone."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from tracer.ir.loop import Buffer, Constant, Function, Register


def function_key(function: Function) -> tuple[Hashable, ...]:
    """Return the function's structure with registers and buffers numbered in order of appearance."""
    numbers: dict[Any, int] = {}
    parts: list[Hashable] = []
    for parameter in function.parameters:
        _encode(parameter, numbers, parts)
    _encode(function.body, numbers, parts)
    return tuple(parts)


def _encode(value: Any, numbers: dict[Any, int], parts: list[Hashable]) -> None:
    """Append the parts of a key that determine the value."""
    kind: Any = type(value)  # Any, for the cache of names takes hashable keys
    if kind is Register:
        if value not in numbers:
            parts.append(value.dtype.num)
        parts.append(numbers.setdefault(value, len(numbers)))
    elif kind is Buffer:
        if value not in numbers:
            parts.append((value.dtype.num, value.size, value.space.value, value.offset, value.alignment, value.written))
        parts.append(numbers.setdefault(value, len(numbers)))
    elif kind is Constant:
        parts.append((value.dtype.num, value.bits))
    elif kind is tuple:
        parts.append(len(value))
        for item in value:
            _encode(item, numbers, parts)
    elif kind is int or kind is str or kind is bool or value is None:
        parts.append(value)
    else:
        names = _names(kind)
        if names is None:
            parts.append(value.name if isinstance(value, Enum) else value)
            return
        parts.append(kind.__name__)
        for name in names:
            _encode(getattr(value, name), numbers, parts)


@cache
def _names(kind: Any) -> tuple[str, ...] | None:
    """Return the fields of a dataclass, a statement or a part of one; None for another class."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None
