"""HTML of programs, for notebooks: nested programs folded, variables linked.

One `<div>` with its own `<style>`, without scripts and external resources. A click on a variable goes to its
definition; hovering shows its type and marks its other uses. Colours are mixed with the page's own text colour, so they
suit light and dark themes alike. Notebooks that are not trusted, and pages that show exported ones, drop styles. So the
lines stand in a `<pre>`, which keeps font and indentation. Sources are comments of the text. Parameters that are usual
or repeat the result's type are shown once the box is checked.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from html import escape

from tracer import markup
from tracer.ir.program import Program
from tracer.ir.text import INDENT, Kind, Line, Token, program_lines

OPEN_LINES = 24  # nested programs of more lines start folded
MARKED_VARIABLES = 400  # marking takes a rule for each variable; larger programs go without

_renderings: defaultdict[str, Iterator[int]] = defaultdict(lambda: itertools.count(1))

_STYLE = """
{id} {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.92em;
  line-height: 1.5; overflow-x: auto; color: inherit; tab-size: 2; }}
{id} .lines {{ display: inline-block; min-width: 100%; margin: 0; padding: 0; border: 0; font: inherit;
  color: inherit; background: none; overflow: visible; }}
{id} .line {{ display: flex; justify-content: space-between; gap: 3em; white-space: pre; }}
{id} .source {{ position: sticky; right: 0; padding: 0 0.6em 0 1em; background: {background};
  color: color-mix(in srgb, currentColor 55%, transparent); }}
{id} .all {{ float: right; margin: 0 0 0 0.6em; cursor: pointer; position: sticky; right: 0;
  font: 11px system-ui, sans-serif; color: color-mix(in srgb, currentColor 60%, transparent); }}
{id} .all::after {{ content: "all parameters"; }}
{id} .all input {{ vertical-align: -2px; margin: 0 4px 0 0; }}
{id} .silent {{ display: none; }}
{id}:has(.all :checked) .silent {{ display: inline; }}
{id} summary {{ cursor: pointer; list-style: none; }}
{id} summary::-webkit-details-marker {{ display: none; }}
{id} summary .fold::after {{ content: " \\2026  \\7d"; opacity: 0.5; }}
{id} details[open] > summary .fold::after {{ content: ""; }}
{id} summary:hover {{ background: color-mix(in srgb, currentColor 6%, transparent); }}
{id} a {{ color: inherit; text-decoration: none; }}
{id} .definition {{ font-weight: 600; }}
{id} .type, {id} .parameter {{ opacity: 0.65; }}
{id} .primitive {{ color: color-mix(in srgb, {blue} 75%, currentColor); }}
{id} .program {{ color: color-mix(in srgb, {purple} 75%, currentColor); }}
{id} .literal, {id} .value {{ color: color-mix(in srgb, {green} 75%, currentColor); }}
{id} .use:hover, {id} .definition:hover {{ text-decoration: underline; }}
{id} :target {{ background: color-mix(in srgb, {yellow} 45%, transparent); }}
"""
_COLOURS = {"blue": markup.BLUE, "purple": markup.PURPLE, "green": markup.GREEN, "yellow": markup.YELLOW}
_MARK = f"background: color-mix(in srgb, {markup.YELLOW} 30%, transparent)"


def program_html(program: Program) -> str:
    """Return the program as one `<div>`, for Jupyter.

    Identifiers come from the program's digest and the number of times that it was rendered. So they are unique in a
    notebook and equal when it runs again.
    """
    digest = program.digest.hex()[:12]
    prefix = f"tracer-{digest}-{next(_renderings[digest])}"
    lines = program_lines(program)
    style = f"<style>{_style(prefix, lines)}</style>"
    body = f'<pre class="lines">{"".join(_body(lines, prefix))}</pre>'
    silent = any(token.silent for line in lines for token in line.tokens)
    title = "show parameters that are usual or repeat the types"
    switch = f'<label class="all" title="{title}"><input type="checkbox"/></label>' if silent else ""
    return f'<div class="tracer-program" id="{prefix}">{style}{switch}{body}</div>'


def _style(prefix: str, lines: list[Line]) -> str:
    rules = [_STYLE.format(id=f"#{prefix}", background=markup.BACKGROUND, **_COLOURS)]
    names = [token.text[1:] for line in lines for token in line.tokens if token.kind is Kind.DEFINITION]
    if len(names) <= MARKED_VARIABLES:
        for name in names:
            rules.append(f"#{prefix}:has(.v-{name}:hover) .v-{name} {{ {_MARK}; }}\n")
    return "".join(rules)


def _body(lines: list[Line], prefix: str) -> Iterator[str]:
    ends = _ends(lines)
    for position, line in enumerate(lines):
        if line.opens and line.depth > 0:
            small = ends[position] - position < OPEN_LINES
            yield f"<details{' open' if small else ''}><summary>{_line(line, prefix)}</summary>"
        else:
            yield _line(line, prefix)
        if line.closes and line.depth > 0:
            yield "</details>"


def _ends(lines: list[Line]) -> dict[int, int]:
    """Map the line that opens each program to the line that closes it."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for position, line in enumerate(lines):
        if line.opens:
            opened.append(position)
        if line.closes:
            ends[opened.pop()] = position
    return ends


def _line(line: Line, prefix: str) -> str:
    code = "".join(_token(token, prefix) for token in line.tokens)
    fold = '<span class="fold"></span>' if line.opens and line.depth > 0 else ""
    source = f'<span class="source"> # {escape(line.source)}</span>' if line.source else ""
    return f'<div class="line"><span>{INDENT * line.depth}{code}{fold}</span>{source}</div>'


def _token(token: Token, prefix: str) -> str:
    text = escape(token.text)
    name = escape(token.text[1:])
    title = escape(f"{token.text}: {token.type}")
    match token.kind:
        case _ if token.silent:
            return f'<span class="silent {token.kind.value}">{text}</span>'
        case Kind.PLAIN:
            return text
        case Kind.DEFINITION:
            return f'<span class="definition v-{name}" id="{prefix}-{name}" title="{title}">{text}</span>'
        case Kind.USE:
            return f'<a class="use v-{name}" href="#{prefix}-{name}" title="{title}">{text}</a>'
        case _:
            return f'<span class="{token.kind.value}">{text}</span>'
