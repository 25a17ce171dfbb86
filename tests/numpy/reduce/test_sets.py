"""Sets and distinct elements with `size=`, compiled, against NumPy's filled up; their sizes unknown is an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer.errors import TracerArrayError

A = np.array([3, 1, 2, 3, 7, 1])
C = np.array([9, 3, 3, 1, 0])
NAMES = ("union1d", "intersect1d", "setdiff1d", "setxor1d")


def filled(found: Any, size: int, fill: Any) -> Any:
    return np.concatenate([found, np.full(max(size - len(found), 0), fill, found.dtype)])[:size]


PAIRS = [(A, C), (A, C[:0]), (A[:0], C), (A * 0.5, C * 0.5)]


@pytest.mark.parametrize(("name", "size", "pair"), covering(NAMES, [1, 3, 8], PAIRS, least=16), ids=str)
def test_compiled_sets_have_the_size_that_is_given(name: str, size: int, pair: Any) -> None:
    found = getattr(np, name)(*pair)
    ours = tracer.jit(lambda x, y: getattr(tnp, name)(x, y, size=size, fill_value=-1))(*pair)
    np.testing.assert_array_equal(np.asarray(ours), filled(found, size, -1))
    if len(found):
        least = tracer.jit(lambda x, y: getattr(tnp, name)(x, y, size=size))(*pair)
        np.testing.assert_array_equal(np.asarray(least), filled(found, size, found[0]))


def test_indices_of_an_intersection_are_filled_up_with_the_sizes() -> None:
    values, first, second = tracer.jit(lambda x, y: tnp.intersect1d(x, y, return_indices=True, size=4))(A, C)
    assert [list(map(int, part)) for part in (values, first, second)] == [[1, 3, 1, 1], [1, 0, 6, 6], [3, 1, 5, 5]]


@pytest.mark.parametrize("x", [A, np.array([2.0, np.nan, 0.0, np.nan, -0.0]), A > 2, A + 1j], ids=repr)
@pytest.mark.parametrize("size", [2, 7])
def test_compiled_unique_is_numpys_filled_up(x: Any, size: int) -> None:
    values, index, inverse, counts = np.unique(x, True, True, True)
    ours = tracer.jit(lambda x: tnp.unique(x, True, True, True, size=size))(x)
    expected = (filled(values, size, values[0]), filled(index, size, index[0]), inverse, filled(counts, size, 0))
    for got, wanted in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted)


def test_compiled_unique_rows_and_columns_are_numpys() -> None:
    x = np.array([[1, 2, 1], [0, 2, 0], [1, 2, 1]])
    for axis in (0, 1):
        values, index, inverse, counts = np.unique(x, True, True, True, axis=axis)
        ours = tracer.jit(lambda x, axis=axis: tnp.unique(x, True, True, True, axis=axis, size=2))(x)
        for got, wanted in zip(ours, (values, index, inverse.ravel(), counts), strict=True):
            np.testing.assert_array_equal(np.asarray(got), wanted)


@pytest.mark.parametrize("name", NAMES)
def test_a_compiled_set_without_a_size_is_an_error(name: str) -> None:
    with pytest.raises(TracerArrayError, match="size"):
        tracer.jit(getattr(tnp, name))(A, C)


def test_gradients_go_to_the_elements_that_were_taken() -> None:
    gradient = tracer.grad(lambda x: tnp.unique(x, size=2).sum())(tnp.asarray([3.0, 1.0, 2.0, 1.0]))
    assert gradient.tolist() == [0.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int32", "float64", "bool"])
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (3, 4), ()])
def test_distinct_elements_are_numpys(dtype: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).integers(0, 4, shape).astype(dtype)
    found = tnp.unique(tnp.asarray(values))
    np.testing.assert_array_equal(found, np.unique(values))
    assert (found.dtype, found.weak_type) == (values.dtype, False)
    assert str(tnp.unique(tnp.asarray(3)).type) == "i64[1]"
    assert tracer.jit(lambda x: tnp.unique(x, size=2))(tnp.asarray([3, 3, 1])).tolist() == [1, 3]
