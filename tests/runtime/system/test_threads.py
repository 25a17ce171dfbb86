"""Threads that compile and call at the same time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

import tracer.numpy as tnp
from tracer import jit, lax
from tracer.once import once

FIRST_CALLS = """
import threading
import tracer.numpy as tnp
from tracer import jit

def work(k):
    for i in range(6):
        y = jit(lambda x: tnp.sum(tnp.ones_like(x)) * (k * 100 + i))(tnp.ones(5 + k))
        assert float(y) == (5 + k) * (k * 100 + i)

threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_the_first_calls_of_a_process_may_come_from_several_threads() -> None:
    """What they share is made once: the code of one that lost the race would be freed under its feet."""
    done = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_made_once_is_made_once() -> None:
    made: list[int] = []

    @once
    def thing() -> object:
        made.append(1)
        time.sleep(0.05)
        return object()

    with ThreadPoolExecutor(4) as pool:
        things = {id(found) for found in pool.map(lambda _: thing(), range(8))}
    assert len(things) == len(made) == 1


def test_threads_call_one_function_with_different_types_at_once() -> None:
    """Each kind is compiled once, whoever comes first, and every result is that of its own kind."""
    f = jit(lambda x: tnp.sum(x * 2) + x)
    kinds: list[Any] = [np.arange(n).astype(dtype) for n in (1, 2, 5, 64) for dtype in ("f4", "f8", "i4")]
    kinds += [2.5, 3, tnp.ones((2, 3))]
    expected = [np.asarray(tnp.sum(tnp.asarray(x) * 2) + tnp.asarray(x)) for x in kinds]
    start = threading.Barrier(8)

    def work(shift: int) -> int:
        start.wait()
        right = 0
        for turn in range(30 * len(kinds)):
            number = (turn + shift) % len(kinds)
            found = np.asarray(f(kinds[number]))
            right += found.dtype == expected[number].dtype and found.tobytes() == expected[number].tobytes()
        return right

    with ThreadPoolExecutor(8) as pool:
        right = list(pool.map(work, range(0, 16, 2)))
    assert right == [30 * len(kinds)] * 8
    assert f.explain().startswith(f"lambda compiled {len(kinds)} times")


def test_long_programs_let_other_threads_run() -> None:
    f = jit(lambda x: lax.fori_loop(0, 30_000_000, lambda i, v: v * 0.999 + 1.0, x))
    f(1.0)
    times: list[float] = []

    def work() -> None:
        times.append(time.perf_counter())
        f(1.0)
        times.append(time.perf_counter())

    thread = threading.Thread(target=work)
    turns = [time.perf_counter()]
    thread.start()
    while len(times) < 2:
        now = time.perf_counter()
        if now - turns[-1] > 1e-4:
            turns.append(now)
    thread.join()
    inside = [times[0], *(turn for turn in turns if times[0] < turn < times[1]), times[1]]
    longest = max(after - before for before, after in pairwise(inside))
    assert longest < 0.8 * (times[1] - times[0])  # with the GIL held this thread waits for nearly all of it
