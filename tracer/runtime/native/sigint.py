"""Ctrl-C in compiled code.

CPython's own handler for SIGINT only takes a note, and Python code on the main thread acts on it. Native code is not
Python code. So while a long program runs on the main thread, our handler stands in front of CPython's own. It sets the
stop word, which the loops of compiled code poll, and calls CPython's own. The program then returns, and
`PyErr_CheckSignals` runs the user's Python handler, which usually raises KeyboardInterrupt. A handler that returns
wants the program to go on. So it is run again from its start, unless that would repeat callbacks.

Programs on other threads have a stop word that stays 0: Ctrl-C does not interrupt Python's own threads either.
The routines are in `ll/sigint/`.
"""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

from tracer.codegen.llvm.toolchain.native_text import routines

main_thread = ctypes.c_int64()
"""Identifier of the main thread, which the text binds as `tracer_main_thread`."""


def _note_main_thread() -> None:
    main_thread.value = ctypes.c_int64(threading.main_thread().ident or 0).value


_note_main_thread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_main_thread)


def sigint_text() -> str:
    """Return the text of the handler, which exports `tracer_arm` and `tracer_disarm`."""
    return routines(Path(__file__).with_name("ll") / "sigint", ("declarations", "on_interrupt", "arm", "disarm"))
