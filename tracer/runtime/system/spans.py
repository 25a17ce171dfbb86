"""Spans of the compiler's work: traces, phases of compilations, transfers. Profiles, logs and messages read them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from tracer.ir.program import Source
from tracer.lazy import LazyModule
from tracer.runtime.system.screen import Screen, Ticker, screen
from tracer.settings import config
from tracer.trace.source import place

if TYPE_CHECKING:
    import logging
else:
    logging = LazyModule("logging")

_PATIENCE: Final = 2.0  # seconds of silence


class Span(NamedTuple):
    """Interval of time. kind: "trace", "compile", "phase", "transfer", "call". start, end: ns of `perf_counter_ns`."""

    kind: str
    name: str
    source: Source | None
    start: int
    end: int
    thread: int
    detail: str = ""

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return (self.end - self.start) * 1e-9


listeners: list[Callable[[Span], None]] = []
"""Functions that take each span when it is over. Empty unless a profile is open."""


class Work:
    """Trace or compilation that is under way."""

    def __init__(self, kind: str, name: str, source: Source | None) -> None:
        self.kind, self.name, self.source = kind, name, source
        self.start = self._since = time.perf_counter_ns()
        self.phase = ""
        self.phases: list[Span] = []

    def at(self, phase: str) -> None:
        """Begin a phase, and end the one before."""
        now = time.perf_counter_ns()
        if self.phase:
            self.phases.append(self._span("phase", self.phase, self._since, now))
        self.phase, self._since = phase, now

    def spans(self) -> list[Span]:
        """Return the whole and its phases, when it is over."""
        self.at("")
        return [self._span(self.kind, self.name, self.start, self._since), *self.phases]

    def _span(self, kind: str, name: str, start: int, end: int) -> Span:
        return Span(kind, name, self.source, start, end, threading.get_ident(), self.name if kind == "phase" else "")

    def __str__(self) -> str:
        return f"{self.name}{place(self.source)}"


@contextmanager
def working(kind: str, name: str, source: Source | None, *, patience: float = _PATIENCE) -> Iterator[Work]:
    """Enter a trace or compilation. One that takes `patience` seconds says so on the screen, if there is one."""
    work = Work(kind, name, source)
    shown = screen()
    reporter = _Reporter(work, shown, patience) if shown is not None else None
    try:
        yield work
    finally:
        whole, *phases = work.spans()
        if reporter is not None:
            reporter.end(whole.seconds)
        for listener in tuple(listeners):
            for span in (whole, *phases):
                listener(span)
        if config.log_compiles:
            parts = ", ".join(f"{span.name} {_duration(span.seconds)}" for span in phases)
            text = f"{_PAST[kind]} {work} in {_duration(whole.seconds)}{f' ({parts})' if parts else ''}"
            logging.getLogger("tracer").warning(text)


@contextmanager
def transferring(name: str, source: Callable[[], Source | None], size: Callable[[], int]) -> Iterator[None]:
    """Enter a copy between the host and a device, for a profile. size: returns the bytes."""
    if not listeners:
        yield
        return
    start = time.perf_counter_ns()
    yield
    span = Span("transfer", name, source(), start, time.perf_counter_ns(), threading.get_ident(), f"{size():,} B")
    for listener in tuple(listeners):
        listener(span)


_PAST: Final = {"trace": "traced", "compile": "compiled"}
_NOW: Final = {"trace": "tracing", "compile": "compiling"}


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


class _Reporter:
    """Message of work that takes long."""

    def __init__(self, work: Work, shown: Screen, patience: float) -> None:
        self._work, self._screen, self._is_shown = work, shown, False
        self._ticker = Ticker(self._tick, patience, 0.5)
        self._ticker.start()

    def _tick(self) -> None:
        self._is_shown = True
        seconds = (time.perf_counter_ns() - self._work.start) * 1e-9
        phase = f": {self._work.phase}" if self._work.phase else ""
        self._screen.show(f"tracer: {_NOW[self._work.kind]} {self._work}{phase}, {seconds:.0f} s")

    def end(self, seconds: float) -> None:
        """Write how long it took, if anything was shown."""
        self._ticker.stop()
        if self._is_shown:
            self._screen.end(f"tracer: {_PAST[self._work.kind]} {self._work} in {_duration(seconds)}")
