"""A forked child: locks of other threads are free, traces of theirs are gone, Ctrl-C is heard."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.runtime.programs import double, forever
from tracer.codegen.llvm.toolchain.target import llvm
from tracer.runtime.jit.jit import jit
from tracer.runtime.system import fork_safety
from tracer.settings import gate

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def in_child(check: Callable[[], bool]) -> bool:
    """Whether `check` holds in a forked child, within ten seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads, which is the point
        child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def test_a_child_is_not_held_up_by_a_trace_of_another_thread() -> None:
    assert float(jit(double)(1.0)) == 2.0  # the default device is read, and the gate is open
    inside, done = threading.Event(), threading.Event()

    @jit
    def slow(x: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            assert done.wait(20)
        return double(x)

    thread = threading.Thread(target=slow, args=(1.0,))
    thread.start()
    assert inside.wait(10)
    try:
        assert in_child(lambda: gate.words[0] == 0 and float(slow(1.0)) == 2.0)
    finally:
        done.set()
        thread.join()


def test_ctrl_c_is_heard_in_a_child() -> None:
    f = jit(forever)

    def check() -> bool:
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            f(np.float64(1))
        except KeyboardInterrupt:
            return True
        return False

    assert in_child(check)


def test_a_child_is_not_held_up_by_another_thread_within_llvm() -> None:
    assert float(jit(double)(1.0)) == 2.0  # LLVM is there
    inside = threading.Event()

    def work() -> None:
        with llvm().ffi.lib._lock:  # as every call of llvmlite's does
            inside.set()
            time.sleep(0.2)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(10)
    try:
        assert in_child(lambda: float(jit(lambda x: double(x) + 5.0)(1.0)) == 7.0)
    finally:
        thread.join()


@pytest.mark.parametrize(
    "call",
    [lambda x: x @ x, lambda x: tnp.linalg.solve(x, x), lambda x: tnp.linalg.svdvals(x[:100, :100])],
    ids=["product", "solution", "singular values"],
)
def test_a_child_is_not_forked_in_the_midst_of_a_library(call: Callable[[Any], Any]) -> None:
    """OpenBLAS would wait in the child for threads that are not there."""
    x = tnp.asarray(np.random.default_rng(0).standard_normal((300, 300)))
    expected, done = np.asarray(call(x)), threading.Event()

    def work() -> None:
        while not done.is_set():
            call(x)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        for _ in range(3):
            time.sleep(0.01)
            assert in_child(lambda: np.allclose(np.asarray(call(x)), expected))
        call(x)
    finally:
        done.set()
        thread.join(20)
    assert not thread.is_alive()  # OpenBLAS may wait in the parent, too


def test_a_fork_waits_for_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_safety, "MAX_WAIT", 0.1)
    inside, done = threading.Event(), threading.Event()

    @fork_safety.apart_from_forks
    def long() -> bool:
        inside.set()
        return done.wait(20)

    thread = threading.Thread(target=long)
    thread.start()
    assert inside.wait(10)
    try:
        assert in_child(fork_safety.apart_from_forks(lambda: True))
    finally:
        done.set()
        thread.join()
    assert not fork_safety._within
    assert not fork_safety._forking


def test_who_comes_while_another_thread_forks_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for who is within already, and for whom the fork waits: one routine may call another."""
    monkeypatch.setattr(fork_safety, "_forking", [0])
    forking_when_called: list[list[int]] = []
    inner = fork_safety.apart_from_forks(lambda: forking_when_called.append(list(fork_safety._forking)))
    timer = threading.Timer(0.2, fork_safety._forking.clear)
    timer.start()
    inner()
    assert forking_when_called == [[]]
    fork_safety._within.append(threading.get_ident())
    fork_safety._forking.append(0)
    try:
        inner()
        assert forking_when_called == [[], [0]]
    finally:
        fork_safety._within.clear()
