"""lax's functions: NumPy arrays go in, arrays come out, JAX's names are there."""

from __future__ import annotations

import numpy as np
import pytest

import tracer
from tracer import lax


def test_numpy_arrays_are_taken_alone_and_in_lists() -> None:
    x = np.arange(3.0)
    assert lax.add(x, x).tolist() == [0.0, 2.0, 4.0]
    assert lax.concatenate([x, x], 0).shape == (6,)
    assert lax.select(x > 1, x, -x).tolist() == [0.0, -1.0, 2.0]


def test_numbers_alone_give_arrays() -> None:
    assert isinstance(lax.sin(1.0), tracer.Array)
    assert float(lax.add(1.0, 2.0)) == 3.0


@pytest.mark.parametrize("name", lax.__all__)
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
