"""Tracebacks as users want them: their own frames, and none of ours, as long as the mistake is theirs."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from tracer.errors import InternalError, TracerError
from tracer.trace.source import is_ours


class Raised:
    """An exception that a compiled entry raises for Python code of ours, which so leaves no frame."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error.with_traceback(tidy(error))


def call_user(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call the user's function: an error that ends in this line is about its arguments."""
    return function(*args, **kwargs)


def tidy(error: BaseException) -> TracebackType | None:
    """The traceback without our frames; all of it where one of them raised what we do not raise on purpose."""
    traceback = error.__traceback__
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    ours = isinstance(error, TracerError | KeyboardInterrupt | MemoryError)
    deliberate = ours and not isinstance(error, InternalError)
    if frames and not deliberate:
        last = frames[-1].tb_frame.f_code
        if is_ours(last) and last is not call_user.__code__:
            return error.__traceback__
    kept: TracebackType | None = None
    for frame in reversed(frames):
        if not is_ours(frame.tb_frame.f_code):
            kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept
