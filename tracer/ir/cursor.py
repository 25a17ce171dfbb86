"""Tokens of a printed program, and a cursor over them whose errors show the place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tracer.errors import ProgramTextError, message
from tracer.ir.numerals import SCALAR

_TOKEN = re.compile(
    rf"""(?P<comment>\#[^\n]*)
    | (?P<variable>%\w+)
    | (?P<literal>(?:{SCALAR}|true|false):[a-z]\w*\*?)
    | (?P<scalar>{SCALAR})
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<mark>->|\.\.\.|[()\[\]{{}},:=*@])
    | (?P<word>[^\W\d][\w.]*)
    | (?P<opaque><[^>\n]*>)
    | (?P<space>\s+)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """Token; `kind` is the name of its group above, or `end`."""

    kind: str
    text: str
    start: int


class Cursor:
    """Cursor over the tokens of a text, one token ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.comments: dict[int, str] = {}  # by the position of the previous token, on the same line
        self.tokens: list[Token] = []
        self.position = 0
        self.split()
        self.token = self.tokens[0]

    def split(self) -> None:
        position, text = 0, self.text
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                self.fail("a name, a number, a string or a bracket", Token("end", text[position], position))
            kind = str(match.lastgroup)
            if kind == "comment":
                last = self.tokens[-1] if self.tokens else None
                if last is not None and "\n" not in text[last.start : position]:
                    self.comments[len(self.tokens) - 1] = match[0]
            elif kind != "space":
                self.tokens.append(Token(kind, match[0], position))
            position = match.end()
        self.tokens.append(Token("end", "", len(text)))

    def advance(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.position += 1
            self.token = self.tokens[self.position]
        return token

    def take(self, mark: str) -> bool:
        """Read the next token if it is the mark. Return whether it was."""
        found = self.token.kind == "mark" and self.token.text == mark
        if found:
            self.advance()
        return found

    def expect(self, mark: str) -> None:
        if not self.take(mark):
            self.fail(f'"{mark}"')

    def next(self, kind: str, expected: str) -> Token:
        if self.token.kind != kind:
            self.fail(expected)
        return self.advance()

    def ahead(self, mark: str) -> bool:
        """Whether the mark stands after the next token."""
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        return following.kind == "mark" and following.text == mark

    def fail(self, expected: str, token: Token | None = None, *, got: str = "", help: str | None = None) -> NoReturn:
        """Raise ProgramTextError at the token, by default the next one."""
        token = token or self.token
        line = self.text.count("\n", 0, token.start) + 1
        start = self.text.rfind("\n", 0, token.start) + 1
        shown = self.text[start:].split("\n", 1)[0].replace("\t", " ")
        found = got or (f'"{token.text}"' if token.text else "the end of the text")
        column = token.start - start + 1
        summary = f"program text, line {line}, column {column}: expected {expected}, got {found}"
        raise ProgramTextError(message(summary, shown, " " * (column - 1) + "^", help=help))

    def lookup(self, table: Mapping[str, Any], noun: str, token: Token, name: str | None = None) -> Any:
        """Return table[name]. Raises ProgramTextError with a similar name as the remedy."""
        name = token.text if name is None else name
        if name not in table:
            near = difflib.get_close_matches(name, table, n=1)
            self.fail(f"the name of {noun}", token, help=f"did you mean {near[0]}?" if near else None)
        return table[name]

    def separated(self, end: str) -> Iterable[None]:
        """Yield once for each item up to the mark `end`; commas between items are read here."""
        while not self.take(end):
            yield
            if not self.take(","):
                if not self.take(end):
                    self.fail(f'"," or "{end}"')
                return
