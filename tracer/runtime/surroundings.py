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

from tracer.runtime.dependence import has_no_attributes
from tracer.runtime.guards import NOTHING, are_equal
from tracer.trace.array import Array
from tracer.trace.outside import same_bits


class Step(NamedTuple):
    """From a value that was found to another one. source: which one; read: of it and `key`; holds: with `expected`."""

    source: int
    read: Callable[[Any, Any], Any]
    key: Any
    holds: Callable[[Any, Any], bool]
    expected: Any


class Surroundings(NamedTuple):
    """steps: see there; arrays: which of the values found are operands; same: which of them are one object."""

    steps: Sequence[Step]
    arrays: Sequence[int]
    same: Sequence[tuple[int, int]]

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
        arrays = [values[place] for place in self.arrays]
        return arrays if len({*map(id, arrays)}) == len(arrays) else None


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


def has_bytes(value: Any, expected: np.ndarray[Any, Any]) -> bool:
    return type(value) is np.ndarray and value.dtype == expected.dtype and same_bits(value, expected)


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


def is_number(value: Any, expected: np.generic) -> bool:
    return type(value) is type(expected) and value.tobytes() == expected.tobytes()


def is_instance(value: Any, expected: tuple[Any, ...]) -> bool:
    cls, order, parts = expected
    return type(value) is cls and cls.__mro__ is order and all(_has_members(*part) for part in parts)


def _has_members(cls: type, members: dict[str, Any]) -> bool:
    now = vars(cls)
    return len(now) == len(members) and all(now.get(name, NOTHING) is member for name, member in members.items())
