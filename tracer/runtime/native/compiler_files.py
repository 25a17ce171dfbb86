"""Fingerprint of the compiler's files, which is a part of the names of kept kernels and programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from tracer.once import once
from tracer.runtime import IMPORTED

PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_ROOMS: Final = (
    "codegen/llvm", "ir", "passes", "primitives", "runtime/compile", "runtime/eager", "schedule", "trace",
)  # fmt: skip
"""Folders of the package whose files decide the code of a program or kernel."""


@once
def sources() -> str | None:
    """Return the fingerprint of the compiler's files; None where some changed after this process imported them."""
    return sources_now()


def sources_now() -> str | None:
    """Return the fingerprint as it is now. Code is kept only where it is `sources()`, by which the code was made."""
    try:
        files = sorted(found for room in _ROOMS for found in _files(os.path.join(PACKAGE, room)))
    except OSError:  # the package is not in files
        return None
    are_old = all(changed < IMPORTED for _, _, changed in files)
    return repr(files) if are_old else None


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield the path within the package, the size and the time of change of each file."""
    for entry in os.scandir(folder):
        if not entry.is_dir():
            found = entry.stat()
            yield entry.path[len(PACKAGE) :], found.st_size, found.st_mtime_ns
        elif entry.name != "__pycache__":
            yield from _files(entry.path)
