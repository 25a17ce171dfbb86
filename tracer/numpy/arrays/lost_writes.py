"""Writes that would be lost: `x[a][b] = v` sets an element of a copy that nobody holds.

Whether anybody holds an array is told by the count of references to it, and by the caller's instruction, which must be
an assignment to an item: what C code writes to may be held where nothing counts. What the count is for an array
without a name is measured on a class of the same shape; where one with a name looks alike, as in Pythons that lend
names' references, nothing is refused.
"""

from __future__ import annotations

import opcode
import sys
from types import FrameType
from typing import Any

from tracer.errors import MutationError, message
from tracer.trace.array import Array
from tracer.trace.source import here

_ASSIGNMENTS = frozenset(opcode.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in opcode.opmap)


# Pythons that count no references say of every array that somebody holds it.
references = getattr(sys, "getrefcount", lambda _: sys.maxsize)


class _Probe:
    """An object whose items are set as an Array's are."""

    __slots__ = ("seen",)

    def __setitem__(self, index: Any, value: Any) -> None:
        value.append(references(self))


def _count_without_name() -> int:
    """What `references(self)` is in `__setitem__` of an object that the assignment alone holds; 0 if unknown."""
    without: list[int] = []
    named: list[int] = []
    probe = _Probe()
    _Probe()[0] = without
    probe[0] = named
    return without[0] if without[0] < named[0] else 0


_WITHOUT_NAME = _count_without_name()


def refuse_lost_writes(count: int, x: Array, caller: FrameType) -> None:
    """MutationError for a write to an array that nobody holds, by the count of references that `__setitem__` found."""
    if count <= _WITHOUT_NAME and caller.f_code.co_code[caller.f_lasti] in _ASSIGNMENTS:
        raise MutationError(
            message(
                f"x[a][b] = v{here()}: the write would be lost, as x[a] is a copy that nothing else holds",
                f"got {x.type} to write to",
                help="index once, x[a, b] = v, or name the part and put it back: y = x[a]; y[b] = v; x[a] = y",
            )
        )
