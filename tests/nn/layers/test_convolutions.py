"""Convolutions: initial weights, dtypes, empty batches, vmap, second derivatives, and refused arguments."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors, nn, random

KEY = random.key(0)
X = np.linspace(-1, 1, 2 * 3 * 5 * 4).reshape(2, 3, 5, 4)


@pytest.mark.parametrize(("kind", "fan_in"), [(nn.Conv2d, 8 // 2 * 9), (nn.ConvTranspose2d, 16 // 2 * 9)])
def test_weight_and_bias_are_uniform_within_the_root_of_the_fan_in(kind: Any, fan_in: int) -> None:
    layer = kind(8, 16, 3, groups=2, key=KEY)
    bound = fan_in**-0.5
    for array, count in ((layer.weight, layer.weight.size), (layer.bias, 16)):
        drawn = np.asarray(array)
        assert drawn.size == count
        assert drawn.dtype == np.float32
        assert bound * (1 - 8 / count) < np.abs(drawn).max() <= bound
        assert abs(drawn.mean()) < 4 * bound / np.sqrt(3 * count)
        assert abs(drawn.var() * 3 / bound**2 - 1) < 4 * np.sqrt(0.8 / count)
    assert not np.intersect1d(layer.weight, layer.bias).size


@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
def test_narrower_inputs_are_promoted_and_wider_ones_refused(kind: Any) -> None:
    layer = kind(3, 2, 2, key=KEY)
    for dtype, expected in (("float32", "float32"), ("bfloat16", "float32"), ("uint8", "float32"), ("bool", "float32")):
        assert layer(X.astype(dtype)).dtype == expected
    half = nn.cast(layer, "bfloat16")
    found = half(tnp.asarray(X, "bfloat16"))
    assert found.dtype == "bfloat16"
    np.testing.assert_allclose(found.astype("float32"), layer(X.astype("float32")), atol=0.03)
    with pytest.raises(errors.DTypeError, match="the input is wider than the layer"):
        layer(X)
    with pytest.raises(errors.DTypeError, match="takes real numbers"):
        layer(X.astype("complex64"))


@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
def test_batches_may_be_empty_missing_or_mapped(kind: Any) -> None:
    layer = kind(3, 2, 2, dtype="float64", key=KEY)
    y = layer(X)
    assert layer(X[:0]).shape == (0, *y.shape[1:])
    np.testing.assert_allclose(layer(X[1]), y[1], rtol=1e-12)
    np.testing.assert_allclose(tracer.vmap(layer)(X), y, rtol=1e-13)
    layers = tracer.vmap(lambda key: kind(3, 2, 2, dtype="float64", key=key))(random.split(KEY, 3))
    assert tracer.vmap(lambda layer: layer(X))(layers).shape == (3, *y.shape)


def test_pairs_pad_each_side_by_its_own() -> None:
    conv = nn.Conv2d(3, 2, 2, padding=((1, 0), 2), dtype="float64", key=KEY)
    by_hand = np.pad(X, ((0, 0), (0, 0), (1, 0), (2, 2)))
    bare = conv.replace(padding=((0, 0), (0, 0)))
    np.testing.assert_allclose(conv(X), bare(by_hand), rtol=1e-13)


def test_a_transposed_convolution_is_the_derivative_of_the_convolution() -> None:
    conv = nn.Conv2d(3, 4, (2, 3), stride=(2, 1), padding=1, bias=False, dtype="float64", key=KEY)
    back = nn.ConvTranspose2d(
        4, 3, (2, 3), stride=(2, 1), padding=1, output_padding=(1, 0), bias=False, dtype="float64", key=KEY
    )
    back = back.replace(weight=conv.weight)
    y = conv(X)
    (expected,) = tracer.vjp(conv, tnp.asarray(X))[1](y)
    np.testing.assert_allclose(back(y), expected, rtol=1e-12)


def test_derivatives_of_second_order_agree_with_differences() -> None:
    layer = nn.Conv1d(1, 2, 2, padding=1, padding_mode="reflect", dtype="float64", key=KEY)

    def f(layer: Any, x: Any) -> Any:
        return tnp.tanh(layer(x)).sum()

    tracer.test_util.check_grads(f, (layer, X[:1, 0, :1]), order=2, modes=("fwd", "rev"))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: nn.Conv2d(3, 2, 3, key=KEY)(tnp.ones((8, 32, 32, 3), "float32")),
            (
                "Conv2d takes [b, 3, h, w]\n  got f32[8,32,32,3]{at}\n"
                "  help: x.transpose(0, 3, 1, 2) has the features first"
            ),
        ),
        (
            lambda: nn.Sequential(nn.Conv1d(1, 2, 3, key=KEY))(tnp.ones((8, 9), "float32")),
            "Conv1d .layers[0] takes [b, 1, t]\n  got f32[8,9]{at}\n  help: x[:, None] has an axis of one feature",
        ),
        (
            lambda: nn.Conv2d(3, 2, 3, key=KEY)(tnp.ones((8, 5, 7, 7), "float32")),
            (
                "Conv2d takes [b, 3, h, w]\n  got f32[8,5,7,7]{at}\n  help: the layer was made for 3 features: "
                "nn.Conv2d(5, ...)"
            ),
        ),
        (
            lambda: nn.Conv2d(3, 2, 3, padding=(0, 1), key=KEY)(tnp.ones((8, 3, 2, 1), "float32")),
            (
                "Conv2d: the window covers 3 elements of axis 2, which has 2\n  got f32[8,3,2,1]{at}\n"
                "  help: a smaller window, or more padding"
            ),
        ),
        (
            lambda: nn.Conv2d(3, 2, (3, 3, 3), key=KEY),
            "nn.Conv2d{at}: size is an integer from 1 up, or 2 of them\n  got (3, 3, 3)\n  help: size=(1, 1)",
        ),
        (
            lambda: nn.Conv2d(3, 2, 3, padding="same", stride=2, key=KEY),
            (
                'nn.Conv2d{at}: padding="same" is for strides of 1\n  got stride=(2, 2)\n'
                "  help: padding=size // 2 for odd sizes"
            ),
        ),
        (
            lambda: nn.Conv2d(3, 2, 3, padding="SAME", key=KEY),
            'nn.Conv2d{at}: padding by name is "same" or "valid"\n  got \'SAME\'',
        ),
        (
            lambda: nn.Conv1d(3, 2, 3, padding=(1, 2), key=KEY),
            (
                "nn.Conv1d{at}: padding is an integer from 0 up, or an integer or a pair for each of 1 axes\n"
                "  got (1, 2)\n"
                "  help: padding=((0, 1),) pads the end of every axis"
            ),
        ),
        (
            lambda: nn.Conv1d(3, 2, 3, padding=-1, key=KEY),
            (
                "nn.Conv1d{at}: padding is an integer from 0 up, or an integer or a pair for each of 1 axes\n  got -1\n"
                "  help: padding=((0, 1),) pads the end of every axis"
            ),
        ),
        (
            lambda: nn.Conv2d(4, 2, 3, groups=4, key=KEY),
            "nn.Conv2d{at}: groups must divide the features in and out\n  got groups=4 for 4 in and 2 out",
        ),
        (
            lambda: nn.Conv2d(4, 2, 3, padding_mode="symmetric", key=KEY),
            "nn.Conv2d{at}: padding_mode is one of zeros, reflect, replicate, circular\n  got 'symmetric'",
        ),
        (
            lambda: nn.ConvTranspose1d(4, 2, 3, stride=2, output_padding=2, key=KEY),
            (
                "nn.ConvTranspose1d{at}: output_padding must be less than the stride or the dilation\n"
                "  got output_padding=(2,) for stride=(2,), dilation=(1,)"
            ),
        ),
    ],
)
def test_refused_arguments_say_what_fits(call: Any, expected: str) -> None:
    with pytest.raises(errors.TracerError) as caught:
        call()
    assert re.sub(r",? at test_\w+\.py:\d+", "{at}", str(caught.value)) == expected
