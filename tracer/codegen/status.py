"""How a call of a compiled or interpreted program ends."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Outcome of a call."""

    DONE = 0
    FAULT = 1  # the fault's site, position and values say which
    INTERRUPTED = 2  # the stop word was set
    RAISED = 3  # a callback raised
    NO_MEMORY = 4  # a growable stack could not grow
