"""`summary`: a model's layers with their types, sizes and costs, from one abstract trace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracer import markup
from tracer.errors import ArgumentError, message
from tracer.nn.model_functions import count, nbytes
from tracer.nn.module import Module, modules, recording
from tracer.nn.stacks import Stack
from tracer.runtime.jit.jit import jit
from tracer.trace import trees
from tracer.trace.source import here


def summary(model: Module, *args: Any, depth: int = 2, step: Sequence[Any] | None = None) -> Summary:
    """Return a table of the model's layers: shapes and dtypes that they map, and counts of trained elements.

    args: the arguments of the model's call, arrays of any shapes and dtypes, or `ShapeDtypeStruct`s; depth: down to how
    many levels of layers; step: a jitted training step and its arguments, (step, model, batch, ...), whose cost and
    memory two lines more tell. The model is traced once, with types alone: nothing is allocated or run. Equal
    neighbours in a list share a line. Flops and the peak of memory are of the compiler's plans. Raises ArgumentError
    for other models than modules.

    >>> model = nn.MLP([64, 128, 10], key=tracer.random.key(0))
    >>> nn.summary(model, tracer.ShapeDtypeStruct((32, 64), "float32"))
    model      MLP     f32[32,64]  → f32[32,10]   9,610
    layers[0]  Linear  f32[32,64]  → f32[32,128]  8,320
    layers[1]  Linear  f32[32,128] → f32[32,10]   1,290
    9,610 trained, 37.5 KiB; forward 614,720 flops, peak 78.8 KiB
    """
    if not isinstance(model, Module):
        raise ArgumentError(message(f"nn.summary{here()} takes a module", f"got {type(model).__name__}"))
    recorder = _Recorder()
    with recording(recorder):
        lowered = jit(lambda model, args: model(*args)).lower(model, args)
    rows = [
        _Row(path[1:] or "model", part, *recorder.calls.get(path, ("", "")))
        for path, part in modules(model)
        if path.count(".") <= depth
    ]
    flops, peak = lowered.cost().flops, lowered.memory().peak
    kept = "".join(f", {count(model, role):,} {role}" for role in ("frozen", "state") if count(model, role))
    lines = [f"{count(model):,} trained{kept}, {_bytes(nbytes(model))}; forward {flops:,} flops, peak {_bytes(peak)}"]
    if step is not None:
        function, *operands = step
        planned = (function if hasattr(function, "lower") else jit(function)).lower(*operands)
        memory = planned.memory()
        lines.append(f"training step {planned.cost().flops:,} flops; peak {_bytes(memory.peak)}")
        lines.append(
            f"arguments {_bytes(memory.arguments)}, results {_bytes(memory.results)} beside donated ones, "
            f"temporaries {_bytes(memory.arena)}"
        )
    return Summary(tuple(row.cells() for row in _folded(rows)), tuple(lines))


@dataclass(frozen=True)
class Summary:
    """Table of a model's layers, and totals: see `summary`. Prints as text; notebooks show it as a table.

    rows: path, class, type of the input, type of the result and number of trained elements, as text.
    """

    rows: tuple[tuple[str, str, str, str, str], ...]
    totals: tuple[str, ...]

    def __str__(self) -> str:
        widths = [max(len(row[n]) for row in self.rows) for n in range(5)]
        return "\n".join([*(_line(row, widths) for row in self.rows), *self.totals])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = markup.table(("layer", "class", "input", "result", "trained"), self.rows, text=(0, 1, 2, 3))
        return markup.view("", shown, *map(markup.paragraph, self.totals))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    name, kind, given, found, size = row
    arrow = "→" if given or found else " "
    text = f"{name:<{widths[0]}}  {kind:<{widths[1]}}  {given:<{widths[2]}} {arrow} {found:<{widths[3]}}"
    return f"{text}  {size:>{widths[4]}}"


@dataclass(frozen=True)
class _Row:
    """A layer of the table, with types as text. last: the last of the equal neighbours that it stands for."""

    path: str
    module: Module
    given: str
    found: str
    last: str = ""

    def cells(self) -> tuple[str, str, str, str, str]:
        name, size = type(self.module).__name__, f"{count(self.module):,}"
        if not self.last:
            return self.path, name, self.given, self.found, size
        (start, first), (_, last) = _numbered(self.path), _numbered(self.last)
        return f"{start}[{first}…{last}]", f"{name} ×{last - first + 1}", self.given, self.found, f"{size} each"


def _folded(rows: Sequence[_Row]) -> Iterator[_Row]:
    """Yield the rows. The first of equal neighbours in a list is shown for all, with the rows below it."""
    by_path, hidden = {row.path: row for row in rows}, set[str]()
    for row in rows:
        if any(row.path == path or row.path.startswith((f"{path}.", f"{path}[")) for path in hidden):
            continue
        start, n = _numbered(row.path)
        last = ""
        while n >= 0 and (other := by_path.get(f"{start}[{n + 1}]")) is not None and _is_alike(row, other):
            hidden.add(last := other.path)
            n += 1
        yield replace(row, last=last)


def _numbered(path: str) -> tuple[str, int]:
    """Return "blocks" and 3 for "blocks[3]", -1 where there is no number at the end."""
    found = _ENDING.match(path)
    return (path, -1) if found is None else (found[1], int(found[2]))


_ENDING = re.compile(r"(.*)\[(\d+)\]$")


def _is_alike(one: _Row, other: _Row) -> bool:
    return (one.given, one.found) == (other.given, other.found) and repr(one.module) == repr(other.module)


class _Recorder:
    """Types of the first call of every layer, by path. Layers of a stack, which its loop copies, are found by place."""

    def __init__(self) -> None:
        self.calls: dict[str, tuple[str, str]] = {}
        self._paths: dict[int, str] = {}
        self._seen: list[Module] = []  # kept, so that no other object gets the id of one
        self._open: list[tuple[Module, str]] = []

    def enter(self, module: Module) -> None:
        if id(module) not in self._paths:
            outer, path = self._open[-1] if self._open else (None, "")
            inside = f"{path}.layers" if isinstance(outer, Stack) else path
            for place, part in modules(module, inside if self._open else ""):
                self._paths[id(part)] = place
                self._seen.append(part)
        self._open.append((module, self._paths[id(module)]))

    def leave(self, args: Any, result: Any) -> None:
        _, path = self._open.pop()
        self.calls.setdefault(path, (_types(args), _types(result)))


def _types(tree: Any) -> str:
    """Return the types of a tree's arrays as text, of two at most."""
    found = [str(leaf.type) for leaf in trees.flatten(tree)[0] if hasattr(leaf, "type")]
    return ", ".join(found[:2]) + ", …" * (len(found) > 2)


def _bytes(n: int) -> str:
    if n < 10_240:
        return f"{n:,} B"
    return f"{n / 2**10:,.1f} KiB" if n < 2**20 else f"{n / 2**20:,.1f} MiB"
