"""Lock that is free in a forked child, where locks of other threads would never be released."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any


class ForkSafeLock:
    """Re-entrant lock, as a context manager."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock: Any = threading.RLock()  # Any: `_is_owned` is not in typeshed
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def forked(self) -> None:
        """Replace the lock if a thread holds it that is not in this process."""
        if not self._lock._is_owned():
            self._lock = threading.RLock()


_locks: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


def _forked() -> None:
    for lock in list(_locks):
        lock.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
