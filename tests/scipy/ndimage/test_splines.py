"""Splines through the elements of arrays, beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import errors
from tracer.scipy import ndimage

MODES = ("mirror", "constant", "grid-constant", "wrap", "grid-wrap", "nearest", "reflect", "grid-mirror")
REFLECTED = ("nearest", "reflect", "grid-mirror")


@pytest.mark.parametrize(("order", "mode", "count"), covering(range(6), MODES, (1, 2, 3, 7, 40), least=30))
def test_coefficients_are_scipy_s(order: int, mode: str, count: int, rng: np.random.Generator) -> None:
    count = max(count, 40) if mode in REFLECTED else count  # SciPy approximates these ends of short axes
    x = rng.normal(size=(count, 3))
    found = ndimage.spline_filter1d(x, order, 0, mode)
    np.testing.assert_allclose(found, scipy.ndimage.spline_filter1d(x, order, 0, mode=mode), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("order", "mode", "dtype"),
    covering(range(2, 6), ["mirror", "reflect", "grid-wrap"], ["float32", "float64", "complex128"], least=12),
)
def test_splines_go_through_the_elements(order: int, mode: str, dtype: Any, rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 4)).astype(dtype)
    at = np.meshgrid(np.arange(3.0), np.arange(4.0), indexing="ij")
    found = ndimage.map_coordinates(x, at, order, mode)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found, x, atol=50 * np.finfo(dtype).eps)


def test_coefficients_are_filtered_once_for_many_reads(rng: np.random.Generator) -> None:
    x, at = rng.normal(size=(5, 6)), [rng.uniform(0, 4, size=7)] * 2
    c = ndimage.spline_filter(x)
    np.testing.assert_allclose(c, scipy.ndimage.spline_filter(x), atol=1e-12)
    once = ndimage.map_coordinates(c, at, 3, "mirror", prefilter=False)
    np.testing.assert_allclose(once, scipy.ndimage.map_coordinates(x, at, mode="mirror"), atol=1e-12)
    np.testing.assert_array_equal(ndimage.map_coordinates(x, at, mode="mirror"), once)


def test_unsigned_integers_are_held_in_their_range() -> None:
    step = np.array([0, 0, 0, 255, 255, 255], np.uint8)  # a cubic spline goes below 0 and above 255 beside the step
    expected = scipy.ndimage.zoom(step, 3)
    assert ndimage.zoom(step, 3).tolist() == expected.tolist()
    assert {0, 255} <= set(expected.tolist())


def test_constants_are_rounded_for_integers() -> None:
    assert ndimage.shift(np.array([5, 6]), 1, cval=0.62).tolist() == [1, 5]


def test_gradients_by_the_elements_and_by_the_places(rng: np.random.Generator) -> None:
    x, at = tnp.asarray(rng.normal(size=6)), tnp.asarray(rng.uniform(0.1, 4.9, size=4))
    for order, mode in ((3, "mirror"), (2, "grid-wrap")):
        tracer.test_util.check_grads(
            lambda x, at, order=order, mode=mode: ndimage.map_coordinates(x, [at], order, mode), (x, at), 2
        )


def test_wrong_orders_and_modes_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match=r"^spline_filter at test_splines.py:\d+: order is an integer from"):
        ndimage.spline_filter(np.ones(3), 7)
    with pytest.raises(errors.ArgumentError, match=r"^spline_filter1d at .*: no such mode\n  got 'edge'"):
        ndimage.spline_filter1d(np.ones(3), mode="edge")
