"""Nests shared by threads: the same bits for any number of them, faults in order, forks, and nobody left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import executable
from tests.schedule.running import call, program, vector
from tests.targets import TINY
from tracer.errors import OutOfBoundsError
from tracer.ir.dtypes import F32, I64
from tracer.ir.loop import For, Invoke, LoopKind
from tracer.ir.loop.walk import statements_of
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.trigonometric import sin
from tracer.schedule.pipeline import Scheduled, schedule
from tracer.settings import config, thread_count


def chain(x: Any) -> Any:
    return add(mul(sin(x), x), sin(mul(x, x)))


def shares(scheduled: Scheduled) -> list[Any]:
    entry = next(f for f in scheduled.module.functions if f.name == scheduled.module.entry)
    return [s.share for s in statements_of(entry.body) if isinstance(s, Invoke)]


@pytest.mark.parametrize("n", [2, 7, 8, 9, 63, 64, 65, 1000, 1003])
def test_the_number_of_threads_does_not_show(n: int) -> None:
    p = program(chain, vector(n, F32))
    scheduled = schedule(optimize(p), TINY)
    assert all(shares(scheduled))
    runnable = executable(scheduled.module)
    x = np.linspace(-3, 3, n, dtype=np.float32)
    results = []
    for count in (1, 2, 3, 8):
        with config.using(threads=count):
            results.append(call(scheduled, runnable, p, [x])[0])
    for other in results[1:]:
        np.testing.assert_array_equal(other.view(np.uint32), results[0].view(np.uint32))


def test_short_nests_are_not_shared_and_long_ones_are() -> None:
    assert not any(shares(schedule(optimize(program(chain, vector(100))))))
    assert all(shares(schedule(optimize(program(chain, vector(10**6))))))


@pytest.mark.parametrize(("width", "lanes"), [(32, 32), (64, 64), (128, 16), (60, 16)])
def test_a_short_row_that_is_gathered_looks_at_its_index_once(width: int, lanes: int) -> None:
    p = program(lambda x, i: x[i], array_type(F32, (50, width)), array_type(I64, (40,)))
    scheduled = schedule(optimize(p))
    loops = [s for f in scheduled.module.functions for s in statements_of(f.body) if isinstance(s, For)]
    assert [s.lanes for s in loops if s.kind is LoopKind.VECTOR] == [lanes]
    x, i = np.arange(50.0 * width, dtype=np.float32).reshape(50, width), np.arange(40) * 7 % 50 - 25
    np.testing.assert_array_equal(call(scheduled, executable(scheduled.module), p, [x, i])[0], x[i])
    i[13] = 50
    with pytest.raises(OutOfBoundsError, match="index 50 is out of bounds for axis 0 with size 50"):
        call(scheduled, executable(scheduled.module), p, [x, i])


def test_threads_of_python_may_call_at_once() -> None:
    p = program(chain, vector(200_000))
    scheduled = schedule(optimize(p))
    runnable = executable(scheduled.module)
    x = np.linspace(-3, 3, 200_000)
    expected = call(scheduled, runnable, p, [x])[0]
    wrong = []

    def work() -> None:
        for _ in range(20):
            if not np.array_equal(call(scheduled, runnable, p, [x])[0], expected):
                wrong.append(1)

    with config.using(threads=3):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_a_pool_of_its_own() -> None:
    p = program(chain, vector(200_000))
    scheduled = schedule(optimize(p))
    runnable = executable(scheduled.module)
    x = np.linspace(-3, 3, 200_000)
    with config.using(threads=3), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads, which is the point
        expected = call(scheduled, runnable, p, [x])[0]
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            try:
                same = all(np.array_equal(call(scheduled, runnable, p, [x])[0], expected) for _ in range(5))
                os._exit(0 if same and len(os.listdir("/proc/self/task")) >= 3 else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        np.testing.assert_array_equal(call(scheduled, runnable, p, [x])[0], expected)


def test_settings_say_how_many_threads_there_are() -> None:
    outer = thread_count.value
    with config.using(threads=5):
        assert thread_count.value == 5
        with config.using(threads=0):
            assert thread_count.value >= 1
        assert thread_count.value == 5
    assert thread_count.value == outer or outer == 1


IDLE = """
import time
import numpy as np, tracer, tracer.numpy as tnp
tracer.config.threads = 3
f = tracer.jit(lambda x: tnp.sin(x) * x)
x = tnp.asarray(np.linspace(0, 1, 10**6))
f(x)
time.sleep(0.1)
before = time.process_time()
time.sleep(0.5)
print(time.process_time() - before)
"""


def test_idle_threads_sleep_and_end_with_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", IDLE], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.05
