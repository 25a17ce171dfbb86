"""Routines that write shared words, which Python reads from another thread: see `ll/words/`."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Final

from tracer.codegen.llvm.toolchain.native_text import expanded, routines
from tracer.codegen.llvm.toolchain.object_code import process_symbols
from tracer.primitives.control.shared_words import words

_PROCESSOR_TIME: Final = ("tick_processors", "tock_processors")
NAMES: Final = ("mark", "tick", "tock", *_PROCESSOR_TIME)
_CLOCK: Final = 12 if sys.platform == "darwin" else 2  # CLOCK_PROCESS_CPUTIME_ID
_FOLDER: Final = Path(__file__).with_name("ll") / "words"


def word_texts(name: str) -> tuple[str, ...]:
    """Return the definitions that a call of a routine needs."""
    names = ("declarations", *(("processor_time",) if name in _PROCESSOR_TIME else ()), name)
    return tuple(expanded(routines(_FOLDER, (each,)), {"Words.process_clock": _CLOCK}) for each in names)


def word_symbols(text: str) -> dict[str, int]:
    """Return the addresses of the words and of C's clock for a module's text that names them."""
    if "@tracer_words" not in text:
        return {}
    clock = process_symbols(("clock_gettime",)) if "@clock_gettime" in text else {}
    return {"tracer_words": ctypes.addressof(words()), **clock}
