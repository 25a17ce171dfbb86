"""A key for functions of loop IR that is equal where they differ in names alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from tracer.ir.loop import Buffer, Constant, Function, Register


def function_key(function: Function) -> tuple[Hashable, ...]:
    """The function's structure with registers and buffers numbered in order of appearance."""
    numbers: dict[Any, int] = {}
    parts: list[Hashable] = []
    for parameter in function.parameters:
        parts.extend(_encode(parameter, numbers))
    parts.extend(_encode(function.body, numbers))
    return tuple(parts)


def _encode(value: Any, numbers: dict[Any, int]) -> Iterator[Hashable]:
    if isinstance(value, Register):
        new = value not in numbers
        yield numbers.setdefault(value, len(numbers))
        if new:
            yield value.dtype.name
    elif isinstance(value, Buffer):
        new = value not in numbers
        yield numbers.setdefault(value, len(numbers))
        if new:
            yield (value.dtype.name, value.size, value.space.value, value.offset, value.alignment, value.written)
    elif isinstance(value, Constant):
        yield (value.dtype.name, value.bits)
    elif isinstance(value, tuple):
        yield len(value)
        for item in value:
            yield from _encode(item, numbers)
    elif isinstance(value, Enum):
        yield value.name
    elif is_dataclass(value):
        yield type(value).__name__
        for field in fields(value):
            yield from _encode(getattr(value, field.name), numbers)
    else:
        yield value
