"""What a function reads from outside while it is traced to be compiled: NumPy arrays, and values of arrays.

An operation on a NumPy array takes a copy of it into the trace. If, at the end, somebody else still holds the array,
and it is as it was, then the program reads the array itself whenever it runs: whoever writes to it is heard. Arrays
that only the trace has seen, or that were written to during the trace, stay the copies that they are.

Where tracing itself looks at values, as `if` and masks do, the program holds for these values only: they are noted, so
that a later call can compare.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tracer.trace.array import Array
from tracer.trace.convert import native
from tracer.trace.state import state
from tracer.trace.trace import new_serial

Value = np.ndarray[Any, Any]


class Seen(NamedTuple):
    """A value that tracing looked at: of a handle, which may be rebound, or of a NumPy array, which may be changed."""

    holder: Array | Value
    value: Value  # as it was


class _Source(NamedTuple):
    array: Value
    copies: list[Value]


class Outside:
    """One trace's record. serial: handles that belong to traces before it, or to none, are from outside."""

    def __init__(self, serial: int) -> None:
        self._serial = serial
        self._sources: dict[int, _Source] = {}
        self._source_of: dict[int, int] = {}  # of a copy, by ids
        self._seen: dict[int, Seen] = {}
        self._looked: set[int] = set()  # ids of sources

    def copy_of(self, array: Value, native: Value) -> Value:
        """A copy of a NumPy array as it is now. native: the same in the layout that tracer has."""
        source = self._sources.setdefault(id(array), _Source(array, []))
        if not (source.copies and same_bits(source.copies[-1], native)):
            source.copies.append(native.copy() if np.may_share_memory(native, array) else native)
            self._source_of[id(source.copies[-1])] = id(array)
        return source.copies[-1]

    def look(self, array: Array) -> None:
        """Note that tracing has looked at the value of a handle."""
        value = array._value
        source = self._source_of.get(id(value))
        if source is not None:
            self._looked.add(source)
        elif array._trace is None and 0 <= array._owner < self._serial:
            self._seen[id(array)] = Seen(array, value)

    def look_at(self, array: Value, native: Value) -> None:
        """Note that tracing has looked at the values of a NumPy array."""
        self.copy_of(array, native)
        self._looked.add(id(array))

    def inherit(self, seen: Iterable[Seen]) -> None:
        """Note what an inner function's trace looked at, whose program becomes a part of this one."""
        for one in seen:
            self._seen[id(one.holder)] = one

    def captured(self, constants: Sequence[Array]) -> list[Array | Value]:
        """What the finished trace's constants stand for: handles, or the NumPy arrays that they were copied from."""
        shared = {key: source for key, source in self._sources.items() if self._is_shared(source)}
        found = ((array, shared.get(self._source_of.get(id(array._value), 0))) for array in constants)
        return [array if source is None else _plain(source.array) for array, source in found]

    def seen(self) -> list[Seen]:
        """The values that tracing looked at, and that may be others at a later call."""
        sources = [source for key, source in self._sources.items() if key in self._looked and self._is_shared(source)]
        return [*self._seen.values(), *(Seen(_plain(source.array), source.copies[-1]) for source in sources)]

    def _is_shared(self, source: _Source) -> bool:
        """Whether somebody else holds the array, and nobody has written to it since it was first copied."""
        return not _is_ours(source) and len(source.copies) == 1 and same_bits(source.array, source.copies[0])


def _plain(array: Value) -> Value:
    return array if type(array) is np.ndarray else array.view(np.ndarray)


def _is_ours(source: _Source) -> bool:
    """Whether nobody but the record refers to the array, or to the one that it is a view of."""
    counted = getattr(sys, "getrefcount", None)
    if counted is None or counted(source[0]) > 2:  # the record's, and that of the call
        return False
    if source[0].base is None:
        return bool(source[0].flags.owndata)
    owner = type(source[0].base) is np.ndarray and source[0].base.base is None and source[0].base.flags.owndata
    return owner and counted(source[0].base) <= 2  # the view's, and that of the call


def same_bits(array: Value, expected: Value) -> bool:
    """Whether both have the same dtype, but for its byte order, shape, and bytes, NaNs and zeros included."""
    if array.shape != expected.shape or array.dtype.newbyteorder("=") != expected.dtype:
        return False
    native = np.ascontiguousarray(array, expected.dtype).reshape(-1).view(np.uint8)
    return bool(np.array_equal(native, expected.reshape(-1).view(np.uint8)))


def looked_at(array: Value) -> Value:
    """A NumPy array whose values become a part of the program that is being traced."""
    if state.outside is not None:
        state.outside.look_at(array, native(array, copy=False))
    return array


@contextmanager
def recording() -> Iterator[Outside]:
    """Record what is read from outside, for the length of a `with` block."""
    outer = state.outside
    state.outside = outside = Outside(new_serial())
    try:
        yield outside
    finally:
        state.outside = outer
