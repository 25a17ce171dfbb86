"""Images moved, scaled and turned, beside SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import errors
from tracer.scipy import ndimage

MODES = ("constant", "nearest", "wrap", "mirror", "reflect", "grid-constant", "grid-wrap")
MATRIX = np.array([[0.9137, 0.3071, -1.2213], [-0.4171, 1.1393, 2.3177]])
CALLS: list[Any] = [
    lambda m, x, **o: m.shift(x, (1.3, -2.21), **o),
    lambda m, x, **o: m.shift(x, -7.6, **o),
    lambda m, x, **o: m.zoom(x, (1.7, 0.63), **o),
    lambda m, x, **o: m.zoom(x, 2.2, grid_mode=True, **o),
    lambda m, x, **o: m.rotate(x, 33.0, **o),
    lambda m, x, **o: m.rotate(x, -201.0, axes=(0, 1), reshape=False, **o),
    lambda m, x, **o: m.affine_transform(x, MATRIX, **o),
    lambda m, x, **o: m.affine_transform(x, MATRIX[:, :2], 0.37, output_shape=(9, 2), **o),
    lambda m, x, **o: m.affine_transform(x, [0.7, 1.31], (1.13, -2.2), **o),
]


@pytest.mark.filterwarnings("ignore:It is recommended to use mode")
@pytest.mark.parametrize(("call", "mode", "order"), covering(range(len(CALLS)), MODES, range(6), least=20))
def test_values_are_scipy_s(call: int, mode: str, order: int, rng: np.random.Generator) -> None:
    long = order > 1 and mode in ("reflect", "nearest")  # SciPy's filters approximate these ends of short axes
    shapes = ((40, 48), (37, 41)) if long else ((6, 8), (5, 1))
    for image in (rng.normal(size=shapes[0]), rng.integers(-99, 99, size=shapes[1])):
        found = CALLS[call](ndimage, image, order=order, mode=mode, cval=3)
        expected = CALLS[call](scipy.ndimage, image, order=order, mode=mode, cval=3)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, atol=1e-11)
    if order < 4:  # splines of higher degrees differ in the number of terms alone
        compiled = tracer.jit(lambda x: CALLS[call](ndimage, x, order=order, mode=mode, cval=3))(image)
        np.testing.assert_allclose(compiled, expected, atol=1e-11)


def test_quarter_turns_are_exact_and_planes_are_of_any_axes(rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 4, 5))
    for turns in range(-5, 5):
        assert np.array_equal(ndimage.rotate(x, 90.0 * turns, order=1), np.rot90(x, turns))
    for axes in ((0, 2), (2, 1), (-1, 0)):
        np.testing.assert_allclose(
            ndimage.rotate(x, 40, axes, order=1, cval=9), scipy.ndimage.rotate(x, 40, axes, order=1, cval=9), atol=1e-12
        )


def test_empty_and_thin_images() -> None:
    assert ndimage.zoom(np.ones((0, 3)), 2, order=1).shape == (0, 6)
    assert ndimage.zoom(np.ones((2, 3)), 0.1, order=1).shape == (0, 0)
    assert ndimage.shift(np.ones((1, 1)), 0.0, order=1).tolist() == [[1]]
    assert ndimage.rotate(np.ones((0, 3)), 30, order=1, reshape=False).shape == (0, 3)
    assert ndimage.shift(np.asarray([1 + 1j, 2]), 0.5, order=1, cval=1j).tolist() == [1j, 1.5 + 0.5j]


def test_integers_are_known_under_jit() -> None:
    x = np.arange(12.0).reshape(3, 4)
    for call in (lambda x: ndimage.zoom(x, 2, order=1), lambda x: ndimage.rotate(x, 30, order=1)):
        np.testing.assert_allclose(tracer.jit(call)(x), call(x), atol=1e-12)


def test_traced_shifts_angles_and_matrices_have_derivatives(rng: np.random.Generator) -> None:
    x = tnp.asarray(rng.normal(size=(5, 6)))

    @tracer.jit
    def moved(x: Any, by: Any, angle: Any, matrix: Any) -> Any:
        turned = ndimage.rotate(ndimage.shift(x, by, order=1), angle, reshape=False, order=1)
        return ndimage.affine_transform(turned, matrix, order=1, mode="mirror")

    given = (x, tnp.asarray([0.3, 1.2]), tnp.asarray(17.0), tnp.asarray(MATRIX))
    tracer.test_util.check_grads(moved, given, 1)
    lanes = tracer.vmap(moved, in_axes=(None, None, 0, None))(*given[:2], tnp.asarray([17.0, 90.0]), given[3])
    np.testing.assert_allclose(lanes[0], moved(*given), atol=1e-12)


def test_what_does_not_fit_is_told() -> None:
    image = np.ones((2, 3))
    with pytest.raises(errors.ArgumentError, match=r"^shift at test_geom.*: order is an integer from 0 to 5\n  got 6"):
        ndimage.shift(image, 1.0, order=6)
    with pytest.raises(errors.ArgumentError, match=r"zoom at .*: no such mode"):
        ndimage.zoom(image, 2, order=1, mode="edge")
    with pytest.raises(errors.ShapeError, match="one for each of 2 axes"):
        ndimage.shift(image, [1.0, 2, 3], order=1)
    with pytest.raises(errors.ArgumentError, match="axes are two different axes"):
        ndimage.rotate(image, 1.0, axes=(0, -2), order=1)
    with pytest.raises(errors.ArgumentError, match="depends on a traced angle\n  help: reshape=False"):
        tracer.jit(lambda a: ndimage.rotate(image, a, order=1))(1.0)
    with pytest.raises(errors.ArgumentError, match="depend on traced values"):
        tracer.jit(lambda a: ndimage.zoom(image, a, order=1))(1.0)
    with pytest.raises(errors.ShapeError, match=r"matrix is \[2, 2\], or \[2\]"):
        ndimage.affine_transform(image, np.eye(4), order=1)
