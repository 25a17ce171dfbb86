"""Fork safety of NumPy's libraries: no child is forked while another thread multiplies or factorises in tracer.

OpenBLAS has threads and locks of its own. A fork during a call can leave the child, and sometimes the parent, in a
deadlock, in NumPy too. Tracer counts its calls with large matrices. A fork waits for their end, for some seconds at
most, and calls that start meanwhile wait for the fork. Users' own NumPy calls are not counted. Nor are calls in
compiled programs, which run on one thread of another copy of OpenBLAS.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from time import monotonic, sleep
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

MAX_WAIT: Final = 5.0  # seconds; few products take longer, and a thread may never end
LARGE: Final = 1 << 10  # elements of a matrix; with fewer, OpenBLAS uses no threads
_STEP: Final = 2e-4  # seconds between polls

# identifiers of threads, in lists, because append, remove and copy are atomic
_within: list[int] = []
_forking: list[int] = []


def apart_from_forks(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function wrapped so that other threads do not fork while it runs."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        me = get_ident()
        _enter(me)
        try:
            return function(*args, **kwargs)
        finally:
            if me in _within:  # false in a child that was forked meanwhile
                _within.remove(me)

    return run


def _enter(me: int) -> None:
    """Register the thread, after waiting for a fork by another thread for `MAX_WAIT` at most."""
    is_within, end = me in _within, 0.0
    _within.append(me)
    while _forking and not is_within and me not in _forking:
        _within.remove(me)
        end = end or monotonic() + MAX_WAIT
        sleep(_STEP)
        _within.append(me)
        if monotonic() > end:
            break


def _before() -> None:
    me = get_ident()
    _forking.append(me)
    end = monotonic() + MAX_WAIT
    while any(thread != me for thread in tuple(_within)) and monotonic() < end:
        sleep(_STEP)


def _in_parent() -> None:
    _forking.remove(get_ident())


def _in_child() -> None:
    """Forget all threads, since a child has one."""
    _forking.clear()
    _within.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
