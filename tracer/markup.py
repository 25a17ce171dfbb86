"""HTML of notebooks in one style: a view with a title, tables with bars, code, pictures of numbers.

Each `_repr_html_` is made of these parts. A view is one `<div>` with its own style, whose rules reach no further, and
without scripts. Colours are mixed with the page's own text colour, so they suit light and dark pages. Untrusted
notebooks drop the style, and keep the tables and text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

MONO: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
BACKGROUND: Final = "var(--jp-layout-color0, var(--vscode-editor-background, Canvas))"
"""Colour of the notebook behind a view."""
BLUE, ORANGE, GREEN, PURPLE, YELLOW = "#3b82f6", "#e0823d", "#10a37f", "#a855f7", "#e3b341"

_STYLE: Final = f"""
.tracer-view {{ color: inherit; font-size: 13px; line-height: 1.45; max-width: 100%; overflow-x: auto; }}
.tracer-view .title {{ font-weight: 600; margin: 2px 0 4px; }}
.tracer-view .title span {{ font-weight: 400; opacity: 0.65; margin-left: 0.9em; }}
.tracer-view table {{ border-collapse: collapse; margin: 0; border: 0; font: inherit; color: inherit; }}
.tracer-view th {{ font-weight: 500; opacity: 0.6; text-align: right; padding: 2px 12px 3px 0; border: 0;
  border-bottom: 1px solid color-mix(in srgb, currentColor 22%, transparent); background: none; white-space: nowrap; }}
.tracer-view td {{ text-align: right; padding: 1px 12px 1px 0; border: 0; white-space: nowrap; background: none;
  font-variant-numeric: tabular-nums; font-family: {MONO}; font-size: 12px; }}
.tracer-view tbody tr {{ background: none; }}
.tracer-view tbody tr:hover {{ background: color-mix(in srgb, currentColor 6%, transparent); }}
.tracer-view td.text, .tracer-view th.text {{ text-align: left; }}
.tracer-view tr.total td {{ font-weight: 600;
  border-top: 1px solid color-mix(in srgb, currentColor 22%, transparent); }}
.tracer-view td.bars {{ padding-right: 12px; min-width: 90px; text-align: left; }}
.tracer-view .bar {{ display: block; height: 4px; margin: 2px 0; border-radius: 2px; }}
.tracer-view pre {{ margin: 0; padding: 0; font: 12px/1.5 {MONO}; color: inherit; background: none; border: 0; }}
.tracer-view p {{ margin: 3px 0; opacity: 0.75; }}
.tracer-view summary {{ cursor: pointer; }}
.tracer-view svg {{ display: block; margin: 4px 0; overflow: visible; }}
"""


def view(title: str, *parts: str, note: str = "") -> str:
    """Return a view of parts that are HTML already. title, note: plain text."""
    beside = f"<span> {escape(note)}</span>" if note else ""
    head = f'<div class="title">{escape(title)}{beside}</div>' if title or note else ""
    return f'<div class="tracer-view"><style>{_STYLE}</style>{head}{"".join(parts)}</div>'


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    text: Sequence[int] = (0,),
    bars: Sequence[Sequence[float]] | None = None,
    total: Sequence[str] | None = None,
) -> str:
    """Return a table of plain text.

    text: the columns of words, which stand on the left; all other columns are numbers. bars: for each row, shares from
    0 to 1, drawn before it in blue and orange. total: a last row.
    """
    kinds = [' class="text"' if n in text else "" for n in range(len(head))]

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in zip(kinds, row, strict=True))

    found = ["<table><thead><tr>", "<th></th>" * (bars is not None), cells(head, "th"), "</tr></thead><tbody>"]
    for n, row in enumerate(rows):
        shares = "" if bars is None else f'<td class="bars">{_bars(bars[n])}</td>'
        found.append(f"<tr>{shares}{cells(row, 'td')}</tr>")
    if total is not None:
        found.append(f'<tr class="total">{"<td></td>" * (bars is not None)}{cells(total, "td")}</tr>')
    return "".join([*found, "</tbody></table>"])


def _bars(shares: Sequence[float]) -> str:
    pairs = zip(shares, (BLUE, ORANGE), strict=False)
    return "".join(
        f'<span class="bar" style="width: {90 * share:.1f}px; background: {colour}"></span>' for share, colour in pairs
    )


def code(text: str) -> str:
    """Return text in the font of code."""
    return f"<pre>{escape(text)}</pre>"


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def folded(title: str, inner: str) -> str:
    """Return HTML that unfolds by a click. title: plain text."""
    return f"<details><summary>{escape(title)}</summary>{inner}</details>"


def from_markdown(text: str) -> str:
    """Return paragraphs and fenced code of Markdown.

    >>> from_markdown("Use `x[:, None]`.\\n\\n```\\n>>> x\\n```")
    '<p>Use <code>x[:, None]</code>.</p><pre>&gt;&gt;&gt; x</pre>'
    """
    found = []
    for number, part in enumerate(re.split(r"^```\w*\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)):
        if number % 2:
            found.append(code(part.strip()))
            continue
        for each in filter(None, part.strip().split("\n\n")):
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", escape(each, quote=False))
            found.append("<p>" + re.sub("`([^`]*)`", r"<code>\1</code>", words) + "</p>")
    return "".join(found)


def histogram(counts: Sequence[int], low: str, high: str) -> str:
    """Return a picture of counts in bins of equal width. low, high: the ends of the axis."""
    width, height, most = 260, 46, max([*counts, 1])
    step = width / max(len(counts), 1)
    shapes = "".join(
        f'<rect x="{n * step:.1f}" y="{height - height * count / most:.1f}" width="{step - 1:.1f}" '
        f'height="{height * count / most:.1f}" rx="1"><title>{count:,}</title></rect>'
        for n, count in enumerate(counts)
        if count
    )
    return _picture(width, height, f'<g fill="{BLUE}" fill-opacity="0.8">{shapes}</g>', low, high)


def curve(values: Sequence[float], low: str, high: str) -> str:
    """Return a picture of a sequence. low, high: texts of its smallest and largest value."""
    width, height = 260, 46
    least, most = min(values), max(values)
    scale, step = most - least, width / max(len(values) - 1, 1)
    heights = [(v - least) / scale if scale else 0.5 for v in values]
    points = " ".join(f"{n * step:.1f},{height - height * h:.1f}" for n, h in enumerate(heights))
    line = f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="1.5" stroke-linejoin="round"/>'
    return _picture(width, height, line, f"{low} to {high}", "")


def _picture(width: int, height: int, shapes: str, left: str, right: str) -> str:
    axis = f'<line x1="0" y1="{height}" x2="{width}" y2="{height}" stroke="currentColor" stroke-opacity="0.3"/>'
    style = 'font-size="10" fill="currentColor" fill-opacity="0.65"'
    texts = f'<text x="0" y="{height + 13}" {style}>{escape(left)}</text>'
    texts += f'<text x="{width}" y="{height + 13}" text-anchor="end" {style}>{escape(right)}</text>' if right else ""
    box = f'width="{width}" height="{height + 16}" viewBox="0 0 {width} {height + 16}" role="img"'
    return f"<svg {box}>{shapes}{axis}{texts}</svg>"
