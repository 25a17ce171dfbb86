"""Pause of Python's cyclic garbage collector while a function is traced and its program compiled.

Both make some hundred thousand objects that live until the end. So every collection visits them, and all other objects
of the process, in vain. That took a sixth of the compile time of a program of 5,000 equations. It took a third of the
time to trace and differentiate a program of 9,000. Reference counting still frees objects; cycles wait. At the end
`freeze` and `unfreeze` move new objects to the oldest generation without the visit that the first collection would
make. Cycles in there go with a full collection. It follows once a quarter of all objects, and at least `_MANY`, came in
this way.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tracer.runtime.system.locks import ForkSafeLock

_PYTHONS_OWN: Final = 1000
"""Bound on the objects that Python itself freezes at its start: 3.12 freezes 375 of 4,000."""


_MANY: Final = 400_000
"""Objects moved unvisited that are worth a full collection, of some 50 ms: the cycles of 200 small functions, 10 MB."""


class _Pauses:
    """Count of the threads that pause the collector, and whether it was enabled before the first of them.

    moved: objects that went to the oldest generation since the last full collection. enough: how many of them are
    worth a count of all objects, which visits every one; `many` at least. froze: whether the user has frozen objects;
    asked no more then, since Python counts them by visiting every one.
    """

    def __init__(self, many: int = _MANY) -> None:
        self.lock = ForkSafeLock()
        self.count = 0
        self.was_on = self.froze = False
        self.moved = 0
        self.many = self.enough = many

    def move(self) -> None:
        """Move new objects to the oldest generation, and collect there if many came."""
        self.froze = self.froze or gc.get_freeze_count() >= _PYTHONS_OWN
        if self.froze:
            return  # `unfreeze` would thaw objects that the user froze
        self.moved += max(gc.get_count()[0], 0)
        gc.freeze()
        is_counted = self.moved > self.enough
        if is_counted:
            self.enough = max(gc.get_freeze_count() // 4, self.many)
        gc.unfreeze()
        if is_counted and self.moved > self.enough:
            self.moved, self.enough = 0, self.many
            gc.collect()


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
                _pauses.move()
                gc.enable()
