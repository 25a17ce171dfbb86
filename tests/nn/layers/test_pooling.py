"""Pooling: ties, dtypes, empty and mapped batches, and refused arguments. test_torch_layers.py has values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import errors, nn

X = np.random.default_rng(0).normal(size=(2, 3, 6, 7))
LAYERS = [
    nn.MaxPool2d(2), nn.AvgPool2d(3, stride=2, padding=1), nn.AdaptiveMaxPool2d((2, 3)), nn.AdaptiveAvgPool2d(4),
    nn.GlobalAvgPool(), nn.GlobalMaxPool(),
]  # fmt: skip
NAMES = [type(layer).__name__ for layer in LAYERS]


def test_functions_pool_the_axes_that_they_have_sizes_for() -> None:
    np.testing.assert_array_equal(nn.max_pool(X, 2), nn.MaxPool2d(2)(X))
    np.testing.assert_array_equal(nn.avg_pool(X, (2,)), nn.AvgPool1d(2)(X.reshape(6, 6, 7)).reshape(2, 3, 6, 3))
    np.testing.assert_array_equal(nn.max_pool(X[0, 0, 0], (3,)), X[0, 0, 0, :6].reshape(2, 3).max(1))


@pytest.mark.parametrize("layer", LAYERS, ids=NAMES)
def test_pools_take_every_dtype_and_empty_and_mapped_batches(layer: Any) -> None:
    expected = np.asarray(layer(X))
    for dtype in ("float32", "bfloat16", "float16"):
        found = layer(tnp.asarray(X, dtype))
        assert found.dtype == dtype
        np.testing.assert_allclose(found.astype("float64"), expected, atol=0.02)
    is_max = "Max" in type(layer).__name__
    for dtype in ("int32", "uint8"):
        whole = (X * 9 % 50).astype(dtype)
        found = layer(whole)
        assert found.dtype == (dtype if is_max else "float64")
        np.testing.assert_allclose(np.asarray(found), layer(whole.astype("float64")), rtol=1e-14)
    assert layer(X[:0]).shape == (0, *expected.shape[1:])
    np.testing.assert_allclose(tracer.vmap(layer)(X[None]), expected[None], rtol=1e-14)
    np.testing.assert_allclose(tracer.jit(layer)(X), expected, rtol=1e-14)
    tracer.test_util.check_grads(layer, (X[:1, :1],), order=2, modes=("fwd", "rev"))


@pytest.mark.parametrize("layer", [nn.MaxPool2d(2), nn.AdaptiveMaxPool2d((4, 4))], ids=["MaxPool", "AdaptiveMaxPool"])
def test_of_equal_maxima_the_first_has_the_derivative(layer: Any) -> None:
    gradient = np.asarray(tracer.grad(lambda x: layer(x).sum())(np.zeros((1, 6, 6))))[0]
    starts = [0, 2, 4] if isinstance(layer, nn.MaxPool2d) else [0, 1, 3, 4]
    expected = np.zeros((6, 6))
    expected[np.ix_(starts, starts)] = 1
    np.testing.assert_array_equal(gradient, expected)


def test_the_first_maximum_is_first_in_the_order_of_rows() -> None:
    x = np.eye(3)[None, :, ::-1]  # of both ones in the first part, that of the first row
    gradient = tracer.grad(lambda x: nn.AdaptiveMaxPool2d(2)(x)[0, 0, 0] + nn.MaxPool2d(2)(x)[0, 0, 0])(x)
    part = np.array([[[0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]])
    of_part = tracer.grad(lambda x: nn.AdaptiveMaxPool2d(2)(x)[0, 0, 0])(part)
    assert gradient[0].tolist() == [[0, 0, 0], [0, 2, 0], [0, 0, 0]]
    assert of_part[0].tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_infinities_stay_in_their_part() -> None:
    x = np.array([[1.0, 2.0, np.inf, 4.0, 5.0]])
    assert nn.AdaptiveAvgPool1d(3)(x).tolist() == [[1.5, np.inf, 4.5]]
    assert nn.AdaptiveMaxPool1d(3)(-x).tolist() == [[-1.0, -2.0, -4.0]]
    assert nn.MaxPool1d(2, padding=1)(np.full((1, 2), -np.inf)).tolist() == [[-np.inf, -np.inf]]


@each(
    ("call", "expected"),
    [
        (
            lambda: nn.max_pool(tnp.ones((2, 3)), 2),
            "max_pool{at}: one size is for inputs [b, c, *s], sizes are for the last axes\n  got size=2 for f64[2,3]",
        ),
        (
            lambda: nn.avg_pool(tnp.ones((2, 3, 4)), 2, padding=2),
            ("nn.avg_pool{at}: padding is at most half the window\n  got padding=2 for windows of (2,)\n"
            "  help: more would make windows of padding alone"),
        ),
        (
            lambda: nn.Sequential(nn.MaxPool2d(5))(tnp.ones((2, 3, 4, 6))),
            ("MaxPool2d .layers[0]: the window covers 5 elements of axis 2, which has 4\n  got f64[2,3,4,6]{at}\n"
            "  help: a smaller window, or more padding"),
        ),
        (
            lambda: nn.AvgPool2d(2)(tnp.ones((3, 4))),
            "AvgPool2d takes [b, c, h, w]\n  got f64[3,4]{at}\n  help: or one example, [c, h, w]",
        ),
        (
            lambda: nn.AdaptiveAvgPool2d(0),
            ("nn.AdaptiveAvgPool2d{at}: output is an integer from 1 up, or 2 of them\n  got [0, 0]\n"
            "  help: output=(1, 1)"),
        ),
        (
            lambda: nn.AdaptiveAvgPool1d(2)(tnp.ones((3, 4, 0))),
            "AdaptiveAvgPool1d: there are no positions to pool\n  got f64[3,4,0]{at}",
        ),
        (lambda: nn.GlobalAvgPool()(tnp.ones((3, 4))),
            "GlobalAvgPool takes [b, c, *s] with one size or more\n  got f64[3,4]{at}"),
        (lambda: nn.max_pool(tnp.ones((2, 3, 4), "complex64"), 2), "max_pool{at} takes real numbers\n  got c64[2,3,4]"),
    ],
)  # fmt: skip
def test_refused_arguments_say_what_fits(call: Any, expected: str) -> None:
    with pytest.raises(errors.TracerError) as caught:
        call()
    assert re.sub(r",? at test_\w+\.py:\d+", "{at}", str(caught.value)) == expected


@pytest.mark.parametrize("count", [7, 32, 33, 40])
def test_few_and_many_uneven_parts_are_pooled_alike(count: int) -> None:
    """Slices up to 32 parts of an axis, gathers beyond; an equal element gives its derivative to the first."""
    x = np.random.default_rng(0).integers(0, 9, (2, 3, 47)).astype("float32")
    ends = [(part * 47 // count, -(-(part + 1) * 47 // count)) for part in range(count)]
    layers = nn.AdaptiveAvgPool1d(count), nn.AdaptiveMaxPool1d(count)
    both = tracer.jit(lambda x: [layer(x) for layer in layers])
    means, most = both(x)
    np.testing.assert_allclose(means, np.stack([x[..., a:b].mean(-1) for a, b in ends], -1), rtol=1e-6)
    np.testing.assert_array_equal(most, np.stack([x[..., a:b].max(-1) for a, b in ends], -1))
    expected = np.zeros_like(x)
    for a, b in ends:
        np.add.at(expected, (*np.ogrid[:2, :3], a + x[..., a:b].argmax(-1)), 1)
    np.testing.assert_array_equal(tracer.jit(tracer.grad(lambda x: layers[1](x).sum()))(x), expected)
