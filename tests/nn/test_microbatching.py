"""Gradients part by part are those of the whole batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors, nn, random

RNG = np.random.default_rng(0)
X, LABELS = RNG.normal(size=(12, 4)), RNG.integers(-1, 3, 12)
KEY = random.key(0)
MODEL = nn.cast(nn.MLP([4, 8, 3], key=KEY), "float64")


def loss(model: Any, x: Any, labels: Any) -> Any:
    return nn.cross_entropy(model(x), labels, ignore=-1).sum(), (labels >= 0).sum()


@pytest.mark.parametrize("n", [1, 3, 12])
def test_parts_of_different_weight_give_the_gradient_of_the_whole_batch(n: int) -> None:
    def mean(model: Any) -> Any:
        total, weight = loss(model, X, LABELS)
        return total / weight

    expected = tracer.value_and_grad(mean)(MODEL)
    found = tracer.jit(nn.microbatches(loss, n))(MODEL, X, LABELS)
    assert tracer.tree.structure(found) == tracer.tree.structure(expected)
    for one, other in zip(tracer.tree.leaves(found), tracer.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


def test_gradients_of_half_precision_are_added_in_single() -> None:
    weights = {"w": tnp.ones(1, "bfloat16")}
    x = np.ones((1024, 1), "float32")

    def f(weights: Any, x: Any) -> Any:
        return (weights["w"] * x.astype("bfloat16")).astype("float32").sum(), len(x)

    value, gradients = nn.microbatches(f, 1024)(weights, x)
    assert gradients["w"].dtype == "bfloat16"
    assert [float(value), float(gradients["w"][0])] == [1.0, 1.0]  # a sum in bfloat16 would stop at 256


def test_state_goes_from_part_to_part_and_keys_are_split() -> None:
    model = nn.Sequential(nn.BatchNorm(4, dtype="float64"), nn.Dropout(0.5))

    def f(model: Any, x: Any, key: Any, scale: Any) -> Any:
        copy = model.training(key)
        y = scale * copy(x)
        return ((y**2).sum(), len(x)), copy.inference()

    (value, new), gradients = tracer.jit(nn.microbatches(f, 3, has_aux=True))(model, X, KEY, 2.0)
    total, expected = 0.0, model
    for part, key in zip(np.split(X, 3), random.split(KEY, 3), strict=True):
        (one, _), expected = f(expected, part, key, 2.0)
        total += float(one)
    np.testing.assert_allclose(value, total / 12, rtol=1e-12)
    np.testing.assert_allclose(new.layers[0].running_var, expected.layers[0].running_var, rtol=1e-12)
    assert gradients.layers[0].running_var is None


def test_batches_that_do_not_divide_are_refused() -> None:
    with pytest.raises(errors.ShapeError) as caught:
        nn.microbatches(loss, 5)(MODEL, X, LABELS)
    assert "the first axis is divided into 5 equal parts\n  got f64[12,4]\n  help: a batch of a multiple" in str(
        caught.value
    )
    with pytest.raises(errors.ArgumentError, match="n is positive"):
        nn.microbatches(loss, 0)
