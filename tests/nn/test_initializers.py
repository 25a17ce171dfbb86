"""Initializers draw JAX's numbers, and say what does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
from tests.nn.reference_cases import PLAIN, SHAPES
from tracer import errors
from tracer.nn import initializers

STORED = json.loads((Path(__file__).parent / "reference.json").read_text(encoding="utf-8"))["initializers"]
KEY = tracer.random.key(7)


def drawn(label: str) -> Any:
    name, *rest = label.split()
    if name == "variance_scaling":
        mode, distribution, shape, dtype = rest
        return initializers.variance_scaling(1.5, mode, distribution)(KEY, SHAPES[shape], dtype)
    if rest == ["axes"]:
        return initializers.lecun_normal(in_axis=(0, 1), out_axis=2)(KEY, (3, 2, 4), "float32")
    return getattr(initializers, name)(*PLAIN.get(name, ()))(KEY, SHAPES[rest[0]], "float32")


@pytest.mark.parametrize("label", STORED)
def test_numbers_are_jax_s(label: str) -> None:
    expected = np.asarray(STORED[label])
    found = drawn(label)
    if np.asarray(found).dtype.kind == "c":
        expected = expected[0] + 1j * expected[1]
    np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-6, atol=1e-6)


def test_the_dtype_is_that_of_the_call_then_of_the_initializer_then_the_default() -> None:
    make = initializers.normal(dtype="float32")
    assert make(KEY, (2,)).dtype == "float32"
    assert make(KEY, (2,), "bfloat16").dtype == "bfloat16"
    assert initializers.normal()(KEY, 2).dtype == "float64"
    with tracer.config.using(default_float="float32"):
        assert initializers.he_normal()(KEY, (2, 2)).dtype == "float32"
    assert initializers.zeros(KEY, (2,), "int32").tolist() == [0, 0]
    assert initializers.ones(KEY, (2,)).tolist() == [1.0, 1.0]


def test_initializers_are_traced_and_batched() -> None:
    keys = tracer.random.split(KEY, 3)
    make = initializers.glorot_uniform()
    found = tracer.jit(tracer.vmap(lambda key: make(key, (2, 3), "float32")))(keys)
    for i in range(3):
        np.testing.assert_allclose(found[i], make(keys[i], (2, 3), "float32"), rtol=1e-6)


def test_what_does_not_fit_is_told() -> None:
    with pytest.raises(errors.ShapeError, match=r"weights have an input axis.*\n  got the shape \(3,\)\n  help: name"):
        initializers.he_normal()(KEY, (3,))
    with pytest.raises(errors.ArgumentError, match=r"^variance_scaling at test_initializers.py:.* no such mode\n"):
        initializers.variance_scaling(1.0, "fan", "normal")
    with pytest.raises(errors.ArgumentError, match=r"^variance_scaling at .*: no such distribution\n"):
        initializers.variance_scaling(1.0, "fan_in", "gauss")
