"""State of tracing on this thread: open traces, named axes, scopes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tracer.ir.program import Source
    from tracer.trace.captured_values import Outside
    from tracer.trace.custom_rule_scope import Enclosure
    from tracer.trace.trace import Trace


class State(threading.local):
    """State of one thread.

    staging: the innermost open trace that records every operation, also on concrete operands.
    innermost: the innermost open trace of any kind, which owns new handles.
    axes: the sizes of named batch axes.
    scope: the names of the part of the program that is traced: see `named_scope`.
    source: the line of the equation that is being rewritten, which new equations inherit.
    pulling: whether a recorded path is pulled back outside `jit`, so that `source` is differentiated.
    outside: the record of values that the innermost function traced for compilation reads from outside.
    enclosure: the innermost running function with a custom rule, or running rule.
    asked: count of requests for elements that only a running program has.
    stand_ins: the operands of a running custom rule, by the id of the array that the rule closes over.
    """

    staging: Trace | None = None
    innermost: Trace | None = None
    scope = ""
    source: Source | None = None
    pulling = False
    outside: Outside | None = None
    enclosure: Enclosure | None = None
    asked = 0

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.axes: dict[object, int] = {}
        self.stand_ins: Mapping[int, Any] = {}


state = State()


class Level(NamedTuple):
    """Traces that took operations at some time; see `State`."""

    staging: Trace | None
    innermost: Trace | None
    outside: Outside | None
    axes: dict[object, int]

    @classmethod
    def current(cls) -> Level:
        """Return the traces that take operations now."""
        return cls(state.staging, state.innermost, state.outside, state.axes)

    @property
    def is_open(self) -> bool:
        """Whether the traces may still take operations on this thread."""
        return all(t is None or (t.is_open and t.thread == state.thread) for t in (self.staging, self.innermost))

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Send operations to these traces until the block ends."""
        outer = Level.current()
        state.staging, state.innermost, state.outside, state.axes = self
        try:
            yield
        finally:
            state.staging, state.innermost, state.outside, state.axes = outer


@contextmanager
def standing_in(stand_ins: Mapping[int, Any]) -> Iterator[None]:
    """Let operands of the equation stand in for arrays that a custom rule closes over, while it runs."""
    outer = state.stand_ins
    state.stand_ins = {**outer, **stand_ins}
    try:
        yield
    finally:
        state.stand_ins = outer


@contextmanager
def named_axis(name: object, size: int) -> Iterator[None]:
    """Let collectives name a batch axis until the block ends."""
    outer = state.axes
    if name is not None:
        state.axes = {**outer, name: size}
    try:
        yield
    finally:
        state.axes = outer
