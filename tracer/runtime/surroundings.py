"""What functions stand among: what they read besides their arguments, found again from the functions at every call.

`dependence` guards places: names, and what they stood for. That is of no use for a function that is made anew at every
call, a method of an object whose attributes change, a list that is written to between calls. Here the way to everything
that the functions may read is kept as steps, from them through cells, defaults, globals, items and attributes, and what
must be found at the end of each: the same number, code, class, a container of as many items. Arrays must have the same
type alone: they are operands, whichever they are. Which steps those are is found by `following`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from tracer.runtime.contents import has_members
from tracer.runtime.dependence import has_no_attributes
from tracer.runtime.guards.guards import NOTHING, are_equal
from tracer.trace.array import Array
from tracer.trace.captured_values import same_bits


class Step(NamedTuple):
    """From a value that was found to another one. source: which one; read: of it and `key`; holds: with `expected`."""

    source: int
    read: Callable[[Any, Any], Any]
    key: Any
    holds: Callable[[Any, Any], bool]
    expected: Any


class Surroundings(NamedTuple):
    """steps: see there; arrays: which of the values found are operands; same: which of them are one object.

    others: places of objects that are not the same as any other of them. tells_kinds: see `dependence.Reads`.
    """

    steps: Sequence[Step]
    arrays: Sequence[int]
    same: Sequence[tuple[int, int]]
    others: Sequence[int]
    tells_kinds: bool

    def operands(self, functions: Sequence[Any]) -> list[Array] | None:
        """The arrays among which functions stand; None where what they stand among is not of this kind."""
        values = [*functions]
        try:
            for source, read, key, holds, expected in self.steps:
                value = read(values[source], key)
                if not holds(value, expected):
                    return None
                values.append(value)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return None
        if not all(values[one] is values[other] for one, other in self.same):
            return None
        if len({id(values[place]) for place in self.others}) != len(self.others):
            return None
        return [values[place] for place in self.arrays]


# Ways to go


def itself(value: Any, key: None) -> Any:
    return value


def given(_: Any, value: Any) -> Any:
    return value


def under_name(_: Any, key: tuple[Any, dict[str, Any], str]) -> Any:
    read, names, name = key
    return read(names, name)


def named(names: dict[str, Any], name: str) -> Any:
    return names.get(name, NOTHING)


def in_cell(function: FunctionType, number: int) -> Any:
    assert function.__closure__ is not None
    return function.__closure__[number].cell_contents


def own(value: Any, name: str) -> Any:
    return value.__dict__.get(name, NOTHING)


# What must be there


def is_array(value: Any, expected: Any) -> bool:
    return type(value) is Array and value._trace is None and value._owner == 0 and bool(value.type == expected)


def has_bytes(value: Any, expected: tuple[np.ndarray[Any, Any], Any, int]) -> bool:
    numbers, strides, flags = expected
    if type(value) is not np.ndarray or value.dtype != numbers.dtype:
        return False
    return bool(value.strides == strides and value.flags.num == flags) and same_bits(value, numbers)


def text_options(_: Any, key: None) -> Any:
    """How NumPy makes text of numbers."""
    return np.get_printoptions()


def is_same_dict(value: Any, expected: Any) -> bool:
    return bool(value == expected)


def is_sequence(value: Any, expected: tuple[type, int]) -> bool:
    kind, count = expected
    return type(value) is kind and len(value) == count  # type: ignore[arg-type]  # a tuple or a list


def is_dict(value: Any, expected: tuple[Any, ...]) -> bool:
    return type(value) is dict and are_equal(tuple(value), expected)


def is_function(value: Any, expected: tuple[CodeType, dict[str, Any]]) -> bool:
    if type(value) is not FunctionType or value.__code__ is not expected[0] or value.__globals__ is not expected[1]:
        return False
    return has_no_attributes(value)


def is_of(value: Any, expected: type) -> bool:
    return type(value) is expected


def is_same_number(value: Any, expected: np.generic) -> bool:
    return type(value) is type(expected) and value.tobytes() == expected.tobytes()


def is_record(value: Any, expected: tuple[type, dict[str, Any]]) -> bool:
    kind, members = expected
    return type(value) is kind and has_members(kind, members)


def is_module(value: Any, expected: tuple[Any, type]) -> bool:
    return value is expected[0] and type(value) is expected[1]


def is_member(value: Any, expected: tuple[Any, dict[str, Any], Sequence[Any]]) -> bool:
    member, held, parts = expected
    return value is member and vars(value) == held and all(has_members(*part) for part in parts)


def is_instance(value: Any, expected: tuple[Any, ...]) -> bool:
    cls, order, parts = expected
    return type(value) is cls and cls.__mro__ is order and all(has_members(*part) for part in parts)
