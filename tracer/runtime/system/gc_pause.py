"""Pause of Python's cyclic garbage collector while a function is traced and its program compiled.

Both make some hundred thousand objects that live until the end, so every collection visits them, and all other objects
of the process, in vain. That took a sixth of the compile time of a program of 5,000 equations, and a third of the time
to trace and differentiate one of 9,000. Reference counting still frees objects; cycles wait. At the end `freeze` and
`unfreeze` move new objects to the oldest generation without a visit, which the first collection would make.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tracer.runtime.system.locks import ForkSafeLock

_PYTHONS_OWN: Final = 1000
"""Bound on the objects that Python itself freezes at its start: 3.12 freezes 375 of 4,000."""


class _Pauses:
    """Count of the threads that pause the collector, and whether it was enabled before the first of them."""

    def __init__(self) -> None:
        self.lock = ForkSafeLock()
        self.count = 0
        self.was_on = False


_pauses = _Pauses()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable cyclic collection in all threads until the block ends; a disabled collector stays disabled.

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
                if gc.get_freeze_count() < _PYTHONS_OWN:  # else `unfreeze` would thaw objects that the user froze
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()
