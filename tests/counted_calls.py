"""How much work a function is, counted in calls of Python's functions: the same on every machine, busy or not."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any


def python_calls(function: Callable[[], Any]) -> int:
    """How many functions of Python's are called while it runs.

    The collector rests meanwhile: what tests before have left behind would be finalized, and counted, here.
    """
    seen = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal seen
        seen += event == "call"

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return seen
