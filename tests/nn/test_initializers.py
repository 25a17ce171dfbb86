"""Initializers draw JAX's numbers, and say what does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
from tests.grids import each
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


@each("label", STORED)
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


def test_orthogonal_weights_have_orthonormal_columns_or_rows() -> None:
    key = tracer.random.key(5)
    for shape, axis in (((3, 4, 5), -1), ((4, 2), -1), ((2, 6), 0), ((2, 6), 1)):
        found = np.moveaxis(np.asarray(initializers.orthogonal(2.0, axis)(key, shape)), axis, -1)
        flat = found.reshape(-1, found.shape[-1])
        flat = flat if flat.shape[0] >= flat.shape[1] else flat.T
        np.testing.assert_allclose(flat.T @ flat, 4 * np.eye(flat.shape[1]), atol=1e-12)
    kernel = np.asarray(initializers.delta_orthogonal()(key, (3, 4, 2, 5)))
    np.testing.assert_allclose(kernel[1, 1] @ kernel[1, 1].T, np.eye(2), atol=1e-12)
    assert np.count_nonzero(kernel) == np.count_nonzero(kernel[1, 1])
    with pytest.raises(errors.ShapeError, match=r"^initializers\.delta_orthogonal at .* takes shapes \[\.\.\., n, m\]"):
        initializers.delta_orthogonal()(key, (3, 4, 2))
    with pytest.raises(errors.ShapeError, match=r"^initializers\.orthogonal at .* takes shapes of two axes or more"):
        initializers.orthogonal()(key, (3,))


def test_orthogonal_samples_are_jaxs() -> None:
    """The only factor with a positive diagonal of R, whatever computes it."""
    normal = np.asarray(tracer.random.normal(tracer.random.key(3), (2, 4, 3)))
    q, r = np.linalg.qr(normal)
    expected = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
    np.testing.assert_allclose(tracer.random.orthogonal(tracer.random.key(3), 4, (2,), m=3), expected, atol=1e-14)
    wide = tracer.random.orthogonal(tracer.random.key(3), 3, (2,), m=4)
    np.testing.assert_allclose(wide, expected.mT, atol=1e-14)


@pytest.mark.parametrize("name", ["glorot_normal", "he_uniform", "lecun_normal"])
@pytest.mark.parametrize("shape", [(4, 0), (0, 4), (3, 0, 2), (0, 0)])
def test_weights_without_elements_are_drawn(name: str, shape: tuple[int, ...]) -> None:
    assert getattr(initializers, name)()(tracer.random.key(0), shape).shape == shape
