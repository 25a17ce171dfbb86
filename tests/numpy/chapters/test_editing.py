"""Copies with elements inserted, deleted and padded: traced places, several values, empty axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer.errors import OutOfBoundsError, ShapeError, TracerArrayError
from tracer.test_util import check_grads

M = np.arange(6.0).reshape(2, 3)
PLACES: dict[str, tuple[Any, Any, Any, int | None]] = {
    "a column of two": (M, 1, [1.0, 2.0], 1), "a row": (M, 1, [1.0, 2.0, 3.0], 0),
    "one row for two places": (M, [0, 1], [1.0, 2.0, 3.0], 0), "columns": (M, [0, 1], [7.0, 8.0], 1),
    "columns of their own": (M, [2, 0], [[7.0, 8.0], [5.0, 6.0]], 1),
    "two columns": (M, 2, [[1.0, 2.0], [3.0, 4.0]], 1),
    "several at a place": (M, 1, [7.0, 8.0, 9.0], None), "several at a listed place": (M, [1], [7.0, 8.0, 9.0], None),
    "columns at a listed place": (M, [1], [[7.0], [8.0]], 1), "behind the last": (M, [6, 6], [7.0, 8.0], None),
    "from the end": (M, [-1, 0], [9.0, 8.0], None), "none": (M, np.zeros(0, int), [], None),
}  # fmt: skip


@pytest.mark.parametrize("case", PLACES)
def test_insert_at_known_and_traced_places_is_numpys(case: str) -> None:
    x, places, values, axis = PLACES[case]
    expected = np.insert(x, places, values, axis)
    np.testing.assert_array_equal(tnp.insert(x, places, values, axis), expected)
    compiled = tracer.jit(lambda x, i, v: tnp.insert(x, i, v, axis))
    np.testing.assert_array_equal(compiled(x, tnp.asarray(places), tnp.asarray(values)), expected)


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"insert at"):
        tnp.insert(M, [0, 1], [7.0, 8.0], axis=0)


def test_traced_places_are_checked_and_differentiated_around() -> None:
    with pytest.raises(
        OutOfBoundsError, match=r"index 6 is out of bounds for axis 0 with size 5, at test_editing\.py:"
    ):
        tracer.jit(lambda x, i: tnp.insert(x, i, 1.0))(tnp.arange(5.0), 6)
    compiled = tracer.jit(lambda x, v, i: tnp.insert(x, i, v) ** 2)
    check_grads(lambda x, v: compiled(x, v, tnp.asarray([3, 1])), (tnp.arange(5.0), tnp.asarray([7.0, 8.0])), order=1)
    rows = tracer.vmap(lambda i: tnp.insert(tnp.arange(3), i, 9))(tnp.arange(4))
    assert rows.tolist() == [np.insert(np.arange(3), i, 9).tolist() for i in range(4)]


@pytest.mark.parametrize("places", [2, -1, [3, -4], [0, 1, 2, 3, 4], np.zeros(0, int)], ids=str)
def test_delete_at_traced_places_is_numpys(places: Any) -> None:
    compiled = tracer.jit(lambda x, i: tnp.delete(x, i, assume_unique_indices=True))
    np.testing.assert_array_equal(compiled(tnp.arange(5.0), tnp.asarray(places)), np.delete(np.arange(5.0), places))


def test_delete_of_traced_places_says_what_it_needs() -> None:
    with pytest.raises(TracerArrayError, match="help: assume_unique_indices=True, if they are distinct"):
        tracer.jit(tnp.delete)(tnp.arange(5.0), tnp.asarray([1, 1]))
    with pytest.raises(TracerArrayError, match="masks must be concrete"):
        tracer.jit(tnp.delete)(tnp.arange(2.0), tnp.asarray([True, False]))
    with pytest.raises(OutOfBoundsError, match="index 5 is out of bounds for axis 0 with size 5"):
        tracer.jit(tnp.delete)(tnp.arange(5.0), 5)


@pytest.mark.parametrize("mask", [True, [True, False], np.ones((5, 1), bool)], ids=str)
def test_delete_by_a_mask_of_another_shape_is_refused(mask: Any) -> None:
    with pytest.raises(ShapeError, match=r"^delete at .*: a mask has one element for each slice along the axis\n  got"):
        tnp.delete(tnp.arange(5.0), mask)


@pytest.mark.parametrize("k", [0, 1, -2, 3, -9, 2**40])
def test_diagonals_may_be_traced(k: int) -> None:
    for name in ("eye", "tri"):
        compiled = tracer.jit(lambda k, name=name: getattr(tnp, name)(3, 4, k))
        np.testing.assert_array_equal(compiled(k), getattr(np, name)(3, 4, k))


MODES = (
    "constant", "edge", "wrap", "reflect", "symmetric", "linear_ramp", "maximum", "minimum", "mean", "median", "empty",
)  # fmt: skip


@each("mode", MODES)
def test_pads_beside_empty_axes(mode: str) -> None:
    assert tnp.pad(np.zeros((0, 3)), [(0, 0), (1, 2)], mode=mode).shape == (0, 6)
    assert tnp.pad(np.zeros((2, 0)), [(1, 2), (0, 0)], mode=mode).shape == (5, 0)
    if mode not in ("constant", "empty"):
        with pytest.raises(ShapeError, match="an axis without elements has nothing to pad with"):
            tnp.pad(np.zeros((0, 3)), [(1, 0), (1, 2)], mode=mode)


@pytest.mark.parametrize("mode", ["mean", "median", "maximum"])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int16"])
def test_pads_of_integers_are_exact(mode: str, dtype: str) -> None:
    x = (np.iinfo(dtype).max - np.asarray([5, 3, 1])).astype(dtype)
    np.testing.assert_array_equal(tnp.pad(x, 2, mode=mode), np.pad(x, 2, mode=mode))


X = np.asarray([1 + 2j, -3j, 1000 + 3j, 1 + 1j, 2 + 3j, 0.5])
Y = np.asarray([1 - 2j, 2j, 1000 - 2j, 1 + 2j, -1e300, -0.25 + 9j])
LOGARITHMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "logaddexp": (np.exp, np.log), "logaddexp2": (lambda x: np.exp(x * np.log(2)), lambda x: np.log(x) / np.log(2)),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGARITHMS)
def test_logarithms_of_sums_of_complex_exponentials(name: str) -> None:
    exp, log = LOGARITHMS[name]
    top = np.maximum(X.real, Y.real)
    expected = log(exp(X - top) + exp(Y - top)) + top
    found = np.asarray(getattr(tnp, name)(X, Y))
    np.testing.assert_allclose(exp(found - top), exp(expected - top), rtol=1e-12)
    assert (np.abs(found.imag) <= np.pi / np.log(2 if name == "logaddexp2" else np.e) + 1e-12).all()
    check_grads(getattr(tnp, name), (X[[1, 3, 5]], Y[[1, 3, 5]]), order=2)


def test_no_samples_have_no_step() -> None:
    for count, endpoint in ((0, False), (0, True), (1, True), (1, False), (3, False)):
        _, step = tnp.linspace(-3, 5, count, endpoint=endpoint, retstep=True)
        np.testing.assert_equal(float(step), float(np.linspace(-3, 5, count, endpoint=endpoint, retstep=True)[1]))


def test_one_number_is_in_order() -> None:
    assert tnp.argsort(5.0).tolist() == np.argsort(5.0).tolist() == [0]
    assert tnp.asarray(5).argsort().tolist() == [0]


def test_indices_of_no_kind_are_index_errors_too() -> None:
    x = tnp.arange(3)
    for index in (np.zeros(0, float), 1.5, "a", tnp.asarray(1.0)):
        with pytest.raises(IndexError, match="indexing at"):
            x[index]


def test_keywords_that_others_lack_come_without_advice() -> None:
    with pytest.raises(TypeError, match=r"^sum at [^\n]* takes no axes=$"):
        tnp.sum(M, axes=0)
    with pytest.raises(TypeError, match=r"matmul at .* takes no axes=\n  help: matmul, .* moveaxis first"):
        tnp.matmul(M, M.T, axes=0)
