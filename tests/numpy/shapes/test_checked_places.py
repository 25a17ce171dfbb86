"""Places and numbers that are looked at: coordinates out of bounds, weights of counts, values without order."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer.errors import DTypeError, OutOfBoundsError

WAYS: dict[str, Callable[..., Any]] = {"eager": lambda f: f, "jit": tracer.jit}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", [6, 7, -7])
def test_flat_places_out_of_bounds_raise_with_the_users_line(way: str, place: int) -> None:
    f = WAYS[way](lambda i: tnp.unravel_index(i, (2, 3)))
    with pytest.raises(OutOfBoundsError, match=f"index {place} is out of bounds .* size 6, at test_checked_places.py:"):
        f(tnp.asarray([0, place]))
    rows, columns = f(tnp.asarray([5, -1]))
    assert (rows.tolist(), columns.tolist()) == ([1, 1], [2, 2])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_coordinates_out_of_bounds_raise_with_the_users_line(way: str, order: str) -> None:
    f = WAYS[way](lambda i, j: tnp.ravel_multi_index((i, j), (2, 3), order=order))
    with pytest.raises(OutOfBoundsError, match="expected 0 to 2 for axis 1 with size 3, got 3\n"):
        f(tnp.asarray([0, 1]), tnp.asarray([2, 3]))
    with pytest.raises(OutOfBoundsError) as caught:
        f(tnp.asarray([0, -1]), tnp.asarray([2, 2]))
    said = re.sub(r"py:\d+", "py:N", str(caught.value))
    assert said == (
        "ravel_multi_index at test_checked_places.py:N: a coordinate is out of bounds\n"
        "  expected 0 to 1 for axis 0 with size 2, got -1\n"
        '  help: coordinates count from 0; mode="wrap" takes them modulo the size, and mode="clip" the nearest one'
    )
    found = f(tnp.asarray([0, 1]), tnp.asarray([[2], [1]]))
    np.testing.assert_array_equal(
        found, np.ravel_multi_index((np.array([0, 1]), np.array([[2], [1]])), (2, 3), order=order)
    )


@pytest.mark.parametrize("way", WAYS)
def test_each_row_of_a_batch_has_its_places(way: str) -> None:
    f = WAYS[way](tracer.vmap(lambda i: tnp.stack(tnp.unravel_index(i, (2, 3)))))
    assert f(tnp.arange(6)).tolist() == np.stack(np.unravel_index(np.arange(6), (2, 3)), -1).tolist()


@pytest.mark.parametrize(
    ("weights", "dtype"), [([True, True], "float64"), ([1, 2], "int64"), (np.float32([1, 2]), "float32")]
)
def test_sums_of_weights_have_their_dtype(weights: Any, dtype: str) -> None:
    found = tnp.bincount(tnp.asarray([1, 1]), weights=weights)
    assert found.dtype == dtype
    assert found.tolist() == np.bincount([1, 1], weights=weights).tolist()


def test_complex_values_lie_in_no_bin() -> None:
    for values, bins in (([1j], [0.0, 1.0]), ([1.0], [0.0, 1j])):
        with pytest.raises(DTypeError, match=r"digitize at test_checked_places.py:\d+ takes real numbers"):
            tnp.digitize(tnp.asarray(values), tnp.asarray(bins))


@pytest.mark.parametrize("places", [[1.0, 0.0], [1j, 0]])
def test_choices_are_counted_by_integers(places: Any) -> None:
    with pytest.raises(DTypeError, match=r"choose at test_checked_places.py:\d+: a must hold integers"):
        tnp.choose(tnp.asarray(places), [1, 2])


def test_slopes_and_integrals_have_the_dtype_of_values_and_places_together() -> None:
    values = tnp.asarray([0, 1, 4], "int8")
    assert tnp.gradient(values, tnp.asarray([0, 1, 2])).dtype == np.float64
    assert tnp.gradient(values, tnp.asarray([0, 1, 2], "float16")).dtype == np.float16
    assert tnp.gradient(values).dtype == np.float32
    assert tnp.trapezoid(values, tnp.asarray([0, 1, 2])).dtype == np.float64
    assert tnp.gradient(values, tnp.asarray([0, 2, 4])).tolist() == np.gradient([0, 1, 4], [0, 2, 4]).tolist()
