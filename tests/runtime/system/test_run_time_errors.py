"""What goes wrong while compiled code runs: faults, callbacks that raise, Ctrl-C, no memory."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.runtime.programs import arange, call_host, count_up, double, forever, take
from tracer import lax
from tracer.codegen.llvm.toolchain.abi import Context
from tracer.codegen.status import Status
from tracer.errors import CheckError, OutOfBoundsError
from tracer.ir.types import array_type
from tracer.primitives.control.effects import check
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.comparison import lt
from tracer.runtime.compile.compile import compile_program
from tracer.runtime.jit.jit import jit
from tracer.runtime.jit.trace_call import make_program
from tracer.runtime.system.run_time_errors import error_of
from tracer.trace.array import Array
from tracer.trace.stage import stage
from tracer.transforms.gradients import grad

pytestmark = pytest.mark.usefixtures("way")


def test_an_index_out_of_bounds_names_the_line() -> None:
    f = jit(take)
    for _ in range(3):
        with pytest.raises(OutOfBoundsError) as error:
            f(arange(3), np.array([2, 1, 5, 9]))
        assert str(error.value).startswith("index 5 is out of bounds for axis 0 with size 3, at programs.py:")
    np.testing.assert_array_equal(f(arange(3), np.array([2, 1, 0, 2])), [2.0, 1.0, 0.0, 2.0])


def test_a_check_that_fails_raises() -> None:
    def positive(x: Any) -> Any:
        check(lt(0.0, x), "x must be positive")
        return x

    f = jit(positive)
    assert float(f(np.float64(1))) == 1.0
    for _ in range(2):
        with pytest.raises(CheckError, match=r"^check failed at test_run_time_errors.py:\d+: x must be positive\n"):
            f(np.float64(-1))


def test_callbacks_run_in_order_on_the_calling_thread() -> None:
    seen: list[tuple[float, int]] = []

    def host(v: Any) -> Any:
        seen.append((float(v), threading.get_ident()))
        return v + 1

    f = jit(lambda x: call_host(host, call_host(host, x)))
    for _ in range(2):
        assert float(f(np.float64(1))) == 3.0
    assert [value for value, _ in seen] == [1.0, 2.0, 1.0, 2.0]
    assert {thread for _, thread in seen} == {threading.get_ident()}


class MineError(Exception):
    pass


@pytest.mark.parametrize("is_long", [False, True])
def test_an_exception_of_a_callback_passes_unchanged(is_long: bool) -> None:
    error = MineError("text", 3)

    def host(v: Any) -> Any:
        raise error

    f = jit(lambda x: call_host(host, count_up(x, lt, 100.0) if is_long else x))
    for _ in range(3):
        with pytest.raises(MineError) as caught:
            f(np.float64(1))
        assert caught.value is error


def test_a_callback_may_call_compiled_code() -> None:
    inner = jit(lambda x: add(x, count_up(x, lt, 10.0)))
    f = jit(lambda x: call_host(lambda v: np.asarray(inner(np.float64(v))), count_up(x, lt, 5.0)))
    for _ in range(2):
        assert float(f(np.float64(1))) == 15.0


@contextmanager
def interrupted(after: float = 0.2) -> Iterator[None]:
    """Press Ctrl-C in a moment."""
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_calls_that_are_soon_over_leave_the_handler_alone() -> None:
    """They give the GIL away, but ask nothing of the system, which takes as long as 10,000 additions."""
    of_ctrl_c = ctypes.pythonapi.PyOS_getsig
    of_ctrl_c.restype, of_ctrl_c.argtypes = ctypes.c_void_p, (ctypes.c_int,)
    usual, seen = of_ctrl_c(signal.SIGINT), []

    def host(v: Any) -> Any:
        seen.append(of_ctrl_c(signal.SIGINT) == usual)
        return v

    short, long = jit(lambda x: call_host(host, add(x, x))), jit(lambda x: call_host(host, count_up(x, lt, 10.0)))
    short(np.arange(2.0))
    short(np.arange(20_000.0))
    short(np.arange(500_000.0))
    long(np.float64(1))
    assert seen == [True, True, False, False]
    assert of_ctrl_c(signal.SIGINT) == usual


def test_ctrl_c_ends_a_native_loop() -> None:
    f = jit(forever)
    for _ in range(3):
        handler = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interrupted():
            f(np.float64(1))
        assert signal.getsignal(signal.SIGINT) is handler
    assert float(jit(double)(np.float64(1))) == 2.0


def test_ctrl_c_ends_a_loop_of_very_many_rounds() -> None:
    f = jit(lambda x: lax.fori_loop(0, 10**13, lambda i, y: y * 0.5 + 1.0, x))
    with pytest.raises(KeyboardInterrupt), interrupted():
        f(np.float64(1))


def test_ctrl_c_in_a_callback_is_an_exception_like_any_other() -> None:
    def host(v: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        return v

    f = jit(lambda x: call_host(host, count_up(x, lt, 5.0)))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            f(np.float64(1))


@contextmanager
def handling(handler: Callable[..., Any]) -> Iterator[None]:
    outer = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, outer)


def test_a_handler_that_returns_lets_the_program_go_on(way: str) -> None:
    """It runs again from its start; here the handler's second call raises, or the loop would never end."""
    calls: list[int] = []

    def handler(*_: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise MineError

    with handling(handler), interrupted(0.1), interrupted(0.4), pytest.raises(MineError):
        jit(forever)(np.float64(1))
    assert len(calls) == 2


def test_the_handler_of_the_process_stands_after_a_call() -> None:
    calls: list[int] = []
    f = jit(lambda x: count_up(x, lt, 100.0))
    f(np.float64(1))
    with handling(lambda *_: calls.append(1)):
        f(np.float64(1))
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
    assert calls == [1]


def test_other_threads_run_during_a_long_call() -> None:
    f = jit(lambda x: count_up(x, lt, 3e8))
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.005):
            ticks.append(time.perf_counter())

    f.lower(np.float64(0)).compile()
    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    f(np.float64(0))
    end = time.perf_counter()
    done.set()
    thread.join()
    assert sum(start < t < end for t in ticks) >= 3


