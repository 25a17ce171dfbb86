"""Tables of reports: rows of texts as aligned plain text, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_STYLE = (
    "font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.92em; "
    "border-collapse: collapse; color: inherit"
)


class Column(NamedTuple):
    """Column of a table. is_text: whether it is aligned to the left, as numbers are not."""

    name: str
    is_text: bool = False


class Row(NamedTuple):
    """Row of a table. marked: whether it is worth a look. share: from 0 to 1, the length of a bar in HTML."""

    cells: Sequence[str]
    marked: bool = False
    share: float = 0.0


def plain_table(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """Return the table as text, a row a line. Marked rows end in `<`.

    >>> print(plain_table([Column("line", True), Column("max")], [Row(["a.py:1", "3"]), Row(["a.py:20", "inf"], True)]))
    line     max
    a.py:1     3
    a.py:20  inf  <
    """
    cells = [[column.name for column in columns], *(row.cells for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    marks = ["", *("  <" if row.marked else "" for row in rows)]
    lines = []
    for texts, mark in zip(cells, marks, strict=True):
        padded = [
            text.ljust(width) if column.is_text else text.rjust(width)
            for text, width, column in zip(texts, widths, columns, strict=True)
        ]
        lines.append(f"{'  '.join(padded)}{mark}".rstrip())
    return "\n".join(lines)


def html_table(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """Return the table as HTML without scripts, whose colours are mixed with the page's own text colour.

    >>> html_table([Column("line", True)], [Row(["a.py:1"])])[:25]
    '<table class="tracer-tabl'
    """
    head = "".join(_cell("th", column, column.name) for column in columns)
    body = "".join(_html_row(columns, row) for row in rows)
    return (
        f'<table class="tracer-table" style="{_STYLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )  # fmt: skip


def _html_row(columns: Sequence[Column], row: Row) -> str:
    tint = "background: color-mix(in srgb, #e3b341 30%, transparent)" if row.marked else ""
    if row.share and not row.marked:
        bar, end = "color-mix(in srgb, #3b82f6 25%, transparent)", f"{100 * row.share:.1f}%"
        tint = f"background: linear-gradient(to right, {bar} {end}, transparent {end})"
    cells = "".join(_cell("td", column, text) for column, text in zip(columns, row.cells, strict=True))
    return f'<tr style="{tint}">{cells}</tr>'


def _cell(tag: str, column: Column, text: str) -> str:
    side = "left" if column.is_text else "right"
    return f'<{tag} style="text-align: {side}; padding: 0.1em 0.7em; white-space: pre">{escape(text)}</{tag}>'
