"""`config.index_errors`: indices out of bounds raise, or mean what they mean in JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import config, lax
from tracer.errors import OutOfBoundsError

X = tnp.arange(4.0)
READS: dict[str, tuple[Any, Any, float]] = {
    "an integer": (lambda x, i: x[9], 0, 3.0),
    "a negative integer": (lambda x, i: x[-9], 0, 0.0),
    "an array": (lambda x, i: x[i], 9, 3.0),
    "a matrix": (lambda x, i: x.reshape(2, 2)[1, i], 9, 3.0),
    "take": (lambda x, i: tnp.take(x, i, mode="clip"), 9, 3.0),
    "within bounds": (lambda x, i: x[i] + x[2], 1, 3.0),
}
WRITES: dict[str, tuple[Any, Any, list[float]]] = {
    "an integer": (lambda x, i: x.at[9].set(7.0), 0, [0.0, 1.0, 2.0, 3.0]),
    "an array": (lambda x, i: x.at[i].add(7.0), np.array([1, 9]), [0.0, 8.0, 2.0, 3.0]),
    "within bounds": (lambda x, i: x.at[i].multiply(7.0).at[1:2].set(5.0), 3, [0.0, 5.0, 2.0, 21.0]),
}


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit])
@pytest.mark.parametrize("name", READS)
def test_reads_take_the_nearest_element(way: Any, name: str) -> None:
    f, index, expected = READS[name]
    with config.using(index_errors=False):
        assert float(way(f)(X, tnp.asarray(index))) == expected
        slope = way(tracer.grad(lambda x: f(x, tnp.asarray(index)) ** 2))(X)
        assert float(slope.sum()) == pytest.approx((4 if name == "within bounds" else 2) * expected)


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit])
@pytest.mark.parametrize("name", WRITES)
def test_writes_are_dropped(way: Any, name: str) -> None:
    f, index, expected = WRITES[name]
    with config.using(index_errors=False):
        assert way(f)(X, tnp.asarray(index)).tolist() == expected


def test_the_setting_is_part_of_a_program() -> None:
    read = tracer.jit(lambda x, i: x[i])
    with config.using(index_errors=False):
        assert float(read(X, 9)) == 3.0
    with pytest.raises(OutOfBoundsError):
        read(X, 9)
    with config.using(index_errors=False):
        assert float(read(X, 9)) == 3.0
        numbers = lax.GatherDimensionNumbers((), (0,), (0,))
        assert np.isnan(lax.gather(X, tnp.asarray([9]), numbers, (1,)))
