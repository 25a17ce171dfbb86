"""Warnings of a function that is traced: it would give them at every run, and a replayed call does not."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tracer.runtime.system.locks import ForkSafeLock

_lock = ForkSafeLock()


@contextmanager
def noticed() -> Iterator[list[Any]]:
    """A list of the warnings that this thread gives in a `with` block, which are not shown: they were, by a run before.

    Filters stay as they are: changing them would show warnings again that were shown once. Errors of NumPy's arithmetic
    count, whatever becomes of them by `numpy.seterr`.
    """
    found: list[Any] = []
    module: Any = warnings
    thread = threading.get_ident()
    with _lock:
        show = module._showwarnmsg  # what Python calls for those that pass the filters

        def note(message: Any) -> None:
            if threading.get_ident() == thread:
                found.append(message)
            else:
                show(message)

        module._showwarnmsg = note
        try:
            with np.errstate(all="call", call=lambda *error: found.append(error)):
                yield found
        finally:
            module._showwarnmsg = show
