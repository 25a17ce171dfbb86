"""`x.at[i].apply(f)`: places named more than once, as in JAX; and its slope there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer.errors import OutOfBoundsError

X = np.arange(4.0) + 0.5
INDICES: dict[str, Any] = {
    "twice": [0, 0, 1], "once": [2, 0], "matrix": [[0, 1], [1, 1]], "nothing": np.zeros(0, int), "slice": slice(1, 3),
    "number": 1, "mask": np.array([True, False, True, False]), "from the end": [-1, 3, -4],
}  # fmt: skip


def wave(x: Any) -> Any:
    return 2 * np.sin(x)


def applied_at(x: Any, index: Any) -> Any:
    """What ufunc.at does, and JAX: once for each time that a place is named."""
    times = np.zeros(x.shape, int)
    np.add.at(times, index, 1)
    found = x.copy()
    for n in range(times.max()):
        found = np.where(times > n, wave(found), found)
    return found


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_places_named_often_are_applied_to_as_often(index: Any) -> None:
    expected = applied_at(X, index)
    for run in (lambda f: f, tracer.jit):
        np.testing.assert_allclose(run(lambda x: x.at[index].apply(wave))(tnp.asarray(X)), expected, rtol=1e-14)
    if not isinstance(index, slice) and np.asarray(index).dtype != bool:
        traced = tracer.jit(lambda x, i: x.at[i].apply(wave))(X, np.asarray(index))
        np.testing.assert_allclose(traced, expected, rtol=1e-14)


@pytest.mark.parametrize("name", ["twice", "matrix", "once"])
def test_slopes_go_through_every_application(name: str) -> None:
    index, weights = np.asarray(INDICES[name]), np.arange(1.0, 5.0)
    step = 1e-6 * np.eye(4)
    slopes = [(applied_at(X + d, index) - applied_at(X - d, index)) @ weights / 2e-6 for d in step]
    for run in (lambda f: f, tracer.jit):
        gradient = run(tracer.grad(lambda x, i: (x.at[i].apply(wave) * weights).sum()))(X, index)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-8, atol=1e-8)


def test_what_is_finished_does_not_spoil_slopes() -> None:
    """log(log(0.5)) is no number, and is not asked for: 0.5 is named once."""
    gradient = tracer.grad(lambda x: x.at[tnp.asarray([0, 0, 1])].apply(tnp.log).sum())(tnp.asarray([3.0, 0.5, 1.0]))
    np.testing.assert_allclose(gradient, [1 / (3 * np.log(3)), 2.0, 1.0], rtol=1e-14)


def test_places_beyond_the_ends() -> None:
    x, index = tnp.zeros((3, 2)), tnp.asarray([0, 5, 1, 1])
    for run in (lambda f: f, tracer.jit):
        for places in (index, [0, 5, 1, 1], np.array([0, 5, 1, 1])):
            with pytest.raises(
                OutOfBoundsError, match="index 5 is out of bounds for axis 0 with size 3, at test_at_apply"
            ):
                run(lambda x, places=places: x.at[places].apply(lambda v: v + 1))(x)
    expected = {"drop": [1, 2, 0], "fill": [1, 2, 0], "clip": [1, 2, 1], "wrap": [1, 2, 1]}
    for mode, rows in expected.items():
        found = x.at[index].apply(lambda v: v + 1, mode=mode)
        np.testing.assert_array_equal(found, np.repeat(rows, 2).reshape(3, 2))


def test_unique_indices_promise_one_application_each() -> None:
    found = tracer.jit(lambda x, i: x.at[i].apply(wave, unique_indices=True))
    np.testing.assert_allclose(found(X, np.array([3, 0])), applied_at(X, [3, 0]), rtol=1e-14)
    assert "while" not in str(found.lower(X, np.array([3, 0])).program())


def test_under_vmap() -> None:
    index = np.array([[0, 0], [1, 2]])
    found = tracer.vmap(lambda x, i: x.at[i].apply(wave))(np.ones((2, 3)), index)
    np.testing.assert_allclose(found, [applied_at(np.ones(3), i) for i in index], rtol=1e-14)


def test_integers_stay_integers() -> None:
    assert tnp.arange(3).at[tnp.asarray([2, 2])].apply(lambda v: v / 2 + 1.5).tolist() == [0, 1, 2]
