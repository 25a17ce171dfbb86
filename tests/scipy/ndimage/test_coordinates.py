"""Images read between pixels, beside SciPy's in the modes that both mean alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import errors
from tracer.scipy.ndimage import map_coordinates

THEIRS = {
    "constant": "grid-constant",
    "wrap": "grid-wrap",
    "nearest": "nearest",
    "mirror": "mirror",
    "reflect": "reflect",
}


def places(shape: Any, rng: np.random.Generator) -> list[Any]:
    """Within, between, and far beyond the ends; never at halves, which SciPy rounds otherwise."""
    return [rng.uniform(-2 * n - 1, 3 * n + 1, size=(4, 25)).round(2) + 0.003 for n in shape]


@pytest.mark.parametrize(
    ("mode", "order", "shape"), covering(THEIRS, [0, 1], [(7,), (3, 5), (2, 3, 4), (1, 2)], least=14)
)
def test_values_are_scipy_s(mode: str, order: int, shape: Any, rng: np.random.Generator) -> None:
    image, at = rng.normal(size=shape), places(shape, rng)
    expected = scipy.ndimage.map_coordinates(image, at, order=order, mode=THEIRS[mode], cval=1.5)
    for way in (lambda f: f, tracer.jit):
        found = way(lambda image, at: map_coordinates(image, at, order, mode, 1.5))(image, at)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_integers_are_rounded_and_complex_images_are_taken() -> None:
    assert map_coordinates(np.asarray([0, 3]), [np.asarray([0.5, 0.25])], 1).tolist() == [2, 1]
    assert map_coordinates(np.asarray([0, 3]), [np.asarray([0.5, 1])], 0).tolist() == [3, 3]
    assert map_coordinates(np.asarray([0, 2j]), [np.asarray([0.5])], 1).tolist() == [1j]


def test_gradients_by_the_image_and_by_the_places(rng: np.random.Generator) -> None:
    image = tnp.asarray(rng.normal(size=(4, 5)))
    at = [tnp.asarray(rng.uniform(-1, 5, size=6)) for _ in range(2)]
    for mode in THEIRS:
        tracer.test_util.check_grads(
            lambda image, at, mode=mode: map_coordinates(image, at, 1, mode).sum(), (image, at), 1
        )


def test_what_does_not_fit_is_told() -> None:
    image = np.ones((2, 3))
    with pytest.raises(errors.ShapeError, match=r"^map_coordinates at test_coordinates.py:.* the number of coord"):
        map_coordinates(image, [np.ones(2)], 1)
    with pytest.raises(errors.ArgumentError, match="order is an integer from 0 to 5\n  got 6"):
        map_coordinates(image, [np.ones(2)] * 2, 6)
    with pytest.raises(errors.ArgumentError, match="no such mode\n  got 'edge'"):
        map_coordinates(image, [np.ones(2)] * 2, 1, "edge")
    with pytest.raises(errors.DTypeError, match="takes real numbers"):
        map_coordinates(image, [np.ones(2) * 1j] * 2, 1)
