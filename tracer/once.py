"""What a process makes once, though several threads ask for it at the same time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")

_locks: list[Any] = [threading.RLock()]  # one for all: what is made may need other things that are made once


def once(function: Callable[[], T]) -> Callable[[], T]:
    """A decorator: the function's first result, whoever asks.

    `functools.cache` lets two threads in before there is a result, and each goes on with its own.
    """
    results: list[T] = []

    @wraps(function)
    def first() -> T:
        if not results:
            with _locks[0]:
                if not results:
                    results.append(function())
        return results[0]

    return first


def _forked() -> None:
    _locks[0] = threading.RLock()  # its owner may be a thread of the parent's


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
