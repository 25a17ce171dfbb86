"""Ranks and the error of means beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import tracer
from tests.grids import covering
from tracer import errors
from tracer.scipy.stats import rankdata, sem


@pytest.mark.parametrize(
    ("method", "axis"), covering(["average", "min", "max", "dense", "ordinal"], [None, 0, 1, -1], least=8)
)
def test_ranks_are_scipy_s(method: str, axis: int | None, rng: np.random.Generator) -> None:
    x = rng.integers(0, 4, size=(5, 6)) / 2
    expected = scipy.stats.rankdata(x, method, axis=axis)
    for way in (lambda f: f, tracer.jit):
        np.testing.assert_array_equal(way(lambda x: rankdata(x, method, axis=axis))(x), expected)
    x[1, 2] = np.nan
    np.testing.assert_array_equal(rankdata(x, method, axis=axis), scipy.stats.rankdata(x, method, axis=axis))


def test_ranks_of_nothing_and_of_one() -> None:
    assert rankdata(np.zeros(0)).shape == (0,)
    assert rankdata(np.asarray(3)).tolist() == [1.0]
    with pytest.raises(errors.ArgumentError, match=r"^rankdata at test_ranks.py:.* no such method"):
        rankdata(np.ones(2), "mean")
    with pytest.raises(errors.DTypeError, match=r"^rankdata at test_ranks.py:.* takes real numbers"):
        rankdata(np.ones(2) * 1j)


def test_the_error_of_means_is_scipy_s(rng: np.random.Generator) -> None:
    x = rng.normal(size=(5, 6))
    x[0, 1] = np.nan
    for options in ({}, {"axis": 1, "ddof": 0}, {"axis": None}, {"nan_policy": "omit"}):
        np.testing.assert_allclose(sem(x, **options), scipy.stats.sem(x, **options), rtol=1e-13)
    assert sem(x, 1, keepdims=True).shape == (5, 1)
