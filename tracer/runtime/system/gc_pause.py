"""Python's cyclic garbage collector, paused while a function is traced and its program compiled.

Both make some hundred thousand objects that all live until they end, so that every collection looks at them, and at
everything else in the process, for nothing: a sixth of the time of compilation for a program of 5,000 equations, and a
third of that of tracing and differentiating one of 9,000. What is made is freed by counting references; cycles
wait. At the end what is new joins what is old, which `freeze` and `unfreeze` do without looking at it: the first
collection afterwards would go through all of it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tracer.runtime.system.locks import ForkSafeLock

_PYTHONS_OWN: Final = 1000
"""More objects than a Python has frozen itself as it starts: 3.12 has 375, of 4,000 that are there then."""


class _Pauses:
    """How many threads want the collector paused, and whether it was on when the first of them came."""

    def __init__(self) -> None:
        self.lock = ForkSafeLock()
        self.count = 0
        self.was_on = False


_pauses = _Pauses()


@contextmanager
def collector_paused() -> Iterator[None]:
    """No cyclic collection within, in any thread; a collector that was off stays off.

    >>> import gc
    >>> with collector_paused():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    with _pauses.lock:
        if _pauses.count == 0:
            _pauses.was_on = gc.isenabled()
            gc.disable()
        _pauses.count += 1
    try:
        yield
    finally:
        with _pauses.lock:
            _pauses.count -= 1
            if _pauses.count == 0 and _pauses.was_on:
                if gc.get_freeze_count() < _PYTHONS_OWN:  # nothing of the user's is there to be let go
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()
