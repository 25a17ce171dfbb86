"""Tables of reports: rows of texts as aligned plain text, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tracer import markup


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
    """Return the table as HTML, in the style of `markup.view`. Marked rows end in `<`, shares are bars before them.

    >>> html_table([Column("line", True)], [Row(["a.py:1"])])[:7]
    '<table>'
    """
    marks = any(row.marked for row in rows)
    head = [column.name for column in columns] + [""] * marks
    cells = [[*row.cells, *(["<" if row.marked else ""] * marks)] for row in rows]
    bars = [[row.share] for row in rows] if any(row.share for row in rows) else None
    text = [n for n, column in enumerate(columns) if column.is_text]
    return markup.table(head, cells, text=text, bars=bars)
