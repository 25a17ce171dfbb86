"""Detection of lost writes: `x[a][b] = v` sets an element of a temporary copy.

A temporary is recognised by its reference count and by the caller's instruction. This must be an assignment to an item.
C code may hold arrays without counted references. The reference count of a temporary is measured on a class of the same
shape. If a named object has the same count, as in Pythons that borrow references from names, nothing is refused.
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


# Without reference counts, every array counts as held.
references = getattr(sys, "getrefcount", lambda _: sys.maxsize)


class _Probe:
    """Object whose items are assigned like an Array's items."""

    __slots__ = ("seen",)

    def __setitem__(self, index: Any, value: Any) -> None:
        value.append(references(self))


def _count_without_name() -> int:
    """Return `references(self)` in `__setitem__` of a temporary; 0 if it cannot be distinguished."""
    without: list[int] = []
    named: list[int] = []
    probe = _Probe()
    _Probe()[0] = without
    probe[0] = named
    return without[0] if without[0] < named[0] else 0


_WITHOUT_NAME = _count_without_name()


def refuse_lost_writes(count: int, x: Array, caller: FrameType) -> None:
    """Raise MutationError for a write to a temporary array. count: the references that `__setitem__` found."""
    if count <= _WITHOUT_NAME and caller.f_code.co_code[caller.f_lasti] in _ASSIGNMENTS:
        raise MutationError(
            message(
                f"x[a][b] = v{here()}: the write would be lost, because x[a] is a temporary copy",
                f"got {x.type} to write to",
                help="index once, x[a, b] = v, or name the part and put it back: y = x[a]; y[b] = v; x[a] = y",
            )
        )
