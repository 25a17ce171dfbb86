"""Convolutions, correlations and trends beside SciPy's: every mode, both parities, real and complex, and gradients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.signal

import tracer
import tracer.numpy as tnp
from tracer import errors
from tracer.scipy import signal

SIZES = [
    ((7,), (3,)),
    ((7,), (4,)),
    ((3,), (6,)),
    ((1,), (1,)),
    ((5, 6), (3, 2)),
    ((2, 3), (4, 5)),
    ((4, 3, 5), (2, 3, 1)),
]
MODES = ("full", "same", "valid")


def operands(sizes: Any, rng: np.random.Generator, kind: str) -> list[Any]:
    made = [rng.normal(size=size) for size in sizes]
    if kind == "complex":
        made = [x + 1j * rng.normal(size=x.shape) for x in made]
    return [x.astype("float32") if kind == "single" else x for x in made]


@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve"])
@pytest.mark.parametrize("kind", ["real", "complex", "single"])
def test_values_are_scipy_s(name: str, kind: str, rng: np.random.Generator) -> None:
    for sizes, mode in itertools.product(SIZES, MODES):
        x, y = operands(sizes, rng, kind)
        found = getattr(signal, name)(x, y, mode)
        expected = getattr(scipy.signal, name)(x, y, mode)
        assert found.shape == expected.shape
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-4 if kind == "single" else 1e-10, atol=1e-5)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_both_methods_have_one_result(name: str, kind: str, rng: np.random.Generator) -> None:
    for sizes, mode in itertools.product([*SIZES, ((300,), (41,)), ((20, 31), (30, 7))], ("full", "same")):
        x, y = operands(sizes, rng, kind)
        direct, by_fft = (getattr(signal, name)(x, y, mode, method) for method in ("direct", "fft"))
        np.testing.assert_allclose(by_fft, direct, rtol=1e-10, atol=1e-12)


def test_transforms_are_of_short_factors() -> None:
    """A length of 2 * 1021 would be slow: the next one of small factors is taken."""
    text = str(tracer.jit(signal.fftconvolve).lower(np.ones(1000), np.ones(1043)).program())
    assert text.count("length=2048") == 3


@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_in_the_plane_what_is_beyond_the_ends_is_scipy_s(
    name: str, boundary: str, kind: str, rng: np.random.Generator
) -> None:
    for sizes, mode in itertools.product([((5, 6), (3, 2)), ((4, 4), (2, 4)), ((3, 3), (3, 3))], MODES):
        x, y = operands(sizes, rng, kind)
        for fill in (0, 2.5):
            found = getattr(signal, name)(x, y, mode, boundary, fill)
            expected = getattr(scipy.signal, name)(x, y, mode, boundary, fill)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_valid_takes_the_larger_one_second(rng: np.random.Generator) -> None:
    x, y = operands(((2, 3), (4, 5)), rng, "complex")
    for name in ("convolve2d", "correlate2d", "convolve", "correlate"):
        found, expected = (getattr(module, name)(x, y, "valid") for module in (signal, scipy.signal))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_fftconvolve_along_some_axes(rng: np.random.Generator) -> None:
    x, y = operands(((3, 4, 5), (3, 2, 5)), rng, "real")
    for axes, shape in ((1, y.shape), ((0, 1), (2, 2, 5)), ((1, 2), (3, 2, 3)), (2, (3, 4, 2)), (2, (1, 4, 2))):
        other = rng.normal(size=shape)
        found, expected = (m.fftconvolve(x, other, "same", axes=axes) for m in (signal, scipy.signal))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_integers_become_floats() -> None:
    assert signal.convolve([1, 2, 3], [0, 1]).dtype == "float64"


@pytest.mark.parametrize("call", [
    lambda x, y: signal.convolve(x, y, "same"), lambda x, y: signal.correlate(x, y, "valid"),
    lambda x, y: signal.correlate2d(x, y, "full", "wrap"), lambda x, y: signal.fftconvolve(x, y, "full", 1),
    lambda x, y: signal.detrend(x, 0, bp=2) * y[:1].sum(),
])  # fmt: skip
def test_gradients_compiled_and_in_batches(call: Any, rng: np.random.Generator) -> None:
    x, y = (tnp.asarray(v) for v in operands(((4, 5), (4, 3)), rng, "real"))

    def total(x: Any, y: Any) -> Any:
        found = call(x, y)
        return (found * np.cos(np.arange(found.size)).reshape(found.shape)).sum()

    tracer.test_util.check_grads(total, (x, y), order=1, modes=["fwd", "rev"])
    many = tracer.jit(tracer.vmap(tracer.grad(total)))(tnp.stack([x, 2 * x]), tnp.stack([y, y]))
    np.testing.assert_allclose(many[1], tracer.grad(total)(2 * x, y), rtol=1e-10, atol=1e-12)


def test_detrend_is_scipy_s(rng: np.random.Generator) -> None:
    x = rng.normal(size=(9, 4)) + np.arange(9)[:, None]
    for options in ({}, {"axis": 0}, {"axis": 0, "bp": [3, 6]}, {"type": "constant"}, {"axis": 0, "bp": [8]}):
        np.testing.assert_allclose(signal.detrend(x, **options), scipy.signal.detrend(x, **options), atol=1e-12)


def test_what_does_not_fit_is_told() -> None:
    x = np.ones((2, 3))
    with pytest.raises(errors.ShapeError, match=r"^convolve at test_convolution.py:.*: both must have elements"):
        signal.convolve(x, np.ones(3))
    with pytest.raises(errors.ShapeError, match="one must fit into the other"):
        signal.convolve(x, np.ones((3, 2)), "valid")
    with pytest.raises(errors.ArgumentError, match='mode is "full", "same" or "valid"'):
        signal.convolve(x, x, "circular")
    with pytest.raises(errors.ArgumentError, match="no such boundary"):
        signal.convolve2d(x, x, boundary="mirror")
    with pytest.raises(errors.ShapeError, match="axes that are not convolved broadcast"):
        signal.fftconvolve(x, np.ones((3, 3)), axes=1)
