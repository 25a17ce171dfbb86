"""Docstrings of the house as reStructuredText, and signatures without annotations."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Collection, Iterator
from typing import Any

_SPAN = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_OPENER = re.compile(r"(?:^|(?<=[.;:] ))((?:\*{0,2}[A-Za-z_]\w*, )*\*{0,2}[A-Za-z_]\w*): ")


def signature(value: Any) -> str:
    """Return the parameters of a callable as text, without annotations. "" where it has no signature."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = [each.replace(annotation=each.empty, default=_readable(each.default)) for each in found.parameters.values()]
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    plain = [each for each in plain if not (each.name.startswith("_") and each.kind in named)]
    return str(inspect.Signature(plain))


class _Text:
    """Text that is its own repr."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _readable(default: Any) -> Any:
    """Return a default whose repr is an expression."""
    if default is inspect.Parameter.empty:
        return default
    if isinstance(default, type) or inspect.isfunction(default):
        return _Text(default.__name__ if default.__name__.isidentifier() else "...")
    try:
        ast.parse(repr(default), mode="eval")
    except SyntaxError:
        return _Text("...")
    return default


def restructured(text: str, module: str, taken: str, names: Collection[str]) -> Iterator[str]:
    """Yield a docstring as lines of reStructuredText.

    module: where names in backticks are looked up first; names: those that the reference has. taken: the signature:
    paragraphs that describe its parameters become lists of definitions. Indented blocks stay as they are.
    """
    parameters = frozenset(re.findall(r"[A-Za-z_]\w*", re.sub(r"=[^,)]*", "", taken)))
    for block in re.split(r"\n[ \t]*\n", text.strip("\n")):
        lines = block.splitlines()
        if not lines:
            continue
        if lines[0].lstrip().startswith(">>>"):
            yield from ["", ".. code-block:: pycon", "", *(f"   {line}" for line in lines), ""]
        elif all(line.startswith("    ") for line in lines):
            yield from ["", ".. code-block:: text", "", *(f"   {line[4:]}" for line in lines), ""]
        elif lines[0].startswith("|") or lines[0].startswith("- "):
            yield from ["", *(f"| {_inline(line.removeprefix('- '), module, names)}" for line in lines), ""]
        else:
            yield from _paragraph(" ".join(line.strip() for line in lines), parameters, module, names)


def _paragraph(text: str, parameters: frozenset[str], module: str, names: Collection[str]) -> Iterator[str]:
    """Yield a paragraph, the parameters that it describes as definitions."""
    starts = [m for m in _OPENER.finditer(text) if {n.strip("* ") for n in m[1].split(",")} <= parameters | {"dtype"}]
    if not starts or not parameters:
        yield from ["", _inline(text, module, names), ""]
        return
    if text[: starts[0].start()].strip():
        yield from ["", _inline(text[: starts[0].start()].strip(), module, names), ""]
    ends = [*(m.start() for m in starts[1:]), len(text)]
    rest = ""
    for opener, end in zip(starts, ends, strict=True):
        said = text[opener.end() : end].strip().rstrip(";")
        said, mark, after = _cut(said)
        rest += mark + after
        yield from [f"``{opener[1]}``", f"    {_inline(said, module, names)}", ""]
        if rest and end != len(text):
            yield from ["", _inline(rest.strip(), module, names), ""]
            rest = ""
    if rest.strip():
        yield from ["", _inline(rest.strip(), module, names), ""]


def _cut(said: str) -> tuple[str, str, str]:
    """Split a description before the sentence on results or errors, if there is one."""
    found = re.search(r"(?<=[.!]) (?=(?:Returns?|Raises|Keywords) )", said)
    return (said[: found.start()], " ", said[found.end() :]) if found else (said, "", "")


def _inline(text: str, module: str, names: Collection[str]) -> str:
    """Return prose with its code marked, names linked, and all else escaped."""
    parts, at = [], 0
    for span in _SPAN.finditer(text):
        parts += [_escaped(text[at : span.start()]), _code(" ".join(span[2].split()), module, names)]
        at = span.end()
    return _joined([*parts, _escaped(text[at:])])


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_|`<>])", r"\\\1", text)


def _code(code: str, module: str, names: Collection[str]) -> str:
    for full in (f"{module}.{code}", code, f"tracer.{code}", f"tracer.numpy.{code.removeprefix('tnp.')}"):
        if re.fullmatch(r"[\w.]+", code) and full in names:
            return f":py:obj:`{code} <{full}>`"
    return f"``{code}``"


def _joined(parts: list[str]) -> str:
    """Join prose and code, with the separators that reStructuredText needs between them and letters."""
    joined = ""
    for part in parts:
        if not part:
            continue
        if joined and (
            (joined[-1] == "`" and (part[0].isalnum() or part[0] == "\\" or part[0] in "`:"))
            or (part[0] in "`:" and len(part) > 2 and part.endswith("`") and not joined[-1].isspace())
        ):
            joined += "\\ "
        joined += part
    return joined
