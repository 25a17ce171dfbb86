"""lax's functions: NumPy arrays go in, arrays come out, JAX's names are there."""

from __future__ import annotations

import numpy as np

import tracer
from tests.grids import each
from tracer import lax


def test_numpy_arrays_are_taken_alone_and_in_lists() -> None:
    x = np.arange(3.0)
    assert lax.add(x, x).tolist() == [0.0, 2.0, 4.0]
    assert lax.concatenate([x, x], 0).shape == (6,)
    assert lax.select(x > 1, x, -x).tolist() == [0.0, -1.0, 2.0]


def test_numbers_alone_give_arrays() -> None:
    assert isinstance(lax.sin(1.0), tracer.Array)
    assert float(lax.add(1.0, 2.0)) == 3.0


def test_numbers_alone_are_taken_by_what_makes_others_beside_them() -> None:
    for x in (2.0, np.float32(2), np.float16(2), np.complex64(2)):
        result = lax.reciprocal(x)
        assert (result.dtype, result.weak_type, result.tolist()) == (np.asarray(x).dtype, type(x) is float, 0.5)
    like = lax.full_like(np.float32(2), 1)
    assert (like.dtype, like.shape, like.tolist()) == (np.float32, (), 1.0)
    assert lax.full_like(2.0, 3, shape=(2,)).tolist() == [3.0, 3.0]


def test_slices_of_one_axis_take_numpy_arrays() -> None:
    x = np.arange(12.0).reshape(3, 4)
    start = np.int8(1)
    np.testing.assert_array_equal(lax.index_in_dim(x, 1, 1), x[:, 1:2])
    np.testing.assert_array_equal(lax.dynamic_slice_in_dim(x, start, 2, 1), x[:, 1:3])
    np.testing.assert_array_equal(lax.dynamic_index_in_dim(x, start), x[1:2])
    np.testing.assert_array_equal(lax.dynamic_update_slice_in_dim(x, x[:1], start, 0), x[[0, 0, 2]])
    np.testing.assert_array_equal(lax.dynamic_update_index_in_dim(x, x[0], start, 0), x[[0, 0, 2]])
    np.testing.assert_array_equal(lax.dynamic_update_index_in_dim(x[0], 7, start, 0), [0.0, 7.0, 2.0, 3.0])
    np.testing.assert_array_equal(lax.broadcast(x[0], (2,)), x[[0, 0]])
    keys, values = lax.sort_key_val(-x[0], x[0])
    assert (keys.tolist(), values.tolist()) == ([-3.0, -2.0, -1.0, 0.0], [3.0, 2.0, 1.0, 0.0])


@each("name", lax.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(lax, name) is not None


def test_slices_of_one_axis() -> None:
    x = np.arange(12.0).reshape(3, 4)
    array = tracer.numpy.asarray(x)
    np.testing.assert_array_equal(np.asarray(lax.index_in_dim(array, -1, 1)), x[:, -1:])
    np.testing.assert_array_equal(np.asarray(lax.dynamic_slice_in_dim(array, 3, 2, axis=1)), x[:, 2:4])
    np.testing.assert_array_equal(np.asarray(lax.dynamic_index_in_dim(array, 1, keepdims=False)), x[1])
    updated = lax.dynamic_update_index_in_dim(array, array[0], 2, 0)
    np.testing.assert_array_equal(np.asarray(updated)[2], x[0])
