"""Routines that write shared words, which Python reads from another thread: see `ll/words/`."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Final

from tracer.codegen.llvm.toolchain.native_text import routines
from tracer.primitives.control.shared_words import words

NAMES: Final = ("mark", "tick", "tock")
_FOLDER: Final = Path(__file__).with_name("ll") / "words"


def word_texts(name: str) -> tuple[str, ...]:
    """Return the definitions that a call of a routine needs."""
    return tuple(routines(_FOLDER, (each,)) for each in ("declarations", name))


def word_symbols(text: str) -> dict[str, int]:
    """Return the address of the words for a module's text that names them."""
    return {"tracer_words": ctypes.addressof(words())} if "@tracer_words" in text else {}
