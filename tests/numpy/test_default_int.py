"""`config.default_int`: the dtype of integers from creation functions, lists and samplers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import config


@pytest.mark.parametrize(
    "make",
    [
        lambda: tnp.arange(3),
        lambda: tnp.asarray([1, 2]),
        lambda: tnp.array([[1], [2]]),
        lambda: tnp.zeros(2, int),
        lambda: tnp.asarray([1.0]).astype(int),
        lambda: tnp.asarray([1.0], dtype=int),
        lambda: tracer.random.randint(tracer.random.key(0), (2,), 0, 9),
        lambda: tracer.random.permutation(tracer.random.key(0), 4),
        lambda: tracer.random.choice(tracer.random.key(0), 4, (2,)),
        lambda: tracer.random.choice(tracer.random.key(0), 4, (2,), replace=False),
        lambda: tracer.random.poisson(tracer.random.key(0), 3.0, (2,)),
        lambda: tracer.random.geometric(tracer.random.key(0), 0.5, (2,)),
        lambda: tracer.random.rademacher(tracer.random.key(0), (2,)),
    ],
)
def test_the_default_integer_dtype_is_a_setting(make: Any) -> None:
    assert make().dtype == np.int64
    made = tracer.jit(make)
    assert made().dtype == np.int64
    with config.using(default_int="int32"):
        assert make().dtype == np.int32
        assert made().dtype == np.int32
        assert tracer.jit(make)().dtype == np.int32


def test_integers_that_do_not_fit_stay_wide() -> None:
    with config.using(default_int="int32"):
        assert tnp.asarray([2**40], dtype="int64").tolist() == [2**40]
        assert tnp.asarray([1, 2**40]).dtype == np.int64
        assert tnp.asarray([np.int64(2)]).dtype == np.int64
        assert tnp.asarray([1, 2], dtype=float).dtype == np.float64
