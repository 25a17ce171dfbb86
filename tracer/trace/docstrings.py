"""Docstrings assembled from shared parts, and signatures, for `help`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def with_paragraph(text: str, lines: Iterable[str]) -> str:
    """Return a docstring with one more paragraph before its example, indented as the docstring is.

    Python 3.13 strips the indentation of docstrings; earlier versions keep it.

    >>> with_paragraph("A sum.\\n\\n    >>> 1 + 1\\n    2\\n    ", ["Of numbers."])
    'A sum.\\n\\n    Of numbers.\\n\\n    >>> 1 + 1\\n    2\\n    '
    """
    prose, prompt, example = text.partition(">>> ")
    further = [line for line in text.splitlines()[1:] if line.strip()]
    margin = min((line[: -len(line.lstrip())] for line in further), key=len, default="    ")
    paragraph = "".join(f"{margin}{line}\n" for line in lines)
    return f"{prose.rstrip()}\n\n{paragraph}\n{margin}{prompt}{example}"


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters. Faster than making a signature.

    >>> parameters(with_paragraph)
    ('text', 'lines')
    """
    code: CodeType = inspect.unwrap(function).__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


class Absent:
    """Default of a parameter for which None is a valid value; signatures show it as "absent"."""

    def __repr__(self) -> str:
        return "absent"


ABSENT: Any = Absent()


def signed_as(theirs: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator that gives a function the signature of `theirs`, to which it passes all its arguments."""

    def signed(function: F) -> F:
        function.__signature__ = inspect.signature(theirs)  # type: ignore[attr-defined]
        return function

    return signed


def names(prose: str, parameter: str) -> bool:
    """Return whether a docstring's prose describes a parameter: `so`, so=, so(), or in a list before ":".

    >>> names("x, y: [*s]; in degrees if `deg`. Returns x's dtype, [*s].", "x")
    True
    >>> names("x, y: [*s]; in degrees if `deg`. Returns x's dtype, [*s].", "dtype")
    False
    """
    return parameter in prose and re.search(rf"\b{parameter}(?:(?:, \w+)*:|[=(`])", prose) is not None


def say(functions: Iterable[Callable[..., Any]], phrases: Mapping[str, str]) -> None:
    """Add the lines of `phrases` for parameters that a docstring does not describe, a line for each phrase."""
    for function in functions:
        text = function.__doc__ or ""
        prose = text.partition(">>> ")[0]
        found: dict[str, list[str]] = {}
        for parameter in parameters(function):
            if parameter in phrases and not names(prose, parameter):
                found.setdefault(phrases[parameter], []).append(parameter)
        if found:
            function.__doc__ = with_paragraph(text, [f"{', '.join(of)}: {phrase}" for phrase, of in found.items()])


def say_of_elements(functions: Iterable[Callable[..., Any]], *, complex_too: Collection[str] = ()) -> None:
    """Add the shared lines of elementwise functions that compute in floats: operands, shapes, result dtype.

    Operands are the parameters that a docstring does not describe. A docstring with "Returns" is left unchanged.
    complex_too: the names of the functions that take complex numbers as well.
    """
    for function in functions:
        text = function.__doc__ or ""
        if "Returns " in text:
            continue
        prose = text.partition(">>> ")[0]
        operands = [name for name in parameters(function) if not names(prose, name)]
        shapes = " [*s]" if len(operands) == 1 else ", whose shapes broadcast to [*s]"
        kinds, results = _COMPLEX_TOO if function.__name__ in complex_too else _REAL
        lines = (
            f"{', '.join(operands)}: {kinds}{shapes}. Returns {results} [*s].",
            "dtype: float, promoted. Integers are cast to float32 up to 32 bits, else to the default float.",
        )
        function.__doc__ = with_paragraph(text, lines)


_REAL = ("real numbers", "floats")
_COMPLEX_TOO = ("numbers", "floats or complex numbers")
