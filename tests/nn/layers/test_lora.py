"""LoRA: the layer as it was at first, trained alone, and merged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.nn.torch_numbers import numbers
from tracer import errors, nn, random

KEY = random.key(0)
X = np.asarray(numbers("x", (6, 4)), "float32")


def tuned(linear: Any, **options: Any) -> Any:
    layer = nn.LoRA(linear, 2, key=KEY, **options)
    return layer.replace(b=tnp.asarray(numbers("b", layer.b.shape), "float32"))


def test_it_begins_as_the_layer_and_adds_a_product_of_low_rank() -> None:
    linear = nn.Linear(4, 3, key=KEY)
    np.testing.assert_array_equal(nn.LoRA(linear, 2, key=KEY)(X), linear(X))
    layer = tuned(linear, alpha=3.0)
    expected = linear(X) + 1.5 * X @ (np.asarray(layer.b) @ np.asarray(layer.a)).T
    np.testing.assert_allclose(layer(X), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer.merged()(X), expected, rtol=1e-5, atol=1e-6)
    assert nn.count(layer.merged()) == nn.count(linear) == nn.count(layer, "frozen")
    assert tuned(nn.Linear(4, 3, bias=False, key=KEY)).merged().bias is None


def test_gradients_are_of_the_correction_alone() -> None:
    grads = tracer.grad(lambda m: tnp.square(m(X)).sum())(tuned(nn.Linear(4, 3, key=KEY)))
    assert grads.linear.weight is grads.linear.bias is None
    assert np.abs(grads.a).max() > 0 < np.abs(grads.b).max()


def test_queries_of_a_transformer_are_tuned_and_merged() -> None:
    keys = nn.Keys(KEY)
    model = nn.TransformerEncoder(4, 2, 2, hidden=8, stacked=False, key=next(keys))
    changed = nn.at(model, "**.attention.q").map(lambda linear: nn.LoRA(linear, 1, key=next(keys)))
    x = X[None]
    np.testing.assert_array_equal(changed(x), model(x))
    assert nn.count(changed) == nn.count(model) + 2 * (4 + 4 - 20)
    assert changed.blocks[0].attention.cache(1, 3).k.dtype == "float32"
    only = nn.at(changed, lambda path, part: hasattr(part, "dtype") and ".q." not in path).freeze()
    assert nn.count(only) == 2 * 8
    one = nn.at(changed, nn.LoRA).map(lambda layer: layer.replace(b=tnp.ones_like(layer.b)))
    whole = nn.at(one, nn.LoRA).map(nn.LoRA.merged)
    np.testing.assert_allclose(whole(x), one(x), rtol=1e-5, atol=1e-6)
    assert repr(whole) == repr(model)


def test_other_layers_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match="takes a Linear and a rank"):
        nn.LoRA(nn.Dropout(0.5), 2, key=KEY)
    with pytest.raises(errors.ArgumentError, match="got rank=0"):
        nn.LoRA(nn.Linear(2, 2, key=KEY), 0, key=KEY)
