"""Filters of images beside SciPy's: every mode, both parities of windows, origins, and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import tracer
import tracer.numpy as tnp
from tracer import errors
from tracer.scipy import ndimage

MODES = ("reflect", "constant", "nearest", "mirror", "wrap")
W = np.array([[1.0, -2.0, 0.5], [0.3, 4.0, 2.0]])
CALLS = [
    ("correlate", (W,), {"origin": (0, -1)}), ("convolve", (W,), {"origin": (-1, 1)}), ("convolve", (W,), {}),
    ("correlate1d", ([1.0, 2.0, 3.0, 4.0],), {"axis": 0, "origin": 1}), ("convolve1d", ([1.0, 2.0, 3.0, 4.0],), {}),
    ("convolve1d", ([1.0, 2.0, 3.0],), {"origin": -1}), ("gaussian_filter", (0.8,), {}),
    ("gaussian_filter", ((0.6, 0.4),), {"order": (1, 2), "truncate": 3.0}), ("uniform_filter", (3,), {}),
    ("uniform_filter", ((2, 4),), {"origin": (0, -1)}), ("prewitt", (), {"axis": 0}), ("sobel", (), {}),
    ("laplace", (), {}), ("gaussian_laplace", (0.7,), {}), ("minimum_filter", (3,), {}),
    ("maximum_filter", ((2, 3),), {"origin": (-1, 1)}), ("median_filter", (3,), {}), ("median_filter", ((2, 2),), {}),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CALLS)))
def test_values_are_scipy_s(case: int, rng: np.random.Generator) -> None:
    name, arguments, options = CALLS[case]
    x = rng.normal(size=(6, 5))
    for mode in MODES:
        expected = getattr(scipy.ndimage, name)(x, *arguments, mode=mode, cval=0.7, **options)
        found = getattr(ndimage, name)(x, *arguments, mode=mode, cval=0.7, **options)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_dtypes_batches_and_gradients(rng: np.random.Generator) -> None:
    x = tnp.asarray(rng.normal(size=(4, 5)))
    for name, arguments, options in CALLS:

        def f(x: Any, name: str = name, arguments: Any = arguments, options: Any = options) -> Any:
            return getattr(ndimage, name)(x, *arguments, **options)

        assert f(x.astype("float32")).dtype == np.float32
        np.testing.assert_allclose(tracer.vmap(f)(x[None]), f(x)[None], rtol=1e-12, atol=1e-14)
    for name in ("gaussian_filter", "median_filter", "maximum_filter"):
        tracer.test_util.check_grads(lambda x, name=name: getattr(ndimage, name)(x, 3), (x[:2],), 1)
    whole = rng.integers(0, 50, size=(5, 6))
    np.testing.assert_array_equal(ndimage.correlate(whole, W), scipy.ndimage.correlate(whole, W))
    assert ndimage.median_filter(whole, 3).dtype == whole.dtype
    assert ndimage.uniform_filter(np.ones((1, 1)), 3).tolist() == [[1.0]]
    assert ndimage.uniform_filter(np.ones((0, 2)), 3).shape == (0, 2)


def test_wrong_calls_are_refused() -> None:
    x = np.ones((3, 3))
    with pytest.raises(errors.ArgumentError, match=r"^laplace at test_filters.py:.*: no such mode\n  got 'grid-wrap'"):
        ndimage.laplace(x, "grid-wrap")
    with pytest.raises(errors.ShapeError, match="weights have as many axes"):
        ndimage.correlate(x, np.ones(3))
    with pytest.raises(errors.ArgumentError, match="origins lie within them"):
        ndimage.minimum_filter(x, 3, origin=2)
    with pytest.raises(errors.ShapeError, match="one for each axis"):
        ndimage.uniform_filter(x, (3, 3, 3))


def test_medians_of_every_size_are_scipy_s(rng: np.random.Generator) -> None:
    for shape, size in (((7, 5), 3), ((30,), 7), ((9, 8), (3, 4)), ((6, 5), (1, 3)), ((200, 170), 5), ((3, 4, 5), 3)):
        for image in (rng.normal(size=shape), rng.integers(0, 4, shape)):
            found = tracer.jit(lambda x, size=size: ndimage.median_filter(x, size))(image)
            assert np.array_equal(found, scipy.ndimage.median_filter(image, size))
    assert np.isnan(ndimage.median_filter(np.array([0.0, np.nan, 2.0, 3.0, 4.0]), 3)[:3]).all()
