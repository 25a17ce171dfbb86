"""Pool of threads that run the loops of compiled programs, over POSIX threads. Its routines are in `ll/thread_pool/`.

    void tracer_share(ptr f, ptr given, i64 count, i64 grain)    f(given, begin, end) for parts of range(count)
    void tracer_share_evenly(ptr f, ptr given, i64 count, i64 most)    one part a thread, or parts of `most`

The caller takes parts itself, so the work is done even if no other thread comes. It takes them from the first one on,
other threads from the last one back. So a job finds in a core's cache the memory that the last job left there. A part
is claimed by a compare-and-swap of `state`. Its high half is the job's number. Its low quarters count the parts taken
from the front and from the back. So a claim succeeds only while the job is on. Before the words of a new job are
written, the former job is closed: more parts are taken than any job has. So a thread that read words of two jobs fails
to claim. One job runs at a time; a second caller works alone. Threads are made on first use, sleep after some
microseconds without work, and block all signals. Results never depend on which thread runs which part.

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

MAX_THREADS: Final = 256
PARTS_A_THREAD: Final = 4
"""Parts claimed one by one balance threads that other processes slow down; more parts cost more claims."""
SPINS: Final = 1500
"""Iterations in which an idle thread looks for work before it sleeps: some 30 µs, several times the waking of a thread.
"""
STACK: Final = 8 << 20
"""Bytes of a thread's stack, on which products copy their panels; some systems give half a megabyte."""
_OPT: Final = 0  # LLVM takes 2.5 ms in place of 11
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
        return routines(_FOLDER / "serial", ("share", "share_evenly", "reset", "stop"))
    function, argument = ("x86.sse2.pause", "") if is_x86() else ("aarch64.hint", "i32")
    values = {
        "Threads.pause_declaration": f"declare void @llvm.{function}({argument})",
        "Threads.pause": f"call void @llvm.{function}({argument and 'i32 1'})",
        "Threads.sig_block": 1 if sys.platform == "darwin" else 0,
        "Threads.max": MAX_THREADS, "Threads.parts": PARTS_A_THREAD, "Threads.spins": SPINS,
        "Threads.stack_bytes": STACK, "Threads.front": 1, "Threads.back": 1 << 16,
    }  # fmt: skip
    return expanded(routines(_FOLDER, _ROUTINES), values)


class _Pool:
    """This process's pool, once there is one."""

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
    """Return a new pool, which ends with the process."""
    symbols = {"tracer_threads": ctypes.addressof(thread_count), **process_symbols(_C_NAMES)}
    loaded = load_object(compile(pool_text(), opt=_OPT), symbols, export="tracer_share")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_function(loaded, "tracer_pool_reset"))
    atexit.register(_end, loaded)
    return loaded


def _function(loaded: LoadedModule, name: str) -> Any:
    return ctypes.PYFUNCTYPE(None)(loaded.address(name))


def _end(loaded: LoadedModule) -> None:
    """End all threads before their code is unloaded."""
    thread_count.value = 1
    _function(loaded, "tracer_pool_stop")()


def pool_symbols(text: str, compile: Compile = compile_object) -> dict[str, int]:
    """Return the addresses of the pool that a module's text binds: none, or its entries.

    The pool is made on first use by `compile`, which turns text into object code.
    """
    if "@tracer_share" not in text:
        return {}
    thread_count_in_force()
    pool = _POOL.get(compile)
    return {name: pool.address(name) for name in ("tracer_share", "tracer_share_evenly")}
