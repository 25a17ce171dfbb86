"""Lines of the user's code that a function's equations come from, each with the function around it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Mapping

from tracer.explorer.records import Figures, Key, Kind, Line, Stage
from tracer.ir.program import Source

_WHOLE = 60  # files of so many lines are shown as they are, and longer functions only around the lines in use
_AROUND = 6


def source_stage(keys: Iterable[Key], figures: Mapping[Key, Figures]) -> Stage:
    """Return the user's lines as a stage. keys: the lines in use. figures: their cost."""
    wanted: dict[str, set[int]] = {}
    for file, number in keys:
        wanted.setdefault(file, set()).add(number)
    lines: list[Line] = []
    for file, numbers in wanted.items():
        if len(wanted) > 1:
            lines += [Line("")] * bool(lines) + [Line(f"# {_name(file)}")]
        lines += _file(file, numbers, figures)
    return Stage("source", Kind.SOURCE, tuple(lines), "the lines that the equations come from", main=True)


def _name(file: str) -> str:
    return str(Source(file, 0, "")).rpartition(":")[0]


def _file(file: str, numbers: set[int], figures: Mapping[Key, Figures]) -> Iterator[Line]:
    text = linecache.getlines(file)
    if not text:
        for number in sorted(numbers):
            yield Line(
                "(no source text)", keys=((file, number),), place=str(number), figures=figures.get((file, number))
            )
        return
    last = 0
    for first, end in _ranges(text, numbers):
        if last and first > last + 1:
            yield Line("⋯")
        for number in range(first, end + 1):
            key = (file, number)
            used = (key,) if number in numbers else ()
            yield Line(text[number - 1].rstrip("\n"), keys=used, place=str(number), figures=figures.get(key))
        last = end


def _ranges(text: list[str], numbers: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last lines of the parts that are shown, in order."""
    size = len(text)
    if size <= _WHOLE:
        yield 1, size
        return
    functions = _functions(text)
    parts: list[tuple[int, int]] = []
    for number in sorted(n for n in numbers if 1 <= n <= size):
        around = [(first, end) for first, end in functions if first <= number <= end and end - first < _WHOLE]
        part = min(around, default=(max(number - _AROUND, 1), min(number + _AROUND, size)))
        if parts and part[0] <= parts[-1][1] + 1:
            part = parts[-1][0], max(part[1], parts.pop()[1])
        parts.append(part)
    yield from parts


def _functions(text: list[str]) -> list[tuple[int, int]]:
    """Return the first and last line of every function of a file; none where it does not parse, as in IPython cells."""
    try:
        tree = ast.parse("".join(text))
    except SyntaxError:
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found.append((first, node.end_lineno or node.lineno))
    return found
