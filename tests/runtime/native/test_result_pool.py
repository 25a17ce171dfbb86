"""Memory of large results: kept when arrays go, used again, given back."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer.runtime.jit import entry
from tracer.runtime.native.result_pool import CAPACITY, LARGE_BYTES, release_kept

pytestmark = pytest.mark.skipif(not entry.entries_enabled(), reason="results are made by the compiled entry")


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    gc.disable()  # results in cycles of other tests stay until the end
    release_kept()
    yield
    release_kept()
    gc.enable()


def filled(count: int) -> Any:
    return tracer.jit(lambda value: tnp.full((count,), value))


def address(x: tracer.Array) -> int:
    return int(np.asarray(x).ctypes.data)


def test_memory_of_a_large_result_is_used_again() -> None:
    f = filled(LARGE_BYTES // 8)
    first = f(1.0)
    place = address(first)
    del first
    second = f(2.0)
    assert address(second) == place
    assert (np.asarray(second) == 2.0).all()
    assert release_kept() == 0


def test_living_results_keep_their_memory() -> None:
    f = filled(LARGE_BYTES // 8 + 5)
    results = [f(float(n)) for n in range(20)]
    view = np.asarray(results[3])
    del results[3]
    results += [f(100.0) for _ in range(3)]
    assert (view == 3.0).all()
    assert [float(x[-1]) for x in results] == [float(n) for n in range(20) if n != 3] + [100.0] * 3


def test_small_results_are_numpys() -> None:
    small = filled(LARGE_BYTES // 8 - 1)(1.0)
    del small
    assert release_kept() == 0


def test_eager_results_of_any_shape_are_kept_too() -> None:
    x = tnp.ones((300, 1000))
    for _ in range(3):
        y = tnp.exp(x)
    assert np.asarray(y).shape == (300, 1000)
    del y
    assert release_kept() >= 300 * 1000 * 8


def test_no_more_is_kept_than_the_limits_say() -> None:
    counts = [LARGE_BYTES // 8 * n for n in range(1, 30)]
    results = [filled(count)(1.0) for count in counts]
    del results
    kept = release_kept()
    assert 16 * LARGE_BYTES <= kept <= CAPACITY
    huge = filled(CAPACITY // 8 + 1)(1.0)
    del huge
    assert release_kept() == 0


def test_results_that_outlive_the_modules_are_given_back() -> None:
    """At the very end of a process, with arrays in cycles and in modules that go last."""
    program = (
        "import sys, tracer, tracer.numpy as tnp, numpy as np\n"
        "f = tracer.jit(lambda v: tnp.full((1 << 18,), v))\n"
        "class Node: pass\n"
        "a, b = Node(), Node()\n"
        "a.other, b.other, a.x, b.x = b, a, f(1.0), np.asarray(f(2.0))\n"
        "sys.keep = [f(3.0), a]\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_first_and_later_calls_share_one_arena() -> None:
    """Both entries of a program kept an arena of their own, so that peaks of memory had a second one."""
    f, x = tracer.jit(lambda x: (x @ x.T) @ x), tnp.ones((512, 384))
    arena = f.lower(x).memory().arena
    assert arena >= LARGE_BYTES
    filled(arena // 8)(0.0)
    f(x)
    assert release_kept() == np.asarray(x).nbytes
    filled(arena // 8)(0.0)
    f(x)
    assert release_kept() == arena + np.asarray(x).nbytes
