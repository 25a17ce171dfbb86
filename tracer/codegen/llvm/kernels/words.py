"""Routines that write shared words, which Python reads from another thread.

`mark` adds to a word, for the progress of loops. `tick` and `tock` subtract and add the processor's cycle counter, so
that a word holds the cycles between them, and the next word how often; for profiles.
"""

from __future__ import annotations

import ctypes
from typing import Final

from tracer.primitives.control.shared_words import words

_NAME: Final = "tracer_words"
_EXTERNAL: Final = f"@{_NAME} = external global i64"
_AT: Final = f"%at = getelementptr i64, ptr @{_NAME}, i64 %word"
_CYCLES: Final = "declare i64 @llvm.readcyclecounter()"


def _definition(name: str, parameters: str, *lines: str) -> str:
    body = "\n".join(f"  {line}" for line in (_AT, *lines, "ret void"))
    return f"define internal void @library.{name}({parameters}) #2 {{\n{body}\n}}\n"


def _clock(name: str, op: str, *lines: str) -> str:
    """Return a routine that reads the clock: with one atomic addition, since threads share the words of a nest."""
    read = "%cycles = call i64 @llvm.readcyclecounter()"
    return _definition(name, "i64 %word", read, f"%old = atomicrmw {op} ptr %at, i64 %cycles monotonic", *lines)


_RUNS: Final = (
    "%next = getelementptr i64, ptr %at, i64 1", "%runs = atomicrmw add ptr %next, i64 1 monotonic",
)  # fmt: skip
TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "mark": (
        _EXTERNAL,
        _definition(
            "mark",
            "i64 %word, i64 %amount",
            "%old = load volatile i64, ptr %at, align 8",
            "%new = add i64 %old, %amount",
            "store volatile i64 %new, ptr %at, align 8",
        ),
    ),
    "tick": (_EXTERNAL, f"{_CYCLES}\n{_clock('tick', 'sub')}"),
    "tock": (_EXTERNAL, f"{_CYCLES}\n{_clock('tock', 'add', *_RUNS)}"),
}


def word_symbols(text: str) -> dict[str, int]:
    """Return the address of the words for a module's text that names them."""
    return {_NAME: ctypes.addressof(words())} if f"@{_NAME}" in text else {}
