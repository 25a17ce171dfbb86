"""Values computed once in a process, even if several threads ask at the same time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")

_locks: list[Any] = [threading.RLock()]  # one lock for all: a computation may need other values of this kind


def once(function: Callable[[], T]) -> Callable[[], T]:
    """Return a function that computes its result at the first call, and returns it at every call.

    `functools.cache` would let two threads compute it, each with a result of its own.
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
    _locks[0] = threading.RLock()  # in the parent, another thread may hold it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
