"""Shared words: 64-bit memory that compiled code writes while it runs, and Python reads from another thread.

`mark` stores a loop's iteration, for progress. `tick` and `tock` subtract and add the processor's cycle counter, so
that a word holds the cycles between them, and the next word how often; for profiles.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import Any, Final

from tracer.once import once

COUNT: Final = 1 << 14
_NAME: Final = "tracer_words"
_EXTERNAL: Final = f"@{_NAME} = external global i64"
_AT: Final = f"%at = getelementptr i64, ptr @{_NAME}, i64 %word"
_CYCLES: Final = "declare i64 @llvm.readcyclecounter()"


def _definition(name: str, parameters: str, *lines: str) -> str:
    body = "\n".join(f"  {line}" for line in (_AT, *lines, "ret void"))
    return f"define internal void @library.{name}({parameters}) #2 {{\n{body}\n}}\n"


def _clock(name: str, op: str, *lines: str) -> str:
    start = ["%cycles = call i64 @llvm.readcyclecounter()", "%old = load volatile i64, ptr %at, align 8"]
    end = [f"%new = {op} i64 %old, %cycles", "store volatile i64 %new, ptr %at, align 8"]
    return _definition(name, "i64 %word", *start, *end, *lines)


_RUNS: Final = (
    "%next = getelementptr i64, ptr %at, i64 1", "%runs = load volatile i64, ptr %next, align 8",
    "%more = add i64 %runs, 1", "store volatile i64 %more, ptr %next, align 8",
)  # fmt: skip
TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "mark": (
        _EXTERNAL,
        _definition("mark", "i64 %word, i64 %value", "store volatile i64 %value, ptr %at, align 8"),
    ),
    "tick": (_EXTERNAL, f"{_CYCLES}\n{_clock('tick', 'sub')}"),
    "tock": (_EXTERNAL, f"{_CYCLES}\n{_clock('tock', 'add', *_RUNS)}"),
}


@once
def words() -> Any:
    """Return the words, an array of int64 that lives as long as the process."""
    return (ctypes.c_int64 * COUNT)()


def word_symbols(text: str) -> dict[str, int]:
    """Return the address of the words for a module's text that names them."""
    return {_NAME: ctypes.addressof(words())} if f"@{_NAME}" in text else {}


class _Free:
    """Words that nobody holds, in pairs: one for a value, the next for the runs of a clock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.numbers = list(range(COUNT - 2, -1, -2))


_free = _Free()


class Word:
    """Pair of words that compiled code writes. Their numbers are used again once the object is gone.

    number: of the first word.
    """

    __slots__ = ("__weakref__", "number")

    def __init__(self) -> None:
        """Raise IndexError where all are held."""
        with _free.lock:
            self.number = _free.numbers.pop()
        self.clear()
        weakref.finalize(self, _release, self.number).atexit = False

    @property
    def value(self) -> int:
        """The first word."""
        return int(words()[self.number])

    @property
    def runs(self) -> int:
        """The second word."""
        return int(words()[self.number + 1])

    def clear(self) -> None:
        """Set both to 0."""
        words()[self.number] = words()[self.number + 1] = 0

    def __tracer_digest__(self) -> str:
        """Tell programs with different words apart."""
        return f"word#{self.number}"

    def __repr__(self) -> str:
        return f"<word {self.number}>"


def _release(number: int) -> None:
    with _free.lock:
        _free.numbers.append(number)
