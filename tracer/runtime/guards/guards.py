"""Guards of a traced function: the names that it read, and the values of arrays that tracing read.

A guard on a name is a holder, the name, and the object under it at tracing; `guard_discovery` finds them. Values of
arrays are guarded alike: see `tracer.trace.captured_values`.
"""

from __future__ import annotations

import ctypes
from types import CellType, FunctionType
from typing import Any, Final

import numpy as np

from tracer.ir import dtypes
from tracer.ir.types import Type, array_type
from tracer.trace.array import Array
from tracer.trace.captured_values import Seen, same_bits

NOTHING: Any = object()
"""Value of an unbound name."""
FUNCTION_SLOTS: Final = ("__code__", "__defaults__", "__kwdefaults__")
"""Attributes of a function whose assignment changes its results."""
_PLAIN = (int, float, complex, str, bytes, bool, type(None))


Captured = Array | np.ndarray[Any, Any]
Holder = CellType | FunctionType | dict[str, Any]


class Guard:
    """Object expected under a name. holder: a cell, a dict with the key `name`, or a function with the slot `name`.

    expected: the address of `value`, null for an unset slot or name. place: describes `name` in messages.
    """

    __slots__ = ("_place", "expected", "holder", "name", "value")

    def __init__(self, holder: Holder, name: str, place: str = "") -> None:
        self.holder = holder
        self.name = name
        self._place = place
        self.expected = ctypes.c_void_p()
        self.expect(self.now())

    def expect(self, value: Any) -> None:
        """Set the expected object."""
        self.value = value
        is_unset = value is NOTHING or (value is None and isinstance(self.holder, FunctionType))
        self.expected.value = None if is_unset else id(value)

    def now(self) -> Any:
        """Return the object under the name at present, or `NOTHING`."""
        match self.holder:
            case dict():
                return self.holder.get(self.name, NOTHING)
            case FunctionType():
                return getattr(self.holder, self.name)
            case _:
                try:
                    return self.holder.cell_contents
                except ValueError:  # not assigned
                    return NOTHING

    def holds(self) -> bool:
        """Whether the name has the expected object, or an equal scalar or string, which is expected from now on."""
        now = self.now()
        if now is self.value:
            return True
        if not are_equal(now, self.value):
            return False
        self.expect(now)
        return True

    def change(self) -> str:
        """Return a text that describes the change of the name's object."""
        now = self.now()
        if isinstance(self.holder, FunctionType):
            return self._slot_change(now)
        place = self._place or f"{'global' if isinstance(self.holder, dict) else 'closure variable'} '{self.name}'"
        if type(now) in _PLAIN and type(self.value) in _PLAIN:
            return f"{place}: {self.value!r:.60} -> {now!r:.60}"
        return f"{place} is {'not bound any more' if now is NOTHING else f'another {_noun(now)}'}"

    def _slot_change(self, now: Any) -> str:
        assert isinstance(self.holder, FunctionType)
        function = self.holder.__qualname__
        if self.name == "__code__":
            return f"{function} has other code"
        if self.name == "__defaults__":
            names = self.holder.__code__.co_varnames[: self.holder.__code__.co_argcount]
            before, after = (
                dict(zip(reversed(names), reversed(values or ()), strict=False)) for values in (self.value, now)
            )
            for name in names:
                a, b = before.get(name, NOTHING), after.get(name, NOTHING)
                if not are_equal(a, b) and type(a) in _PLAIN and type(b) in _PLAIN:
                    return f"default of '{name}' in {function}: {a!r:.60} -> {b!r:.60}"
        return f"{function} has other defaults"


def are_equal(a: Any, b: Any) -> bool:
    """Whether two values are one object, plain values of one type and text, or tuples of equal values."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(are_equal, a, b))
    return type(a) in _PLAIN and repr(a) == repr(b)


def _noun(value: Any) -> str:
    if isinstance(value, Array | np.ndarray):
        return "array: as an argument it would not be compiled for"
    return "function" if isinstance(value, FunctionType) else type(value).__name__


def type_of(array: Captured) -> Type | None:
    """Return the type that a captured array has now; None for an unsupported dtype."""
    if isinstance(array, Array):
        return array.type
    dtype = array.dtype.newbyteorder("=")
    return array_type(dtypes.ONE_OBJECT[dtype], array.shape) if dtype in dtypes.ONE_OBJECT else None


class ValueGuard:
    """Value of an array that tracing read. holder: the array. expected: the address of `value`, for an `Array`."""

    __slots__ = ("expected", "holder", "value")

    def __init__(self, seen: Seen) -> None:
        self.holder, self.value = seen
        self.expected = ctypes.c_void_p(id(self.value))

    def holds(self) -> bool:
        """Whether the array has the expected value, or an `Array` an equal one, which is expected from now on."""
        if isinstance(self.holder, np.ndarray):
            return same_bits(self.holder, self.value)
        now = self.holder._value
        if now is self.value:
            return True
        if self.holder._trace is not None or not same_bits(now, self.value):
            return False
        self.value, self.expected.value = now, id(now)
        return True

    def change(self) -> str:
        """Return a text that shows the value before and now."""
        kind = "NumPy array" if isinstance(self.holder, np.ndarray) else "array"
        before, now = (np.array2string(np.asarray(v), threshold=4) for v in (self.value, self.holder))
        return f"the values of a captured {kind} that tracing looked at: {before:.40} -> {now:.40}"
