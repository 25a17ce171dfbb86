"""Captured values: the NumPy arrays, and the values of arrays, that a function reads from outside while it is traced.

An operation on a NumPy array copies it into the trace. If the array is unchanged at the end and still referred to
elsewhere, the program reads the array itself. Later writes to the array then have effect. An array that only the trace
refers to, or that was written to during the trace, stays a copy.

Where tracing itself reads values, as `if` and masks do, the program is valid for these values only. They are recorded,
so that a later call can compare.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from tracer.trace.array import Array, is_recorded
from tracer.trace.convert import native
from tracer.trace.source import user_frame
from tracer.trace.state import state
from tracer.trace.trace import new_serial

Value = np.ndarray[Any, Any]


class Seen(NamedTuple):
    """Value that tracing read: of a handle, which may be rebound, or of a NumPy array, which may be written."""

    holder: Array | Value
    value: Value  # when it was read


Places = dict[tuple[int, int], CodeType]
"""Instructions of users' code, by the code's id and the instruction's offset."""


class Operand(NamedTuple):
    """NumPy array that operations took as it is. places: the instructions that ran these operations."""

    array: Value
    places: Places


class _Source(NamedTuple):
    array: Value
    copies: list[Value]
    places: Places


class Outside:
    """Record of one trace. serial: handles of earlier traces, or of none, are from outside."""

    def __init__(self, serial: int) -> None:
        self._serial = serial
        self._sources: dict[int, _Source] = {}
        self._source_of: dict[int, int] = {}  # of a copy, by ids
        self._seen: dict[int, Seen] = {}
        self._looked: set[int] = set()  # ids of sources

    def copy_of(self, array: Value, native: Value) -> Value:
        """Return a copy of a NumPy array as it is now. native: the array in tracer's layout."""
        source = self._sources.setdefault(id(array), _Source(array, [], {}))
        source.places.update(_place())
        if not (source.copies and same_bits(source.copies[-1], native)):
            source.copies.append(native.copy() if np.may_share_memory(native, array) else native)
            self._source_of[id(source.copies[-1])] = id(array)
        return source.copies[-1]

    def look(self, array: Array) -> None:
        """Record that tracing read the value of a handle."""
        value = array._value
        source = self._source_of.get(id(value))
        if source is not None:
            self._looked.add(source)
        elif not is_recorded(array) and 0 <= array._owner < self._serial:
            self._seen[id(array)] = Seen(array, value)

    def look_at(self, array: Value, native: Value) -> None:
        """Record that tracing read the values of a NumPy array."""
        self.copy_of(array, native)
        self._looked.add(id(array))

    def reads(self, array: Value) -> bool:
        """Whether an operation of the trace took the array as an operand."""
        return id(array) in self._sources

    def places(self, array: Value) -> Places:
        """Return the instructions whose operations took the array as an operand."""
        source = self._sources.get(id(array))
        return {} if source is None else source.places

    def operands(self) -> tuple[Operand, ...]:
        """Return the NumPy arrays that the program reads at every run."""
        return tuple(Operand(s.array, s.places) for s in self._sources.values() if self._is_shared(s))

    def inherit(self, seen: Iterable[Seen], operands: Iterable[Operand]) -> None:
        """Record the values and operands of an inner function's trace, whose program becomes a part of this one."""
        for one in seen:
            self._seen[id(one.holder)] = one
        for array, places in operands:
            self._sources.setdefault(id(array), _Source(array, [], {})).places.update(places)

    def captured(self, constants: Sequence[Array]) -> list[Array | Value]:
        """Return the origins of the finished trace's constants: handles, or the NumPy arrays that were copied."""
        shared = {key: source for key, source in self._sources.items() if self._is_shared(source)}
        found = ((array, shared.get(self._source_of.get(id(array._value), 0))) for array in constants)
        return [array if source is None else _plain(source.array) for array, source in found]

    def seen(self) -> list[Seen]:
        """Return the values that tracing read, and that may differ at a later call."""
        sources = [source for key, source in self._sources.items() if key in self._looked and self._is_shared(source)]
        return [*self._seen.values(), *(Seen(_plain(source.array), source.copies[-1]) for source in sources)]

    def _is_shared(self, source: _Source) -> bool:
        """Whether another object refers to the array, and nothing has written to it since its first copy."""
        return not _is_ours(source) and len(source.copies) == 1 and same_bits(source.array, source.copies[0])


def _place() -> Places:
    """Return the user's instruction that is running."""
    frame = user_frame(sys._getframe(1))
    return {} if frame is None else {(id(frame.f_code), frame.f_lasti): frame.f_code}


def _plain(array: Value) -> Value:
    return array if type(array) is np.ndarray else array.view(np.ndarray)


def _is_ours(source: _Source) -> bool:
    """Whether only the record refers to the array, and to its base if it is a view."""
    counted = getattr(sys, "getrefcount", None)
    if counted is None or counted(source[0]) > 2:  # the references of the record and of the call
        return False
    if source[0].base is None:
        return bool(source[0].flags.owndata)
    owner = type(source[0].base) is np.ndarray and source[0].base.base is None and source[0].base.flags.owndata
    return owner and counted(source[0].base) <= 2  # the references of the view and of the call


def same_bits(array: Value, expected: Value) -> bool:
    """Whether both arrays have equal shapes, bytes (NaNs and zeros included), and dtypes up to byte order."""
    if array.shape != expected.shape or array.dtype.newbyteorder("=") != expected.dtype:
        return False
    native = np.ascontiguousarray(array, expected.dtype).reshape(-1).view(np.uint8)
    return bool(np.array_equal(native, expected.reshape(-1).view(np.uint8)))


def looked_at(array: Value) -> Value:
    """Return a NumPy array, recorded as one whose values become a part of the program that is being traced."""
    if state.outside is not None:
        state.outside.look_at(array, native(array, copy=False))
    return array


@contextmanager
def recording() -> Iterator[Outside]:
    """Record the values read from outside, for the length of a `with` block."""
    outer = state.outside
    state.outside = outside = Outside(new_serial())
    try:
        yield outside
    finally:
        state.outside = outer
