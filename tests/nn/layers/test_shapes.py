"""Layers of other shapes: dtypes, vmap, and refused arguments. test_torch_layers.py has values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import errors, nn

X = np.random.default_rng(0).normal(size=(2, 4, 3, 5))
LAYERS = [
    nn.Flatten(), nn.Upsample(2), nn.Upsample(1.5, "bilinear"), nn.PixelShuffle(2), nn.Pad(1, "reflect"), nn.PReLU(4),
    nn.Lambda(tnp.square),
]  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS, ids=[type(layer).__name__ for layer in LAYERS])
def test_layers_keep_dtypes_and_take_empty_and_mapped_batches(layer: Any) -> None:
    wide = nn.cast(layer, "float64")
    expected = np.asarray(wide(X))
    for dtype in ("float32", "bfloat16"):
        found = nn.cast(layer, dtype)(tnp.asarray(X, dtype))
        assert found.dtype == dtype
        np.testing.assert_allclose(found.astype("float64"), expected, rtol=0.02, atol=0.02)
    assert wide(X[:0]).shape == (0, *expected.shape[1:])
    np.testing.assert_allclose(tracer.vmap(wide)(X[None]), expected[None], rtol=1e-14)
    np.testing.assert_allclose(tracer.jit(wide)(X), expected, rtol=1e-14)
    tracer.test_util.check_grads(wide, (X[:1],), order=2, modes=("fwd", "rev"))


def test_prelu_has_pytorchs_derivatives_at_zero() -> None:
    layer = nn.PReLU(dtype="float64")
    assert tracer.grad(layer)(0.0) == 0.25
    assert tracer.grad(lambda layer: layer(-2.0))(layer).weight.tolist() == [-2.0]


def test_pad_fills_the_last_axes_that_it_has_widths_for() -> None:
    np.testing.assert_array_equal(
        nn.Pad(((1, 2),), value=7.0)(X), np.pad(X, [(0, 0)] * 3 + [(1, 2)], constant_values=7)
    )
    np.testing.assert_array_equal(nn.Pad(1)(X), np.pad(X, [(0, 0)] * 2 + [(1, 1)] * 2))


@each(
    ("call", "expected"),
    [
        (
            lambda: nn.Upsample(2)(tnp.ones((3, 4))),
            ("Upsample takes [b, c, *s] with one or more sizes\n  got f64[3,4]{at}\n"
            "  help: x[None] has an axis of one example"),
        ),
        (
            lambda: nn.Upsample(2, "bilinear")(tnp.ones((3, 4, 5))),
            "Upsample takes [b, c, *s] with 2 sizes\n  got f64[3,4,5]{at}\n  help: x[None] has an axis of one example",
        ),
        (lambda: nn.Upsample(0), "nn.Upsample{at}: scales are positive numbers\n  got 0"),
        (
            lambda: nn.Upsample(2, "cubic"),
            'nn.Upsample{at}: mode is "nearest", "linear", "bilinear" or "trilinear"\n  got \'cubic\'',
        ),
        (lambda: nn.PixelShuffle(2)(tnp.ones((1, 3, 2, 2))),
            "PixelShuffle takes [b, c * 4, h, w]\n  got f64[1,3,2,2]{at}"),
        (lambda: nn.PReLU(3)(tnp.ones((2, 4), "float32")), "PReLU takes [b, 3, ...]\n  got f32[2,4]{at}"),
        (lambda: nn.Flatten(3)(tnp.ones((2, 4))), "Flatten: there is no axis 3\n  got f64[2,4]{at}"),
    ],
)  # fmt: skip
def test_refused_arguments_say_what_fits(call: Any, expected: str) -> None:
    with pytest.raises(errors.TracerError) as caught:
        call()
    assert re.sub(r",? at test_\w+\.py:\d+", "{at}", str(caught.value)) == expected
