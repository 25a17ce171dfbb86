"""The pool of threads: every part of every job is run once, however closely jobs follow each other."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.grids import THOROUGH

_PROGRAM = '''
import ctypes
import sys
import numpy as np
from tracer.codegen.llvm.toolchain.object_code import compile_object, load_object
from tracer.codegen.llvm.kernels.thread_pool import pool_symbols
from tracer.settings import thread_count

TEXT = """
declare void @tracer_share(ptr, ptr, i64, i64)

define internal void @count(ptr %given, i64 %begin, i64 %end) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %one ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %one, label %done
one:
  %at = getelementptr i64, ptr %given, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}

define void @jobs(ptr %few, ptr %many, i64 %rounds) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %one ]
  %more = icmp slt i64 %i, %rounds
  br i1 %more, label %one, label %done
one:
  call void @tracer_share(ptr @count, ptr %few, i64 2, i64 1)
  call void @tracer_share(ptr @count, ptr %many, i64 64, i64 1)
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}
"""
rounds = int(sys.argv[2])
symbols = pool_symbols(TEXT)
thread_count.value = int(sys.argv[1])
loaded = load_object(compile_object(TEXT), symbols, export="jobs")
jobs = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(loaded.address("jobs"))
few, many = np.zeros(2, np.int64), np.zeros(64, np.int64)
jobs(few.ctypes.data, many.ctypes.data, rounds)
print(few.min(), few.max(), many.min(), many.max())
'''


@pytest.mark.parametrize(("threads", "rounds"), [(2, 3_000_000 if THOROUGH else 1_000_000), (4, 50_000)])
def test_jobs_that_follow_each_other_at_once_run_every_part_once(threads: int, rounds: int) -> None:
    """A thread that is late for one job must not take what the next one has at the same number."""
    command = [sys.executable, "-c", _PROGRAM, str(threads), str(rounds)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert run.stdout.split() == [str(rounds)] * 4


_SIDES = """
import ctypes, sys, threading, time
from tracer.codegen.llvm.kernels.thread_pool import pool_symbols
from tracer.settings import thread_count

PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
ran = {}

def part(given, begin, end):
    for i in range(begin, end):
        ran[i] = threading.get_ident() == main
    time.sleep(0.001)

main, native = threading.get_ident(), PART(part)
share = ctypes.CFUNCTYPE(None, PART, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
    pool_symbols("@tracer_share")["tracer_share"]
)
thread_count.value = int(sys.argv[1])
for _ in range(5):
    ran.clear()
    share(native, None, 48, 1)
    print("".join("c" if ran[i] else "o" for i in range(48)))
"""


@pytest.mark.parametrize("threads", [2, 3])
def test_the_caller_takes_the_first_parts_and_others_the_last(threads: int) -> None:
    """So each core finds in its cache what it left there."""
    command = [sys.executable, "-c", _SIDES, str(threads)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    for taken in run.stdout.split():
        assert taken == "c" * taken.count("c") + "o" * taken.count("o")
        assert taken.startswith("c")
        assert taken.endswith("o")


_EVENLY = """
import ctypes, sys
from tracer.codegen.llvm.kernels.thread_pool import pool_symbols
from tracer.settings import thread_count

PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
parts = []
native = PART(lambda given, begin, end: parts.append((begin, end)))
share = ctypes.CFUNCTYPE(None, PART, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
    pool_symbols("@tracer_share")["tracer_share_evenly"]
)
for threads, most in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    thread_count.value = int(threads)
    parts.clear()
    share(native, None, 16, int(most))
    begins = sorted(parts)
    assert [begin for begin, _ in begins] + [16] == [0] + [end for _, end in begins]
    print(*[end - begin for begin, end in begins])
"""


EVEN = {
    (1, 2): [16], (2, 100): [8, 8], (2, 4): [4] * 4, (2, 5): [5, 5, 6], (4, 100): [4] * 4, (3, 100): [2] * 8,
    (7, 100): [1] * 16, (40, 100): [1] * 16,
}  # fmt: skip
"""Lengths of the parts of 16, by threads and the longest part."""


def test_even_parts_are_one_for_each_thread_or_as_long_as_pays() -> None:
    """The caller alone has no parts; where threads do not divide the job, parts are half as long."""
    command = [sys.executable, "-c", _EVENLY, *(str(n) for asked in EVEN for n in asked)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert run.stdout.splitlines() == [" ".join(map(str, lengths)) for lengths in EVEN.values()]


_FORKED = """
import ctypes, os, signal, threading, time
from tracer.codegen.llvm.kernels import thread_pool as pool
from tracer.settings import thread_count

symbols = pool.process_symbols
CREATE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
create = CREATE(symbols(["pthread_create"])["pthread_create"])

def create_slowly(*given):
    failed = create(*given)
    time.sleep(0.1)  # so that the thread looks for work before there is any
    return failed

slow = CREATE(create_slowly)
pool.process_symbols = lambda names: symbols(names) | {"pthread_create": ctypes.cast(slow, ctypes.c_void_p).value}

PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
begun, go, parent, former, runs = threading.Event(), threading.Event(), os.getpid(), [], [0] * 48

def waits(given, begin, end):
    if os.getpid() != parent:
        former.append(begin)
    begun.set()
    go.wait()

def counts(given, begin, end):
    for i in range(begin, end):
        runs[i] += 1

waiting, counting = PART(waits), PART(counts)
share = ctypes.CFUNCTYPE(None, PART, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
    pool.pool_symbols("@tracer_share")["tracer_share"]
)
thread_count.value = 2
thread = threading.Thread(target=share, args=(waiting, None, 48, 1))
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(10)
    go.set()
    share(counting, None, 48, 1)
    print(former, set(runs), flush=True)
    os._exit(0)
status = os.waitpid(child, 0)[1]
go.set()
thread.join()
print(status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_leaves_the_job_of_another_thread_alone() -> None:
    """Its parts would be run in memory that nobody has any more, and be counted among those of the child's first."""
    command = [sys.executable, "-W", "ignore", "-c", _FORKED]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (run.stdout.splitlines(), run.stderr) == (["[] {1}", "0"], "")
