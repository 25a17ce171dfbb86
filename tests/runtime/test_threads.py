"""Threads that compile and call at the same time."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

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
