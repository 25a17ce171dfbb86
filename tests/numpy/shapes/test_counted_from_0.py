"""Indices without `wrap_negative_indices`: negative ones are out of bounds, outside `jit` and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer.errors import OutOfBoundsError

WAYS: dict[str, Callable[..., Any]] = {"eager": lambda f: f, "jit": tracer.jit}
INDICES: dict[str, Callable[[Any], Any]] = {
    "integer": lambda i: i, "array": lambda i: tnp.stack([tnp.asarray(2), i]), "beside a slice": lambda i: (i, ...),
    "known": lambda i: -1, "known array": lambda i: np.array([2, -1]),
}  # fmt: skip
METHODS = ["set", "add", "subtract", "multiply", "divide", "power", "min", "max", "apply"]
X = np.arange(1.0, 6.0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("index", INDICES)
def test_reads_of_negative_indices_go_by_the_mode(way: str, index: str) -> None:
    def read(mode: Any) -> Any:
        f = WAYS[way](lambda i: tnp.asarray(X).at[INDICES[index](i)].get(mode=mode, wrap_negative_indices=False))
        return np.ravel(np.asarray(f(tnp.asarray(-1))))[-1]

    assert read("clip") == 1
    assert np.isnan(read("fill"))
    with pytest.raises(OutOfBoundsError, match=r"^index -1 is out of bounds for axis 0 with size 5, at test_counted"):
        read(None)
    with tracer.config.using(index_errors=False):
        assert read(None) == 1


@pytest.mark.parametrize(("way", "index", "method"), covering(list(WAYS), list(INDICES), METHODS))
def test_writes_to_negative_indices_go_by_the_mode(way: str, index: str, method: str) -> None:
    def written(i: int, mode: Any) -> Any:
        def f(i: Any) -> Any:
            update = getattr(tnp.asarray(X).at[INDICES[index](i)], method)
            return update(tnp.exp if method == "apply" else 7.0, mode=mode, wrap_negative_indices=False)

        return np.asarray(WAYS[way](f)(tnp.asarray(i)))

    kept = written(-1, "drop")
    assert kept[[0, 1, 3, 4]].tolist() == X[[0, 1, 3, 4]].tolist()
    assert index.endswith("array") or kept[2] == 3
    with pytest.raises(OutOfBoundsError, match="index -1 is out of bounds for axis 0 with size 5, at test_counted"):
        written(-1, None)


@pytest.mark.parametrize("way", WAYS)
def test_take_along_axis_leaves_negative_indices_out(way: str) -> None:
    places = np.array([[0, -1], [1, -2]])
    f = WAYS[way](lambda i: tnp.take_along_axis(tnp.ones((2, 2)), i, 1, "fill", 0, wrap_negative_indices=False))
    assert f(places).tolist() == [[1, 0], [1, 0]]
    with pytest.raises(OutOfBoundsError, match="index -1 is out of bounds for axis 1 with size 2"):
        WAYS[way](lambda i: tnp.take_along_axis(tnp.ones((2, 2)), i, 1, wrap_negative_indices=False))(places)


def test_gradients_of_checked_indices_are_those_of_the_elements() -> None:
    f = tracer.jit(tracer.grad(lambda x, i: (x.at[i].get(wrap_negative_indices=False) ** 2).sum()))
    assert f(X, np.array([1, 1])).tolist() == [0, 8, 0, 0, 0]
