"""Source locations: the line of the user's code that is running."""

from __future__ import annotations

import ast
import contextlib
import functools
import linecache
import sys
import warnings
from collections.abc import Iterator
from os.path import dirname, realpath
from types import CodeType, FrameType

import numpy as np

from tracer.ir.program import Source
from tracer.trace.state import state

_PACKAGE = dirname(dirname(realpath(__file__))) + "/"
_EXAMPLES = _PACKAGE + "examples/"  # written as a user would: their lines are user lines
_NUMPY = dirname(realpath(np.__file__)) + "/"  # its functions forward our arrays: their caller is the user's line
_CALLERS = (functools.__file__, contextlib.__file__)
_ours: dict[str, bool] = {}  # by file, since hashing a code object reads all of it


def is_ours(code: CodeType) -> bool:
    """Whether the code is this package's, or of a library that it calls through."""
    file = code.co_filename
    found = _ours.get(file)
    if found is None:
        found = _ours[file] = _is_ours(file)
    return found


def _is_ours(file: str) -> bool:
    internal = file.startswith((_PACKAGE, _NUMPY)) and not file.startswith(_EXAMPLES)
    library = "/optree/" in file or file in _CALLERS
    return internal or library or file.startswith("<frozen")


def user_source(ours: int = 1) -> Source | None:
    """Return the line of the equation being rewritten, else of the innermost frame outside this package, if any.

    ours: count of the innermost frames that are known to be of this package, this one included.
    """
    source = state.source
    if source is not None:
        return source
    frame: FrameType | None = sys._getframe(ours)
    try:  # as `user_frame`, in half the time
        while _ours[frame.f_code.co_filename]:  # type: ignore[union-attr]
            frame = frame.f_back  # type: ignore[union-attr]
    except (KeyError, AttributeError):  # a new file, or no user's frame
        frame = user_frame(frame)
        if frame is None:
            return None
    code = frame.f_code  # type: ignore[union-attr]
    line = frame.f_lineno  # type: ignore[union-attr]
    return _new(Source, (code.co_filename, line, code.co_name, state.scope, False))


_new = tuple.__new__  # faster than `Source._make`


def derivative_source(source: Source | None) -> Source | None:
    """Return the source of equations that compute a derivative of the line."""
    return source if source is None or source.derivative else source._replace(derivative=True)


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame outside this package, from the given one outwards."""
    while frame is not None and is_ours(frame.f_code):
        frame = frame.f_back
    return frame


def warn(text: str) -> None:
    """Warn at the user's line, where the innermost frame outside this package is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and is_ours(frame.f_code):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, UserWarning, stacklevel=level)


def user_frames() -> Iterator[FrameType]:
    """Yield the frames outside this package, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame.f_code):
            yield frame
        frame = frame.f_back


def assigned_name(source: Source) -> str | None:
    """Return the target of the assignment on a line of the user's: y for `y = sin(x)`, self.y for `self.y = sin(x)`."""
    try:
        (statement,) = ast.parse(linecache.getline(source.file, source.line).strip()).body
    except (SyntaxError, ValueError):
        return None
    match statement:
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return ast.unparse(target) if isinstance(target, ast.Name | ast.Attribute | ast.Subscript) else None
        case _:
            return None


def place(source: Source | None) -> str:
    """Return ` at demo.py:3`, or nothing: the middle of an error's first line."""
    return f" at {source}" if source is not None else ""


def here() -> str:
    """Return ` at ` and the user's current line."""
    return place(user_source())
