"""The pool of threads that compiled programs share their loops among, written in LLVM text over POSIX threads.

    void tracer_share(ptr f, ptr given, i64 count, i64 grain)    f(given, begin, end) for parts of range(count)
    void tracer_share_evenly(ptr f, ptr given, i64 count, i64 most)    the same, of at most so many, but for the last

The caller takes parts itself, so the work is done even if no other thread comes. It takes them from the first one on,
other threads from the last one back: what one job leaves in a core's cache, the next one finds there. A part is claimed
by counting up one of the low quarters of `state`, parts taken from the front and from the back, whose high half is the
number of the job: whoever claims one knows that the job is still on. Before the words that describe a job change, the
former job is closed, more being taken than any job has: a thread that has read words of two jobs fails to claim. One
job runs at a time; a second caller does its work alone. Threads are made when they are first wanted, sleep after some
microseconds without work, and block all signals. Which thread runs what never matters for results. There are several
parts for each thread, or one, or as many as are no longer than what pays.

The number of threads is a word (`settings.thread_count`) that is read at every job.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import Any, Final

from tracer.codegen.llvm.toolchain.native_text import expanded, routines
from tracer.codegen.llvm.toolchain.object_code import (
    Compile,
    LoadedModule,
    compile_object,
    load_object,
    process_symbols,
)
from tracer.codegen.llvm.toolchain.target import is_x86
from tracer.settings import thread_count, thread_count_in_force

MOST_THREADS: Final = 256
PARTS_A_THREAD: Final = 4
"""Parts that are claimed one by one even out what the machine does besides; more of them cost more."""
SPINS: Final = 1500
"""How often an idle thread looks for work before it sleeps: some 30 µs, several times the waking of a thread."""
STACK: Final = 8 << 20
"""Bytes of a thread's stack, on which products copy their panels; some systems give half a megabyte."""
_OPT: Final = 0  # 2.5 ms in place of 11
_C_NAMES: Final = (
    "pthread_attr_init", "pthread_attr_setstacksize", "pthread_attr_destroy", "pthread_create", "pthread_join",
    "pthread_sigmask", "sigfillset", "pthread_mutex_init", "pthread_mutex_lock", "pthread_mutex_unlock",
    "pthread_cond_init", "pthread_cond_wait", "pthread_cond_broadcast", "sched_yield",
)  # fmt: skip

_FOLDER: Final = Path(__file__).with_name("ll") / "thread_pool"
_ROUTINES: Final = (
    "declarations", "share", "share_evenly", "share_parts", "work", "thread", "start", "reset", "stop",
)  # fmt: skip


def pool_text() -> str:
    """Return the text of the pool; where there are no POSIX threads, callers do all work themselves."""
    if os.name != "posix":
        return routines(_FOLDER, ("serial",))
    function, argument = ("x86.sse2.pause", "") if is_x86() else ("aarch64.hint", "i32")
    values = {
        "Threads.pause_declaration": f"declare void @llvm.{function}({argument})",
        "Threads.pause": f"call void @llvm.{function}({argument and 'i32 1'})",
        "Threads.sig_block": 1 if sys.platform == "darwin" else 0,
        "Threads.max": MOST_THREADS, "Threads.parts": PARTS_A_THREAD, "Threads.spins": SPINS,
        "Threads.stack_bytes": STACK, "Threads.front": 1, "Threads.back": 1 << 16,
    }  # fmt: skip
    return expanded(routines(_FOLDER, _ROUTINES), values)


class _Pool:
    """The pool of this process, once there is one."""

    def __init__(self) -> None:
        self.made: LoadedModule | None = None
        self.forked()

    def forked(self) -> None:
        self.lock = threading.Lock()

    def get(self, compile: Compile) -> LoadedModule:
        with self.lock:
            if self.made is None:
                self.made = _make_pool(compile)
            return self.made


_POOL = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.forked)


def _make_pool(compile: Compile) -> LoadedModule:
    """A pool, which ends with the process."""
    symbols = {"tracer_threads": ctypes.addressof(thread_count), **process_symbols(_C_NAMES)}
    loaded = load_object(compile(pool_text(), opt=_OPT), symbols, export="tracer_share")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_function(loaded, "tracer_pool_reset"))
    atexit.register(_end, loaded)
    return loaded


def _function(loaded: LoadedModule, name: str) -> Any:
    return ctypes.PYFUNCTYPE(None)(loaded.address(name))


def _end(loaded: LoadedModule) -> None:
    """No thread of ours is left when the code goes away."""
    thread_count.value = 1
    _function(loaded, "tracer_pool_stop")()


def pool_symbols(text: str, compile: Compile = compile_object) -> dict[str, int]:
    """What a module's text binds of the pool: nothing, or its entry.

    The pool is made when it is first wanted, by `compile`, which turns text into object code.
    """
    if "@tracer_share" not in text:
        return {}
    thread_count_in_force()
    pool = _POOL.get(compile)
    return {name: pool.address(name) for name in ("tracer_share", "tracer_share_evenly")}
