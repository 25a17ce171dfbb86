"""Who fills the slots of `Array` for its items: Python's functions at first, compiled code once they are called often.

Subclasses that define the methods keep theirs, and Python's functions stay behind the code: see `element_text`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tracer.errors import InternalError
from tracer.lazy import LazyModule
from tracer.trace.array import Array

if TYPE_CHECKING:
    from tracer.runtime import element_code
    from tracer.runtime.jit import entry
else:
    element_code = LazyModule("tracer.runtime.element_code")
    entry = LazyModule("tracer.runtime.jit.entry")

OFTEN = 500  # calls by Python that take about as long as the code takes to load where LLVM is there already
_ROUNDS = 50  # the same where it is not


class Functions(NamedTuple):
    """What Python does for the slots, by their names."""

    getitem: Callable[..., Any]
    setitem: Callable[..., Any]
    delitem: Callable[..., Any]


class Slots:
    """The state of the slots.

    get: an array's elements at an index; written: a copy of an array with a value written at an index, or None for what
    Python is to do. Both are None while Python's functions fill the slots.
    """

    def __init__(self) -> None:
        self._functions: Functions | None = None
        self._calls = itertools.count(1)
        self.get: Callable[[Array, Any], Array] | None = None
        self.written: Callable[[Array, Any, Any], Array | None] | None = None

    def stand_for(self, functions: Functions) -> None:
        """Python's functions, which `Array` has already."""
        self._functions = functions

    @property
    def functions(self) -> Functions:
        """The same."""
        if self._functions is None:
            raise InternalError("Array has no methods yet")
        return self._functions

    def note(self) -> None:
        """One more call by way of Python."""
        count = next(self._calls)
        if count % OFTEN or self.get is not None or count > OFTEN * _ROUNDS:
            return
        if count == OFTEN * _ROUNDS or "llvmlite" in sys.modules:
            self.fill()

    def fill(self) -> bool:
        """Put compiled code into the slots, where it can be; whether it is there."""
        if not entry.entries_enabled():
            return False
        code = element_code.element_code()
        for name, descriptor in code.descriptors.items():
            setattr(Array, name, descriptor)
        self.get, self.written = code.get, code.written
        return True

    def empty(self) -> None:
        """Put Python's functions back."""
        self.get = self.written = None
        for name, function in self.functions._asdict().items():
            setattr(Array, f"__{name}__", function)


slots = Slots()
