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
from typing import Any, Final

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

ALONE: Final = """\
define void @tracer_share(ptr %f, ptr %given, i64 %count, i64 %grain) {
  call void %f(ptr %given, i64 0, i64 %count)
  ret void
}
define void @tracer_share_evenly(ptr %f, ptr %given, i64 %count, i64 %most) {
  call void %f(ptr %given, i64 0, i64 %count)
  ret void
}
define void @tracer_pool_reset() {
  ret void
}
define void @tracer_pool_stop() {
  ret void
}
"""

_TEXT: Final = """\
@tracer_threads = external global i32
@pool.state = internal global i64 0, align 64 ; the job's number, how many of its last, of its first parts are taken
@pool.finished = internal global i64 0, align 64 ; parts done
@pool.f = internal global ptr null, align 64
@pool.given = internal global ptr null
@pool.count = internal global i64 0
@pool.chunk = internal global i64 0
@pool.parts = internal global i64 0
@pool.limit = internal global i64 0 ; threads besides the caller's that may take part
@pool.busy = internal global i32 0, align 64
@pool.sleepers = internal global i32 0, align 64
@pool.stopping = internal global i32 0
@pool.started = internal global i64 0
@pool.mutex = internal global [128 x i8] zeroinitializer, align 64
@pool.condition = internal global [128 x i8] zeroinitializer, align 64
@pool.threads = internal global [MOST x i64] zeroinitializer, align 64
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
PAUSE_DECLARATION

define void @tracer_share(ptr %f, ptr %given, i64 %count, i64 %grain) {
  call void @pool.share(ptr %f, ptr %given, i64 %count, i64 %grain, i64 PARTS, i64 -1)
  ret void
}

define void @tracer_share_evenly(ptr %f, ptr %given, i64 %count, i64 %most) {
  call void @pool.share(ptr %f, ptr %given, i64 %count, i64 1, i64 1, i64 %most)
  ret void
}

; In parts of whole grains, at most so long: for each thread so many, and less than twice as many.
define internal void @pool.share(ptr %f, ptr %given, i64 %count, i64 %grain, i64 %times, i64 %most) {
entry:
  %allowed = load atomic i32, ptr @tracer_threads monotonic, align 4
  %together = icmp sgt i32 %allowed, 1
  %pieces = udiv i64 %count, %grain
  %divisible = icmp ugt i64 %pieces, 1
  %worth = and i1 %together, %divisible
  br i1 %worth, label %try, label %alone
alone:
  call void %f(ptr %given, i64 0, i64 %count)
  ret void
try:
  %taken = cmpxchg ptr @pool.busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %taken, 1
  br i1 %mine, label %ready, label %alone
ready:
  %threads = zext i32 %allowed to i64
  %others = sub i64 %threads, 1
  %helpers = call i64 @llvm.umin.i64(i64 %others, i64 MOST)
  call void @pool.start(i64 %helpers)
  %all.threads = add i64 %helpers, 1
  %wanted = mul i64 %all.threads, %times
  %each = udiv i64 %pieces, %wanted
  %shared = mul i64 %each, %wanted
  %exact = icmp eq i64 %shared, %pieces
  %several = icmp ugt i64 %times, 1
  %fair = or i1 %exact, %several
  %half = lshr i64 %each, 1 ; or one thread has twice as much to do
  %fitting = select i1 %fair, i64 %each, i64 %half
  %whole = call i64 @llvm.umax.i64(i64 %fitting, i64 1)
  %few = call i64 @llvm.umin.i64(i64 %whole, i64 %most)
  %chunk = mul i64 %few, %grain
  %parts = udiv i64 %count, %chunk
  %old = load atomic i64, ptr @pool.state monotonic, align 8
  %closed = or i64 %old, 4294967295
  store atomic i64 %closed, ptr @pool.state monotonic, align 8
  store atomic ptr %f, ptr @pool.f release, align 8 ; whoever reads one of these finds the former job closed
  store atomic ptr %given, ptr @pool.given release, align 8
  store atomic i64 %count, ptr @pool.count release, align 8
  store atomic i64 %chunk, ptr @pool.chunk release, align 8
  store atomic i64 %parts, ptr @pool.parts release, align 8
  store atomic i64 %helpers, ptr @pool.limit monotonic, align 8
  store atomic i64 0, ptr @pool.finished monotonic, align 8
  %old.job = lshr i64 %old, 32
  %job = add i64 %old.job, 1
  %new = shl i64 %job, 32
  store atomic i64 %new, ptr @pool.state seq_cst, align 8
  %sleepers = load atomic i32, ptr @pool.sleepers seq_cst, align 4
  %asleep = icmp ne i32 %sleepers, 0
  br i1 %asleep, label %wake, label %work
wake:
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  call i32 @pthread_cond_broadcast(ptr @pool.condition)
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  br label %work
work:
  %low = and i64 %job, 4294967295
  call void @pool.work(i64 %low, i64 FROM_FRONT)
  br label %wait
wait:
  %spins = phi i64 [ 0, %work ], [ %spins.next, %again ]
  %finished = load atomic i64, ptr @pool.finished acquire, align 8
  %all = icmp eq i64 %finished, %parts
  br i1 %all, label %done, label %rest
rest:
  %long = icmp ugt i64 %spins, SPINS
  br i1 %long, label %yield, label %pause
yield:
  call i32 @sched_yield()
  br label %again
pause:
  PAUSE
  br label %again
again:
  %spins.next = add i64 %spins, 1
  br label %wait
done:
  store atomic i32 0, ptr @pool.busy release, align 4
  ret void
}

; Claim parts of the job and run them, until there is none left. %step: what counts a part, from which side.
define internal void @pool.work(i64 %job, i64 %step) {
entry:
  %is.front = icmp eq i64 %step, FROM_FRONT
  br label %look
look:
  %state = load atomic i64, ptr @pool.state acquire, align 8
  %now = lshr i64 %state, 32
  %same = icmp eq i64 %now, %job
  %first = and i64 %state, 65535
  %rest = lshr i64 %state, 16
  %last = and i64 %rest, 65535
  %taken = add i64 %first, %last
  %parts = load atomic i64, ptr @pool.parts acquire, align 8
  %left = icmp ult i64 %taken, %parts
  %open = and i1 %same, %left
  br i1 %open, label %claim, label %done
claim:
  %f = load atomic ptr, ptr @pool.f acquire, align 8
  %given = load atomic ptr, ptr @pool.given acquire, align 8
  %count = load atomic i64, ptr @pool.count acquire, align 8
  %chunk = load atomic i64, ptr @pool.chunk acquire, align 8
  %following = add i64 %state, %step
  %swapped = cmpxchg ptr @pool.state, i64 %state, i64 %following acq_rel monotonic
  %claimed = extractvalue { i64, i1 } %swapped, 1
  br i1 %claimed, label %run, label %look
run:
  %after.last = sub i64 %parts, %last
  %from.end = sub i64 %after.last, 1
  %part = select i1 %is.front, i64 %first, i64 %from.end
  %begin = mul i64 %part, %chunk
  %next.part = add i64 %part, 1
  %is.last = icmp eq i64 %next.part, %parts
  %next = mul i64 %next.part, %chunk
  %end = select i1 %is.last, i64 %count, i64 %next
  call void %f(ptr %given, i64 %begin, i64 %end)
  %before = atomicrmw add ptr @pool.finished, i64 1 release
  br label %look
done:
  ret void
}

define internal ptr @pool.thread(ptr %number) {
entry:
  %mask = alloca [128 x i8], align 16
  call i32 @sigfillset(ptr %mask)
  call i32 @pthread_sigmask(i32 SIG_BLOCK, ptr %mask, ptr null)
  %id = ptrtoint ptr %number to i64
  br label %idle
idle:
  %seen = phi i64 [ -1, %entry ], [ %job, %invited ], [ %job, %worked ]
  br label %spin
spin:
  %spins = phi i64 [ 0, %idle ], [ %spins.next, %pause ]
  %state = load atomic i64, ptr @pool.state acquire, align 8
  %current = lshr i64 %state, 32
  %new = icmp ne i64 %current, %seen
  br i1 %new, label %found, label %tired
tired:
  %spins.next = add i64 %spins, 1
  %enough = icmp ugt i64 %spins.next, SPINS
  br i1 %enough, label %sleep, label %pause
pause:
  PAUSE
  br label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  %more = atomicrmw add ptr @pool.sleepers, i32 1 seq_cst
  br label %check
check:
  %state.asleep = load atomic i64, ptr @pool.state seq_cst, align 8
  %current.asleep = lshr i64 %state.asleep, 32
  %new.asleep = icmp ne i64 %current.asleep, %seen
  %stop.asleep = load atomic i32, ptr @pool.stopping monotonic, align 4
  %stops.asleep = icmp ne i32 %stop.asleep, 0
  %wakes = or i1 %new.asleep, %stops.asleep
  br i1 %wakes, label %awake, label %wait
wait:
  call i32 @pthread_cond_wait(ptr @pool.condition, ptr @pool.mutex)
  br label %check
awake:
  %less = atomicrmw sub ptr @pool.sleepers, i32 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  br label %found
found:
  %job = phi i64 [ %current, %spin ], [ %current.asleep, %awake ]
  %stop = load atomic i32, ptr @pool.stopping monotonic, align 4
  %stops = icmp ne i32 %stop, 0
  br i1 %stops, label %end, label %invited
end:
  ret ptr null
invited:
  %limit = load atomic i64, ptr @pool.limit monotonic, align 8
  %takes.part = icmp ult i64 %id, %limit
  br i1 %takes.part, label %worked, label %idle
worked:
  call void @pool.work(i64 %job, i64 FROM_BACK)
  br label %idle
}

; Have this many threads. The caller holds the pool.
define internal void @pool.start(i64 %wanted) {
entry:
  %attributes = alloca [128 x i8], align 16
  %started = load i64, ptr @pool.started, align 8
  %none = icmp eq i64 %started, 0
  br i1 %none, label %prepare, label %begin
prepare:
  call i32 @pthread_mutex_init(ptr @pool.mutex, ptr null)
  call i32 @pthread_cond_init(ptr @pool.condition, ptr null)
  br label %begin
begin:
  call i32 @pthread_attr_init(ptr %attributes)
  call i32 @pthread_attr_setstacksize(ptr %attributes, i64 STACK)
  br label %loop
loop:
  %i = phi i64 [ %started, %begin ], [ %i.next, %made ]
  %more = icmp ult i64 %i, %wanted
  br i1 %more, label %make, label %done
make:
  %slot = getelementptr i64, ptr @pool.threads, i64 %i
  %number = inttoptr i64 %i to ptr
  %failed = call i32 @pthread_create(ptr %slot, ptr %attributes, ptr @pool.thread, ptr %number)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %made, label %done
made:
  %i.next = add i64 %i, 1
  store i64 %i.next, ptr @pool.started, align 8
  br label %loop
done:
  call i32 @pthread_attr_destroy(ptr %attributes)
  ret void
}

; In a forked child: the threads are not there, and a job that one of them had is nobody's.
define void @tracer_pool_reset() {
  %old = load atomic i64, ptr @pool.state monotonic, align 8
  %closed = or i64 %old, 4294967295
  store atomic i64 %closed, ptr @pool.state monotonic, align 8
  store i64 0, ptr @pool.started, align 8
  store i32 0, ptr @pool.sleepers, align 4
  store atomic i32 0, ptr @pool.busy release, align 4
  ret void
}

; Before the process ends: end the threads, and start none again.
define void @tracer_pool_stop() {
entry:
  store atomic i32 1, ptr @pool.stopping monotonic, align 4
  %started = load i64, ptr @pool.started, align 8
  %none = icmp eq i64 %started, 0
  br i1 %none, label %done, label %wake
wake:
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  call i32 @pthread_cond_broadcast(ptr @pool.condition)
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  br label %loop
loop:
  %i = phi i64 [ 0, %wake ], [ %i.next, %join ]
  %more = icmp ult i64 %i, %started
  br i1 %more, label %join, label %done
join:
  %slot = getelementptr i64, ptr @pool.threads, i64 %i
  %thread = load i64, ptr %slot, align 8
  call i32 @pthread_join(i64 %thread, ptr null)
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}
"""


def pool_text() -> str:
    """The pool as LLVM text; where there are no POSIX threads, callers do all work themselves."""
    if os.name != "posix":
        return ALONE
    if is_x86():
        pause = ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()")
    else:
        pause = ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)")
    words = {
        "PAUSE_DECLARATION": pause[0], "PAUSE": pause[1], "SIG_BLOCK": "1" if sys.platform == "darwin" else "0",
        "MOST": str(MOST_THREADS), "PARTS": str(PARTS_A_THREAD), "SPINS": str(SPINS),
        "STACK": str(STACK), "FROM_FRONT": "1", "FROM_BACK": str(1 << 16),
    }  # fmt: skip
    text = _TEXT
    for name, value in words.items():
        text = text.replace(name, value)
    return text


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
