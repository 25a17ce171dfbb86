"""Normalisation layers: training copies, frozen and synchronised statistics, dtypes, refused inputs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import errors, nn, random

KEY = random.key(0)
X = np.random.default_rng(0).normal(size=(6, 4, 3))


def test_batch_statistics_are_written_in_training_copies_only() -> None:
    layer = nn.BatchNorm(4, dtype="float64")
    np.testing.assert_allclose(layer(X), X / np.sqrt(1 + 1e-5), rtol=1e-14)
    copy = layer.training()
    y = np.asarray(copy(X))
    np.testing.assert_allclose([y.mean((0, 2)), y.var((0, 2))], [[0] * 4, [1] * 4], atol=1e-4)
    written = copy.inference()
    np.testing.assert_allclose(written.running_mean, 0.1 * X.mean((0, 2)), rtol=1e-13)
    np.testing.assert_allclose(written.running_var, 0.9 + 0.1 * X.var((0, 2), ddof=1), rtol=1e-13)
    assert layer.running_mean.tolist() == [0] * 4


@pytest.mark.parametrize("where", ["", "running_mean"])
def test_frozen_statistics_are_used_and_not_written(where: str) -> None:
    model = nn.Sequential(nn.BatchNorm(4, dtype="float64"))
    frozen = nn.at(model, f"layers[0].{where}".rstrip(".")).freeze()
    copy = frozen.training(KEY)
    np.testing.assert_array_equal(copy(X), model(X))
    assert copy.inference().layers[0].running_mean.tolist() == [0] * 4


def test_synchronised_statistics_are_of_the_whole_batch() -> None:
    def step(layer: Any, x: Any) -> Any:
        copy = layer.training()
        return copy(x), copy.inference()

    parts = X.reshape(3, 2, 4, 3)
    joined = nn.BatchNorm(4, axis_name="devices", dtype="float64")
    expected, whole = step(nn.BatchNorm(4, dtype="float64"), X)
    y, written = tracer.vmap(step, axis_name="devices", in_axes=(None, 0))(joined, parts)
    np.testing.assert_allclose(y.reshape(X.shape), expected, rtol=1e-12, atol=1e-14)
    for found in written.running_var:
        np.testing.assert_allclose(found, whole.running_var, rtol=1e-12)


def test_running_statistics_without_a_momentum_are_means_over_batches() -> None:
    layer = nn.BatchNorm(4, momentum=None, dtype="float64")
    batches = [X, 2 * X + 1, X**2]
    for x in batches:
        copy = layer.training()
        copy(x)
        layer = copy.inference()
    axes = (0, *range(2, X.ndim))
    np.testing.assert_allclose(layer.running_mean, np.mean([x.mean(axes) for x in batches], 0), rtol=1e-13)
    np.testing.assert_allclose(layer.running_var, np.mean([x.var(axes, ddof=1) for x in batches], 0), rtol=1e-13)
    assert int(layer.num_batches_tracked) == 3


def test_running_statistics_have_no_derivative() -> None:
    def f(x: Any) -> Any:
        copy = nn.BatchNorm(4, dtype="float64").training()
        copy(x)
        return copy.inference().running_var.sum()

    assert not np.asarray(tracer.grad(f)(X)).any()


@pytest.mark.parametrize(
    "layer",
    [
        nn.BatchNorm(4), nn.BatchNorm(4, affine=False), nn.LayerNorm(3), nn.LayerNorm((4, 3), bias=False),
        nn.RMSNorm(3), nn.GroupNorm(2, 4), nn.InstanceNorm(4),
    ],
    ids=lambda layer: type(layer).__name__,
)  # fmt: skip
def test_statistics_of_half_precision_are_computed_in_single(layer: Any) -> None:
    x = (300 + X).astype("float16")  # its squares overflow
    for training in (False, True):
        used, half = (each.training() if training else each for each in (layer, nn.cast(layer, "float16")))
        expected = used(x.astype("float32"))
        found = half(x)
        assert found.dtype == "float16"
        np.testing.assert_allclose(found.astype("float32"), expected, rtol=1e-3, atol=2e-3)
    gradient = tracer.grad(lambda x: (layer(x) ** 2).sum())(x)
    assert gradient.dtype == "float16"
    assert np.isfinite(np.asarray(gradient)).all()
    if not isinstance(layer, nn.BatchNorm) or layer.weight is not None:
        layer(x.astype("float32"))
    assert layer(x[:0]).shape == (0, 4, 3)
    np.testing.assert_allclose(tracer.jit(layer)(x.astype("float32")), layer(x.astype("float32")), rtol=1e-5, atol=1e-5)


def test_spectral_norm_makes_the_greatest_singular_value_one() -> None:
    inner = nn.Linear(5, 4, dtype="float64", key=KEY)
    layer = nn.SpectralNorm(inner, key=random.key(1))
    for _ in range(30):
        copy = layer.training()
        copy(X[0, 0, [0, 1, 2, 0, 1]])
        layer = copy.inference()
    top = np.linalg.svd(inner.weight, compute_uv=False)[0]
    x = np.eye(5)
    np.testing.assert_allclose(layer(x) - inner.bias, (inner(x) - inner.bias) / top, rtol=1e-9)


def test_a_normalised_layer_stays_in_its_training_copy() -> None:
    class Noisy(nn.Module):
        def __init__(self) -> None:
            self.weight = tnp.ones((2, 2))
            self.drop = nn.Dropout(0.5)

        def __call__(self, x: Any) -> Any:
            return self.drop(x @ self.weight)

    layer = nn.WeightNorm(Noisy())
    x = np.ones((1, 100, 2))
    assert len(set(np.asarray(layer(x)).round(9).ravel().tolist())) == 1
    assert len(set(np.asarray(layer.training(KEY)(x)).round(9).ravel().tolist())) == 2


@each(
    ("call", "expected"),
    [
        (
            lambda: nn.BatchNorm(3)(tnp.ones((2, 5, 5, 3), "float32")),
            (
                "BatchNorm takes [b, 3, ...]\n  got f32[2,5,5,3]{at}\n"
                "  help: x.transpose(0, 3, 1, 2) has the features first"
            ),
        ),
        (
            lambda: nn.BatchNorm(3).training()(tnp.ones((1, 3), "float32")),
            (
                "BatchNorm takes more than one element of a feature in training\n  got f32[1,3]{at}\n"
                "  help: a greater batch, or freeze the layer"
            ),
        ),
        (
            lambda: nn.BatchNorm(3, affine=False)(tnp.ones((1, 3))),
            (
                "BatchNorm: the input is wider than the layer\n  expected float32, got f64[1,3]{at}\n"
                '  help: x.astype("float32"), or nn.cast(model, "float64")'
            ),
        ),
        (
            lambda: nn.LayerNorm(3)(tnp.ones((1, 5), "float32")),
            "LayerNorm takes [..., 3]\n  got f32[1,5]{at}\n  help: nn.LayerNorm(5)",
        ),
        (
            lambda: nn.LayerNorm(3)(tnp.ones((1, 3), "int32")),
            'LayerNorm takes floats\n  got i32[1,3]{at}\n  help: x.astype("float32")',
        ),
        (lambda: nn.GroupNorm(4, 6), "nn.GroupNorm{at}: groups must divide the features\n  got groups=4 for 6"),
        (
            lambda: nn.InstanceNorm(3)(tnp.ones((1, 3), "float32")),
            "InstanceNorm takes [b, 3, *s] with more than one position\n  got f32[1,3]{at}",
        ),
        (
            lambda: nn.WeightNorm(nn.Dropout()),
            (
                "nn.WeightNorm{at} takes a layer with an array weight of two axes or more\n"
                '  got Dropout(rate=0.5, axes=None)\n  help: name="weight_hh" names another attribute'
            ),
        ),
    ],
)
def test_refused_inputs_say_what_fits(call: Any, expected: str) -> None:
    with pytest.raises(errors.TracerError) as caught:
        call()
    assert re.sub(r",? at test_\w+\.py:\d+", "{at}", str(caught.value)) == expected
