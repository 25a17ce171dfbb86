"""`profile`: a block in which calls, compilations, transfers and, on request, loop nests are recorded."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tracer import markup
from tracer.errors import ArgumentError, message
from tracer.ir.program import Program, Source
from tracer.runtime.analysis.tables import html_table, plain_table
from tracer.runtime.jit.specialization import Specialization
from tracer.runtime.profile import roofline
from tracer.runtime.profile.flame import flame
from tracer.runtime.profile.nests import Clocked, Nest
from tracer.runtime.profile.report import Entry, head, table, trace_events
from tracer.runtime.system import spans
from tracer.runtime.system.spans import Span
from tracer.settings import gate
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import user_source
from tracer.trace.tracebacks import set_method_boundaries

_execute = Specialization.execute
_open: list[Profile] = []


class Call(NamedTuple):
    """Call of a compiled program. nests: the time of each, if they were asked for."""

    span: Span
    program: Program
    nests: Sequence[Nest] = ()


class Profile:
    """Record of a block: `calls`, and `spans` of traces, compilations and transfers. Prints as a table."""

    def __init__(self, nests: bool) -> None:
        self.calls: list[Call] = []
        self.spans: list[Span] = []
        self.start = self.end = time.perf_counter_ns()
        self._nests = nests
        self._clocked: dict[int, tuple[Program, list[Clocked]]] = {}  # free ones, by the program's id, kept alive here
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        if self in _open:
            raise ArgumentError(message("profile: the block is open already", help="open another, tracer.profile()"))
        gate.close()  # sends calls through Python, where the class's method stands
        _open.append(self)
        spans.listeners.append(self.spans.append)
        Specialization.execute = _recorded  # type: ignore[assignment, method-assign]
        self.start = time.perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end = time.perf_counter_ns()
        _open.remove(self)
        spans.listeners.remove(self.spans.append)
        if not _open:
            Specialization.execute = _execute  # type: ignore[method-assign]
        gate.open()

    def run(self, called: Specialization, operands: Sequence[Array], source: Source | None) -> list[Array]:
        """Run a compiled program, and record the call."""
        traced, nests = called.traced, list[Nest]()
        clocked = self._taken(traced.program) if self._nests else None
        if clocked is None:
            called.point()  # so that the call's time is without it
        start = time.perf_counter_ns()
        if clocked is None:
            outputs = _execute(called, operands)
        else:
            captured = [as_array(array, copy=False) for array in traced.captured]
            try:
                outputs, nests = clocked.call([*captured, *operands])
            finally:
                self._clocked[id(traced.program)][1].append(clocked)
        span = Span("call", traced.program.name, source, start, time.perf_counter_ns(), threading.get_ident())
        self.calls.append(Call(span, traced.program, nests))
        return outputs

    def _taken(self, program: Program) -> Clocked:
        """Return a clocked program that no other thread runs."""
        with self._lock:
            free = self._clocked.setdefault(id(program), (program, []))[1]
            found = free.pop() if free else None
        return Clocked(program) if found is None else found

    @property
    def seconds(self) -> float:
        """Length of the block, in seconds."""
        return ((time.perf_counter_ns() if self in _open else self.end) - self.start) * 1e-9

    def entries(self) -> list[Entry]:
        """Return the recorded times, summed by kind, name and line, the longest first."""
        found: dict[tuple[Any, ...], Entry] = {}

        def add(kind: str, name: str, sources: tuple[Source, ...], *times: Any) -> None:
            found.setdefault((kind, name, sources), Entry(kind, name, sources)).add(*times)

        for span in self.spans:
            if span.kind != "phase":
                add(span.kind, span.name, (span.source,) if span.source else (), span.seconds)
        for call in self.calls:
            add("call", call.span.name, (call.span.source,) if call.span.source else (), call.span.seconds)
            for nest in call.nests:
                add("nest", f"{call.span.name}: {nest.name}", nest.sources, nest.seconds, nest.runs, nest.threads)
        return sorted(found.values(), key=lambda entry: -entry.seconds)

    def __str__(self) -> str:
        entries = self.entries()
        return f"{head(entries, self.seconds)}\n{plain_table(*table(entries, self.seconds))}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        entries = self.entries()
        rows = html_table(*table(entries, self.seconds))
        return markup.view("profile", self.flame(), rows, note=head(entries, self.seconds).removeprefix("profile of "))

    def flame(self) -> str:
        """Return a picture, as SVG: time by calls and compilations, and by the nests and phases within them."""
        return flame(self.spans, [(call.span, call.nests) for call in self.calls], self.seconds)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file in the Chrome trace event format, which Perfetto and chrome://tracing open.

        Nests are laid one after another within their call. Raises ArgumentError if the file cannot be written.
        """
        events = trace_events(self.spans, [(call.span, call.nests) for call in self.calls], self.start)
        try:
            Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")
        except (OSError, TypeError, ValueError) as error:
            text = f"profile.save: {str(path)!r} cannot be written"
            reason = getattr(error, "strerror", None) or str(error)
            raise ArgumentError(message(text, reason, help="give the path of a file")) from None

    def roofline(self, axes: Any = None) -> Any:
        """Draw the programs called beside the machine's measured bandwidth and peak; return matplotlib's axes.

        axes: to draw on; None for a new figure. Raises ImportError without matplotlib.
        """
        return roofline.draw([(call.program, call.span.seconds) for call in self.calls], axes)


set_method_boundaries(Profile, ())


def _recorded(called: Specialization, operands: Sequence[Array]) -> list[Array]:
    """Stand for `Specialization.execute` while a profile is open."""
    source = user_source()
    return _open[-1].run(called, operands, source)


def profile(*, nests: bool = False) -> Profile:
    """Return a block that records calls of compiled programs, traces, compilations and transfers, with their lines.

    nests: whether to compile each called program once more, with a clock around each loop nest and library call. The
    column `threads` tells how many threads worked on a nest, on average.
    Calls in the block go through Python, which takes some 20 µs each; a clock takes 20 ns. Outside the block nothing
    is recorded, and calls are as if there were no profiles. The innermost of nested blocks records the calls.

    >>> f = tracer.jit(lambda x: tnp.sin(x).sum())
    >>> with tracer.profile(nests=True) as p:
    ...     for _ in range(3):
    ...         y = f(tnp.ones(1000))
    >>> len(p.calls), [entry.count for entry in p.entries() if entry.kind == "call" and entry.name == "lambda"]
    (3, [3])
    """
    return Profile(nests)
