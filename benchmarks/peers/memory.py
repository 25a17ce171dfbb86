"""The memory that calls take: how far the process's resident memory rises above what it was before them.

Pages of files are left out: they are the code of libraries, of compilers above all, which are read where a row is the
first to need them, which processes share, and which the system drops when it likes.

The system keeps the highest value since it was last told to forget it; of files it tells what there is now, which only
grows in a call. Three things would lower what is found, each of
them for one peer or another, and are over before counting begins: blocks that freed results left for the next ones
(tracer's pool, and the C library's heap), of which a call would take what it needs unseen; arguments that are still
being copied (JAX's `asarray` returns early, and holds a second copy for as long); arrays of the row before that are
freed late. A heap may still have holes that nobody can give back, and a result may lie in one of them: so no peak is
told that is below the size of the results.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_STATUS: Final = Path("/proc/self/status")
_FORGET: Final = Path("/proc/self/clear_refs")
_INTERVAL: Final = 0.02  # seconds
_STEADY: Final = 5  # intervals without a change
_MOST: Final = 100  # intervals that are waited for at all
_CHANGE: Final = 1 << 18  # bytes: less is what idle threads do


def count_from_now(give_back: Callable[[], object]) -> int:
    """Count the peak from now on; the bytes in use now. give_back: what the peer keeps of freed results."""
    gc.collect()
    give_back()
    steady, resident, trim = 0, _bytes("VmRSS"), ctypes.CDLL(None).malloc_trim
    for _ in range(_MOST):
        trim(0)
        time.sleep(_INTERVAL)
        found = _bytes("VmRSS")
        steady = steady + 1 if abs(found - resident) < _CHANGE else 0
        if steady == _STEADY:
            break
        resident = found
    _FORGET.write_text("5")
    return peak()


def peak() -> int:
    """The most bytes in use since `count_from_now`, pages of files left out."""
    return _bytes("VmHWM") - _bytes("RssFile")


def _bytes(field: str) -> int:
    lines = _STATUS.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
