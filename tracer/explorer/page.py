"""HTML of the explorer: one page with style, script and data inside, and its form for notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from tracer.explorer.records import Figures, Function, Key, Line, Stage
from tracer.ir.program import Source

_STATIC_LINES = 2_000
"""Lines of a stage that the form without scripts shows, so that notebooks stay small."""


def page_html(functions: Sequence[Function]) -> str:
    """Return one page of HTML. It loads nothing, and without scripts it shows the stages as text."""
    title = " and ".join(function.name for function in functions)
    resources = files("tracer.explorer")
    style = (resources / "page.css").read_text(encoding="utf-8")
    parts = [(resources / name).read_text(encoding="utf-8") for name in ("stages.js", "panes.js", "page.js")]
    script = "\n".join(['"use strict";', "(() => {", *parts, "})();", ""])
    data = json.dumps(_data(functions), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · tracer</title>\n<style>\n{style}</style></head>\n<body>"
        f'<div id="app"></div><noscript>{"".join(_static(functions))}</noscript>\n'
        f'<script id="data" type="application/json">{data}</script>\n<script>\n{script}</script></body></html>\n'
    )


def notebook_html(functions: Sequence[Function]) -> str:
    """Return the panes for a notebook: in a frame, whose style and script do not touch the page.

    Notebooks that are not trusted, and pages that show exported ones, drop frames and styles. They show the stages
    below it as text, which is hidden where there is a frame.
    """
    frame = (
        f'<iframe class="tracer-frame" title="stages" sandbox="allow-scripts allow-downloads allow-popups" '
        f'srcdoc="{escape(page_html(functions))}" style="width: 100%; height: 720px; resize: vertical; border: 0">'
        "</iframe>"
    )
    style = "<style>.tracer-explorer:has(> iframe) > .tracer-static { display: none; }</style>"
    static = f'<div class="tracer-static">{"".join(_static(functions))}</div>'
    return f'<div class="tracer-explorer">{style}{frame}{static}</div>'


def _static(functions: Sequence[Function]) -> Iterator[str]:
    for function in functions:
        totals = ", ".join(f"{name} {value}" for name, value in function.totals)
        yield f"<h3>{escape(function.name)} {escape(function.signature)}</h3><p>{escape(totals)}</p>"
        for stage in function.stages:
            if stage.main:
                opened = " open" if stage.name in ("source", "optimized") else ""
                yield f"<details{opened}><summary>{escape(stage.name)}, {counted(len(stage.lines))}</summary>"
                yield f"<pre>{escape(_text(stage))}</pre></details>"


def counted(lines: int) -> str:
    """Return `1 line` or `2 lines`."""
    return "1 line" if lines == 1 else f"{lines:,} lines"


def _text(stage: Stage) -> str:
    shown = stage.lines[:_STATIC_LINES]
    width = max((len(line.text) for line in shown if line.place and len(line.text) < 90), default=0)
    lines = [f"{line.text.ljust(width)}  # {line.place}" if line.place else line.text for line in shown]
    left = len(stage.lines) - len(shown)
    return "\n".join([*lines, *[f"... {left:,} more lines"] * (left > 0)])


# -- data --------------------------------------------------------------------------------------------------


def _data(functions: Sequence[Function]) -> dict[str, Any]:
    """Return the stages as JSON takes them: lines as lists, sets of keys and figures by number."""
    return _Packer().packed(functions)


class _Packer:
    """Numbers keys and sets of keys, each once."""

    def __init__(self) -> None:
        self.keys: dict[Key, int] = {}
        self.sets: dict[tuple[Key, ...], int] = {(): 0}

    def packed(self, functions: Sequence[Function]) -> dict[str, Any]:
        packed = [self.function(function) for function in functions]
        sets = [[self.keys.setdefault(key, len(self.keys)) for key in keys] for keys in self.sets]
        names = [str(Source(file, line, "")) for file, line in self.keys]
        return {"functions": packed, "sets": sets, "keys": names}

    def function(self, function: Function) -> dict[str, Any]:
        stages = [self.stage(stage) for stage in function.stages]
        return {
            "name": function.name, "signature": function.signature, "totals": function.totals, "stages": stages,
        }  # fmt: skip

    def stage(self, stage: Stage) -> dict[str, Any]:
        return {
            "name": stage.name, "kind": stage.kind.value, "note": stage.note, "above": stage.above, "main": stage.main,
            "lines": [self.line(line) for line in stage.lines],
        }  # fmt: skip

    def line(self, line: Line) -> list[Any]:
        """Return text, full text, set of keys, place, line above and figures, without empty ones at the end."""
        keys = self.sets.setdefault(line.keys, len(self.sets))
        above = -1 if line.above is None else line.above
        packed: list[Any] = [line.text, line.full, keys, line.place, above, _figures(line.figures)]
        for empty in (None, -1, "", 0, ""):
            if packed[-1] != empty:
                break
            packed.pop()
        return packed


def _figures(figures: Figures | None) -> list[Any] | None:
    if figures is None:
        return None
    f = figures
    return [f.flops, f.functions, f.read, f.written, f.bytes, round(f.share, 5), round(f.traffic, 5)]