def test_statuses_have_exceptions() -> None:
    compiled = compile_program(make_program(double)(1.0))
    context = Context()
    assert error_of(compiled.scheduled.sites, Status.DONE, context) is None
    assert error_of(compiled.scheduled.sites, Status.RAISED, context) is None
    assert isinstance(error_of(compiled.scheduled.sites, Status.INTERRUPTED, context), KeyboardInterrupt)
    error = error_of(compiled.scheduled.sites, Status.NO_MEMORY, context)
    assert isinstance(error, MemoryError)
    assert str(error) == (
        "the stack of a compiled loop could not grow: the values kept for the backward pass of a while_loop, or of a "
        "scan, do not fit in memory"
    )


def test_a_reverse_loop_frees_its_stacks_at_every_call() -> None:
    """x doubled until it reaches a bound: the derivative needs the number of rounds, kept on a stack."""
    types = [array_type(np.dtype("float64"), ())]
    cond = stage(lambda xs: [lt(xs[0], 1e3)], types, name="cond").program
    body = stage(lambda xs: [mul(xs[0], xs[0])], types, name="body").program
    f = jit(grad(lambda x: while_program(cond, body, [], [], [x])[0]))
    for _ in range(50):
        assert float(f(np.float64(3))) == 8 * 3.0**7


def test_results_after_an_error_are_right() -> None:
    f = jit(lambda x, i: add(take(x, i), take(x, i)))
    with pytest.raises(OutOfBoundsError):
        f(arange(3), np.array([3]))
    result = f(arange(3), np.array([2]))
    assert type(result) is Array
    np.testing.assert_array_equal(result, [4.0])
