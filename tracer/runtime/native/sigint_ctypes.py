"""Stop word of calls that go through ctypes; the compiled entry has its own."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tracer.once import once
from tracer.runtime.native.support import support


@once
def _functions() -> tuple[Any, Any]:
    loaded = support().loaded
    arm = ctypes.PYFUNCTYPE(ctypes.c_void_p)(loaded.address("tracer_arm"))
    disarm = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(loaded.address("tracer_disarm"))
    return arm, disarm


@contextmanager
def interruptible(listens: bool) -> Iterator[ctypes.c_int32 | None]:
    """Give a call its stop word, which Ctrl-C sets until the block ends; None if the call does not listen."""
    if not listens:
        yield None
        return
    arm, disarm = _functions()
    address = arm()
    try:
        yield ctypes.c_int32.from_address(address)
    finally:
        disarm(address)
