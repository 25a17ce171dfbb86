"""Calls that come often are replayed: with the same bits, types and errors, and only where nothing else can happen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer.errors import OutOfBoundsError, ShapeError
from tracer.runtime import replay
from tracer.runtime.replay import often, replayed
from tracer.trace import trees

RNG = np.random.default_rng(5)
X = tnp.asarray(RNG.normal(size=(5, 7)))
Y = tnp.asarray(RNG.normal(size=(7, 3)).astype(np.float32))
N = tnp.asarray(RNG.integers(0, 5, size=(4,)))

CALLS: dict[str, Callable[[], Any]] = {
    "sum": X.sum,
    "sum over an axis": lambda: tnp.sum(Y, axis=0, keepdims=True),
    "mean": lambda: tnp.mean(X, axis=1),
    "var": lambda: tnp.var(Y),
    "argmax": lambda: tnp.argmax(X, axis=0),
    "matmul": lambda: X @ Y,
    "einsum": lambda: tnp.einsum("ij,jk->ki", X, Y),
    "stack": lambda: tnp.stack([X, X + 1.0], axis=1),
    "T": lambda: X.T,
    "reshape": lambda: X.reshape(7, -1),
    "astype": lambda: X.astype("int32"),
    "an index": lambda: X[N, 1:3],
    "an index of an Array": lambda: X[N[0]],
    "an update": lambda: X.at[N].add(2.0),
    "a slice set": lambda: X.at[1:3].set(tnp.ones(7)),
    "zeros": lambda: tnp.zeros(3, "float32"),
    "several results": lambda: tnp.split(X, [2, 3]),
    "unstack": lambda: tnp.unstack(Y),
    "cumsum": lambda: tnp.cumsum(Y, axis=1),
    "weak": lambda: tnp.sum(tnp.full((3,), 2.0)),
}


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is made at the third call."""
    monkeypatch.setattr(often, "calls", 3)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of functions for which plans were made."""
    made: list[str] = []
    original = replay._planned

    def spy(function: Any, *rest: Any) -> Any:
        plan = original(function, *rest)
        if plan is not None:
            made.append(function.__name__)
        return plan

    monkeypatch.setattr(replay, "_planned", spy)
    return made


@pytest.mark.parametrize("name", CALLS)
def test_replayed_calls_have_the_same_bits_and_types(name: str, planned: list[str]) -> None:
    results = [trees.flatten(CALLS[name]())[0] for _ in range(6)]
    assert planned
    for result in results[1:]:
        for first, later in zip(results[0], result, strict=True):
            assert first.type == later.type
            assert np.asarray(first).tobytes() == np.asarray(later).tobytes()
            assert first is not later


def test_zeros_of_either_sign_are_different_calls() -> None:
    for _ in range(5):
        assert not np.signbit(tnp.full(2, 0.0)).any()
        assert np.signbit(tnp.full(2, -0.0)).all()


def test_numbers_of_different_kinds_are_different_calls() -> None:
    for _ in range(5):
        assert tnp.full(2, 1).dtype == "int64"
        assert tnp.full(2, 1.0).dtype == "float64"
        assert tnp.full(2, True).dtype == "bool"


@pytest.mark.parametrize("replays", [1, 500])
def test_errors_of_elements_are_those_of_the_first_call(replays: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(often, "replays", replays)
    messages = set()
    for index in [1] * 5 + [9]:
        place = tnp.asarray(index)
        if index == 1:
            X[place]
        else:
            for _ in range(2):
                with pytest.raises(OutOfBoundsError) as caught:
                    X[place]
                messages.add(str(caught.value))
    assert len(messages) == 1
    assert "index 9 is out of bounds for axis 0 with size 5, at test_replay.py" in messages.pop()


def test_calls_that_fail_fail_every_time() -> None:
    for _ in range(5):
        with pytest.raises(ShapeError):
            X @ X


def test_traced_arrays_are_not_replayed(planned: list[str]) -> None:
    for _ in range(5):
        assert "reduce_sum" in str(tracer.make_program(tnp.sum)(X))
        np.testing.assert_array_equal(tracer.grad(tnp.sum)(X), np.ones((5, 7)))
    assert "sum" not in planned


def test_what_is_given_back_as_it_came_has_no_plan(planned: list[str]) -> None:
    for _ in range(5):
        assert X.reshape(5, 7)._value is X._value
    assert planned == []


def test_a_setting_that_changes_for_good_starts_anew(planned: list[str]) -> None:
    x = tnp.ones(11)
    for _ in range(4):
        tnp.sum(x)
    before = tracer.config.threads
    tracer.config.threads = 1
    try:
        for _ in range(4):
            tnp.sum(x)
    finally:
        tracer.config.threads = before
    assert planned == ["sum", "sum"]


def test_kinds_of_calls_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(often, "kinds", 4)

    @replayed
    def double(x: Any, times: int) -> Any:
        return tnp.sum(x) * times

    for times in (*range(10), *range(10)):
        for _ in range(4):
            assert float(double(X, times)) == float(tnp.sum(X) * times)


def test_threads_replay_at_the_same_time() -> None:
    expected = np.asarray(tnp.sum(X, axis=1))
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(300):
            if np.asarray(tnp.sum(X, axis=1)).tobytes() != expected.tobytes():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_numpy_does_not_warn() -> None:
    x = tnp.asarray([1e308, 1e308])
    for _ in range(5):
        assert np.isinf(tnp.sum(x))


@pytest.mark.parametrize("name", CALLS)
def test_compiled_calls_have_the_same_bits_and_types(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(often, "replays", 2)
    results = [trees.flatten(CALLS[name]())[0] for _ in range(12)]
    for result in results[1:]:
        for first, later in zip(results[0], result, strict=True):
            assert first.type == later.type
            assert np.asarray(first).tobytes() == np.asarray(later).tobytes()


def test_what_adds_up_floats_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy adds in another order."""
    compiled: list[str] = []
    original = replay._compiled

    def spy(program: Any, *rest: Any) -> Any:
        compiled.append(program.name)
        return original(program, *rest)

    monkeypatch.setattr(replay, "_compiled", spy)
    monkeypatch.setattr(often, "replays", 1)
    whole, floats = tnp.arange(13), tnp.arange(13.0)
    for _ in range(8):
        tnp.sum(floats)
        tnp.cumsum(floats)
        tnp.sum(whole)
        tnp.stack([floats, floats])
    assert compiled == ["sum", "stack"]
