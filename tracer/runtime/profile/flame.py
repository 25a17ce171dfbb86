"""Flame picture of a profile, as SVG: time from left to right by size, its parts below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from tracer.runtime.profile.nests import Nest
from tracer.runtime.profile.report import duration, places
from tracer.runtime.system.spans import Span

_WIDTH: Final = 1000.0
_HEIGHT: Final = 20.0
_LETTER: Final = 7.0  # width of a character
_THIN: Final = 0.5  # narrower boxes are left out
_HUES: Final = {"call": 210, "compile": 30, "trace": 45, "transfer": 280, "phase": 20, "nest": 190, "profile": 0}


@dataclass(slots=True)
class _Box:
    """Time of a name, and its parts."""

    kind: str
    seconds: float = 0.0
    place: str = ""
    parts: dict[str, _Box] = field(default_factory=dict)

    def part(self, kind: str, name: str, place: str) -> _Box:
        return self.parts.setdefault(f"{name}  {place}" if place else name, _Box(kind, place=place))


def flame(spans: Sequence[Span], calls: Iterable[tuple[Span, Sequence[Nest]]], seconds: float) -> str:
    """Return the picture. Equal calls are one box, as wide as their time; a box's tooltip has its figures."""
    root = _Box("profile", seconds)
    for span in spans:
        if span.kind == "phase":
            whole = root.part("compile", span.detail, str(span.source or ""))
            whole.part("phase", span.name, "").seconds += span.seconds
        else:
            root.part(span.kind, span.name, str(span.source or "")).seconds += span.seconds
    for span, nests in calls:
        call = root.part("call", f"{span.name}()", str(span.source or ""))
        call.seconds += span.seconds
        for nest in nests:
            call.part("nest", nest.name, places(nest.sources)).seconds += nest.seconds
    boxes: list[str] = []
    _draw(boxes, "profile", root, 0.0, 0, _WIDTH / seconds if seconds else 0.0, seconds)
    rows = 1 + max((2 if box.parts else 1 for box in root.parts.values()), default=0)
    view = f'viewBox="0 0 {_WIDTH:g} {rows * _HEIGHT:g}"'
    style = "max-width: 100%; font: 11px ui-monospace, Menlo, Consolas, monospace"
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {view} width="{_WIDTH:g}" role="img" style="{style}">'
    return f"{opening}{''.join(boxes)}</svg>"


def _draw(boxes: list[str], name: str, box: _Box, left: float, row: int, scale: float, whole: float) -> None:
    width = min(box.seconds * scale, _WIDTH - left)
    if width < _THIN:
        return
    share = f"{100 * box.seconds / whole:.1f}%" if whole else ""
    title = f"<title>{escape(name)}: {duration(box.seconds)}, {share}</title>"
    shown = escape(name[: int(width / _LETTER)]) if width > 3 * _LETTER else ""
    colour = f"hsl({_HUES[box.kind]} 60% {45 if box.kind == 'profile' else 55}% / 0.45)"
    at = f'x="{left:.2f}" y="{row * _HEIGHT:g}" width="{width:.2f}" height="{_HEIGHT - 1:g}"'
    text = f'<text x="{left + 3:.2f}" y="{row * _HEIGHT + 14:g}" fill="currentColor">{shown}</text>' if shown else ""
    boxes.append(f'<g>{title}<rect {at} fill="{colour}" rx="2"/>{text}</g>')
    for part, inner in sorted(box.parts.items(), key=lambda item: -item[1].seconds):
        _draw(boxes, part, inner, left, row + 1, scale, whole)
        left += inner.seconds * scale
