"""What is being traced on this thread."""

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
    """staging: the innermost open trace that records every operation, operands of its own or not.

    innermost: the innermost open trace of any kind; it owns the handles that are made.
    axes: the sizes of named batch axes.
    scope: the names of the part of the program that is traced: see `named_scope`.
    source: the line of the equation that is being rewritten; new equations inherit it.
    outside: what the innermost function that is traced to be compiled reads from outside it.
    enclosure: the innermost function with rules of its own that runs, or whose rule does.
    asked: how often tracing asked for elements that only a running program knows.
    stand_ins: by id, for arrays from outside that a custom rule closes over: the operands that it runs on.
    """

    staging: Trace | None = None
    innermost: Trace | None = None
    scope = ""
    source: Source | None = None
    outside: Outside | None = None
    enclosure: Enclosure | None = None
    asked = 0

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.axes: dict[object, int] = {}
        self.stand_ins: Mapping[int, Any] = {}


state = State()


class Level(NamedTuple):
    """Where operations went at some time; see `State`."""

    staging: Trace | None
    innermost: Trace | None
    outside: Outside | None
    axes: dict[object, int]

    @classmethod
    def current(cls) -> Level:
        """Where they go now."""
        return cls(state.staging, state.innermost, state.outside, state.axes)

    @property
    def is_open(self) -> bool:
        """Whether they may go there still."""
        return all(t is None or (t.is_open and t.thread == state.thread) for t in (self.staging, self.innermost))

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let them go there again."""
        outer = Level.current()
        state.staging, state.innermost, state.outside, state.axes = self
        try:
            yield
        finally:
            state.staging, state.innermost, state.outside, state.axes = outer


@contextmanager
def standing_in(stand_ins: Mapping[int, Any]) -> Iterator[None]:
    """While a custom rule runs, let operands of the equation stand in for what it closes over."""
    outer = state.stand_ins
    state.stand_ins = {**outer, **stand_ins}
    try:
        yield
    finally:
        state.stand_ins = outer


@contextmanager
def named_axis(name: object, size: int) -> Iterator[None]:
    """Let collectives speak of a batch axis by name while a function is traced."""
    outer = state.axes
    if name is not None:
        state.axes = {**outer, name: size}
    try:
        yield
    finally:
        state.axes = outer
