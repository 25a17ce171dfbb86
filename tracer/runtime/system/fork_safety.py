"""Forks wait for NumPy's libraries: no child is forked while another thread of ours multiplies or factorises.

OpenBLAS has threads and locks of its own. A fork in the midst of a call leaves the child, and at times the parent,
waiting for ever, in plain NumPy as well. What we call with large matrices is counted, so a fork waits until nobody is
within, for some seconds at most; who comes meanwhile waits for the fork. Calls of the user's own, and those within
compiled programs, which run on one thread of another copy of OpenBLAS, are not counted.
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

MOST_WAIT: Final = 5.0  # seconds: a product that takes longer is rarer than a thread that never ends
LARGE: Final = 1 << 10  # elements of a matrix: with fewer, OpenBLAS uses no threads
_STEP: Final = 2e-4  # seconds between looks

# threads, in lists: to append, to remove and to copy is one step, whichever thread takes it
_within: list[int] = []
_forking: list[int] = []


def apart_from_forks(function: Callable[P, R]) -> Callable[P, R]:
    """The function, during which other threads do not fork."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        me = get_ident()
        _enter(me)
        try:
            return function(*args, **kwargs)
        finally:
            if me in _within:  # not in a child that was forked on the way
                _within.remove(me)

    return run


def _enter(me: int) -> None:
    """Count the thread in, unless another is forking: that has seen us, or sees us leave."""
    is_within, end = me in _within, 0.0
    _within.append(me)
    while _forking and not is_within and me not in _forking:
        _within.remove(me)
        end = end or monotonic() + MOST_WAIT
        sleep(_STEP)
        _within.append(me)
        if monotonic() > end:
            break


def _before() -> None:
    me = get_ident()
    _forking.append(me)
    end = monotonic() + MOST_WAIT
    while any(thread != me for thread in tuple(_within)) and monotonic() < end:
        sleep(_STEP)


def _in_parent() -> None:
    _forking.remove(get_ident())


def _in_child() -> None:
    """Nobody else is here."""
    _forking.clear()
    _within.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
