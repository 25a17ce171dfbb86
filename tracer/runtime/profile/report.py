"""Reports of profiles: rows of the table, and events of the Chrome trace format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tracer.ir.program import Source
from tracer.runtime.analysis.tables import Column, Row
from tracer.runtime.profile.nests import Nest
from tracer.runtime.system.spans import Span

_COLUMNS: Final = (
    Column("kind", is_text=True), Column("name", is_text=True), Column("line", is_text=True), Column("count"),
    Column("total"), Column("mean"), Column("share"),
)  # fmt: skip

Calls = Iterable[tuple[Span, Sequence[Nest]]]


@dataclass(slots=True)
class Entry:
    """Time of one kind, name and place, in all. kind: "call", "compile", "trace", "transfer" or "nest".

    busy: seconds of all threads that worked on a nest.
    """

    kind: str
    name: str
    sources: tuple[Source, ...]
    seconds: float = 0.0
    count: int = 0
    busy: float = 0.0

    def add(self, seconds: float, count: int = 1, threads: float = 1.0) -> None:
        """Add one call, or the runs of a nest in it and the mean number of threads at work."""
        self.seconds += seconds
        self.count += count
        self.busy += threads * seconds

    def row(self, whole: float) -> Row:
        """Return the row of the table, whose last column is for nests. whole: seconds of the block."""
        share = self.seconds / whole if whole else 0.0
        mean = duration(self.seconds / self.count) if self.count else ""
        cells = [self.kind, self.name, places(self.sources), f"{self.count:,}", duration(self.seconds), mean]
        threads = f"{self.busy / self.seconds:.1f}" if self.kind == "nest" and self.busy else ""
        return Row([*cells, f"{100 * share:.1f}%", threads], share=min(share, 1.0))


def table(entries: Sequence[Entry], whole: float) -> tuple[Sequence[Column], list[Row]]:
    """Return the columns and rows of the table of a profile. The column of threads is there if nests are."""
    rows = [entry.row(whole) for entry in entries]
    if any(entry.kind == "nest" for entry in entries):
        return (*_COLUMNS, Column("threads")), rows
    return _COLUMNS, [row._replace(cells=row.cells[:-1]) for row in rows]


def places(sources: Sequence[Source]) -> str:
    """Return the lines of a nest, at most three files and lines.

    >>> places([Source("demo.py", 3, "f"), Source("demo.py", 5, "f")])
    'demo.py:3, 5'
    """
    texts: dict[str, list[int]] = {}
    for source in sources:
        file = str(source).rpartition(":")[0]
        lines = texts.setdefault(file, [])
        if source.line not in lines:
            lines.append(source.line)
    return "; ".join(f"{file}:{', '.join(map(str, sorted(lines)[:6]))}" for file, lines in list(texts.items())[:3])


def duration(seconds: float) -> str:
    """Return a duration with its unit, in three digits.

    >>> duration(0.00123)
    '1.23 ms'
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def head(entries: Sequence[Entry], whole: float) -> str:
    """Return the line above the table: the length of the block, and the share of each kind."""
    kinds = {
        kind: sum(e.seconds for e in entries if e.kind == kind) for kind in ("call", "compile", "trace", "transfer")
    }
    shares = [f"{100 * seconds / whole:.0f}% {kind}" for kind, seconds in kinds.items() if seconds and whole]
    return f"profile of {duration(whole)}{': ' if shares else ''}{', '.join(shares)}"


def trace_events(spans: Sequence[Span], calls: Calls, start: int) -> list[dict[str, Any]]:
    """Return the events of the Chrome trace format, times in µs from `start`, ns. Nests follow each other in a call.

    Threads are numbered, since viewers read 32 bits of a thread's identifier.
    """
    process = os.getpid()
    found: list[dict[str, Any]] = []
    threads: dict[int, int] = {}

    def add(kind: str, name: str, begin: float, length: float, thread: int, **details: Any) -> None:
        times = {"ts": begin, "dur": length, "pid": process, "tid": threads.setdefault(thread, len(threads) + 1)}
        found.append({"name": name, "cat": kind, "ph": "X", **times, "args": details})

    for span in spans:
        _add_span(add, span, start)
    for span, nests in calls:
        _add_span(add, span, start)
        at = (span.start - start) * 1e-3
        for nest in nests:
            details = {"lines": places(nest.sources), "runs": nest.runs, "threads": round(nest.threads, 2)}
            add("nest", nest.name, at, 1e6 * nest.seconds, span.thread, **details)
            at += 1e6 * nest.seconds
    names = [("process_name", 0, "tracer"), *(("thread_name", n, f"thread {n}") for n in threads.values())]
    shown = [{"name": kind, "ph": "M", "pid": process, "tid": n, "args": {"name": name}} for kind, n, name in names]
    return [*shown, *sorted(found, key=lambda event: (event["ts"], -event["dur"]))]


def _add_span(add: Any, span: Span, start: int) -> None:
    details = {"line": str(span.source) if span.source else "", "detail": span.detail}
    add(span.kind, span.name, (span.start - start) * 1e-3, (span.end - span.start) * 1e-3, span.thread, **details)
