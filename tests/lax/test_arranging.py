"""lax's shapes and places, and the windows of convolutions."""

from __future__ import annotations

import numpy as np
import pytest

import tracer
from tracer import lax
from tracer.errors import ArgumentError, ShapeError

X = np.arange(24.0).reshape(2, 3, 4)


def test_axes_are_merged() -> None:
    assert lax.collapse(X, 1).shape == (2, 12)
    assert lax.collapse(X, -2, -1).shape == (2, 3, 4)
    assert lax.collapse(X, 0, 2).tolist() == X.reshape(6, 4).tolist()
    with pytest.raises(ShapeError, match="at least one axis"):
        lax.collapse(X, 2, 1)


@pytest.mark.parametrize("reps", [(1, 2, 3), (2, 1, 1), (0, 1, 2)])
def test_tiles_are_numpy_s(reps: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(np.asarray(lax.tile(X, reps)), np.tile(X, reps))


def test_tile_counts_every_axis() -> None:
    with pytest.raises(ShapeError, match="one count of 0 or more an axis"):
        lax.tile(X, (2, 2))


def test_stacks_come_apart_again() -> None:
    parts = lax.unstack(X, 1)
    assert [p.tolist() for p in parts] == [X[:, i].tolist() for i in range(3)]
    np.testing.assert_array_equal(np.asarray(lax.stack(parts, -2)), X)
    with pytest.raises(ArgumentError, match="one array or more"):
        lax.stack([])


def test_places_along_several_axes_are_taken() -> None:
    i, j = np.array([1, 0, 1]), np.array([3, 0, 2])
    np.testing.assert_array_equal(np.asarray(lax.index_take(X, [i, j], (0, 2))), X[i, :, j])
    np.testing.assert_array_equal(np.asarray(lax.index_take(X, [j, i], (2, 0))), X[i, :, j])


def test_subtraction_at_places_is_differentiated() -> None:
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    places = np.array([[1], [1], [0]])

    def total(u: object) -> object:
        return (lax.scatter_sub(np.ones(3), places, u, numbers) * np.array([1.0, 2.0, 3.0])).sum()

    assert tracer.grad(total)(np.ones(3)).tolist() == [-2.0, -2.0, -1.0]


def test_approximate_top_k_is_exact() -> None:
    x = np.random.default_rng(0).standard_normal((3, 20))
    values, places = lax.approx_min_k(x, 4)
    np.testing.assert_array_equal(np.asarray(values), np.sort(x)[:, :4])
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(places), 1), np.sort(x)[:, :4])


SETTINGS = [
    (("NCHW", "OIHW", "NCHW"), (2, 1), ((1, 0), (0, 2)), (1, 2), (2, 1)),
    (("NHWC", "HWIO", "NHWC"), (1, 1), "SAME", None, None),
    (("HWNC", "IOHW", "NHWC"), (1, 2), "VALID", None, (1, 2)),
]


@pytest.mark.parametrize(("numbers", "strides", "padding", "base", "spread"), SETTINGS)
def test_patches_by_weights_are_the_convolution(numbers, strides, padding, base, spread) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(1)
    canonical, window = rng.standard_normal((2, 3, 7, 8)), (3, 2)
    weights = rng.standard_normal((5, 3, *window))
    lhs = canonical.transpose(["NCHW".index(c) for c in numbers[0]])
    rhs = weights.transpose(["OIHW".index(c) for c in numbers[1]])
    expected = np.asarray(lax.conv_general_dilated(lhs, rhs, strides, padding, base, spread, numbers))
    patches = lax.conv_general_dilated_patches(lhs, window, strides, padding, base, spread, numbers)
    back = [numbers[2].index(c) for c in "NCHW"]
    columns = np.asarray(patches).transpose(back)
    found = np.einsum("ok,nkhw->nohw", weights.reshape(5, -1), columns)
    np.testing.assert_allclose(found, expected.transpose(back), rtol=1e-12, atol=1e-12)

    places = columns.shape[2:]
    everywhere = np.broadcast_to(weights.reshape(5, -1, 1, 1), (5, 18, *places))
    local = lax.conv_general_dilated_local(
        lhs, everywhere.transpose(["OIHW".index(c) for c in numbers[1]]), strides, padding, window, base, spread,
        numbers,
    )  # fmt: skip
    np.testing.assert_allclose(np.asarray(local), expected, rtol=1e-12, atol=1e-12)


def test_shapes_of_convolutions() -> None:
    for numbers, strides, padding, base, _ in SETTINGS[1:]:
        assert base is None
        lhs = [{"N": 2, "C": 3, "H": 7, "W": 8}[c] for c in numbers[0]]
        rhs = [{"O": 5, "I": 3, "H": 3, "W": 2}[c] for c in numbers[1]]
        found = lax.conv_general_shape_tuple(lhs, rhs, strides, padding, numbers)
        result = lax.conv_general_dilated(np.zeros(lhs), np.zeros(rhs), strides, padding, dimension_numbers=numbers)
        assert found == result.shape


def test_the_platform_is_the_cpu() -> None:
    with pytest.raises(ArgumentError, match="no function for this platform"):
        lax.platform_dependent(1.0, tpu=lambda x: x)
