"""What random calls found beside NumPy: infinities and NaN at knots, nothing at all, values that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer.errors import ArgumentError, DTypeError, IndexingError, OutOfBoundsError, ShapeError

KNOTS = np.array([0.0, 1.0, 2.0])
AT = np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, np.nan])


@pytest.mark.parametrize("run", [lambda f: f, tracer.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "values",
    [
        [3.0, np.nan, 5.0], [-np.inf, np.inf, np.inf], [3.0, -np.inf, 5.0], [np.inf, np.inf, 1.0], [np.nan, 4.0, 4.0],
        [0.1, 0.3, 0.7],
    ],
)  # fmt: skip
def test_knots_have_their_values_whatever_is_beside_them(values: Any, run: Any) -> None:
    found = run(lambda x: tnp.interp(x, KNOTS, np.array(values)))(AT)
    np.testing.assert_allclose(found, np.interp(AT, KNOTS, values), rtol=1e-15)


def test_slopes_at_knots_are_those_to_the_right_and_the_last_one_to_the_left() -> None:
    """As JAX has them; 0 beyond the ends."""
    slope = tracer.vmap(tracer.grad(lambda x: tnp.interp(x, KNOTS, np.array([3.0, 4.0, 6.0]))))
    np.testing.assert_array_equal(slope(np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])), [0, 1, 1, 2, 2, 2, 0])
    by_values = tracer.jacobian(lambda f: tnp.interp(np.array([0.0, 1.0, 1.25, 2.0]), KNOTS, f))(np.ones(3))
    np.testing.assert_array_equal(by_values, [[1, 0, 0], [0, 1, 0], [0, 0.75, 0.25], [0, 0, 1]])


def test_places_are_real() -> None:
    for x, knots in ((1j, KNOTS), (1.0, KNOTS + 0j)):
        with pytest.raises(DTypeError, match=r"^interp at .*: x and xp must be real"):
            tnp.interp(x, knots, KNOTS)
    assert tnp.interp(0.5, KNOTS, KNOTS + 1j) == 0.5 + 1j


@each(
    ("call", "error", "text"),
    [
        (lambda: tnp.insert(tnp.arange(3), 0, 1j), DTypeError, "insert at .*: complex numbers do not become real ones"),
        (
            lambda: tnp.insert(tnp.arange(3), -4, 1),
            OutOfBoundsError,
            "index -4 is out of bounds for axis 0 with size 3",
        ),
        (lambda: tnp.insert(tnp.zeros(0), -1, 1), OutOfBoundsError, "index -1 is out of bounds for axis 0 with size 0"),
        (lambda: tnp.ediff1d(tnp.asarray([True, False])), DTypeError, "ediff1d at .* is not defined on bool"),
        (lambda: tnp.full((2,), [[1, 2], [3, 4]]), ShapeError, "full at .*: the value must broadcast to the shape"),
        (lambda: tnp.full_like(tnp.zeros(2), [1, 2, 3]), ShapeError, r"full_like at .*: shapes \[3\], \[2\] do not"),
        (lambda: tnp.full_like(tnp.zeros(2, "uint8"), -1), DTypeError, "full_like at .*: the integer -1 does not fit"),
    ],
)
def test_what_numpy_refuses_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{text}"):
        call()


@each(
    "call",
    [
        lambda p: p.insert(p.arange(3), 3, 9), lambda p: p.insert(p.arange(3), [-3, -1, 3], 9),
        lambda p: p.insert(p.zeros(0), 0, 1), lambda p: p.ediff1d(p.zeros(0)), lambda p: p.ediff1d(p.asarray(5.0)),
        lambda p: p.linalg.norm(p.zeros((3, 0)), 1), lambda p: p.linalg.norm(p.zeros((0, 3)), 2),
        lambda p: p.linalg.matrix_power(p.full((2, 2), p.inf), 0), lambda p: p.ix_([], [1, 0])[0],
        lambda p: p.linalg.matrix_power(p.ones((3, 2, 2), bool), 0), lambda p: p.vander(p.asarray([True, False])),
        lambda p: p.polyval(p.ones((2, 3)), 2.0),
        lambda p: p.round(p.asarray([complex(np.nan, np.inf), complex(np.inf, -12.0), 26 - 14j]), -1),
        lambda p: p.full_like(p.zeros(2, p.uint8), 1.7), lambda p: p.full((2, 3), [1, 2, 3]),
    ],
)  # fmt: skip
def test_values_and_dtypes_are_numpys(call: Any) -> None:
    found, expected = call(tnp), np.asarray(call(np))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


X = tnp.ones((2, 3))
WRONG: dict[str, Any] = {
    "repeat": (lambda: tnp.repeat(X, [1, 2, 3, 4], axis=1), ShapeError, "takes one count, or one for each"),
    "repeat of floats": (lambda: tnp.repeat(X, [1.0, 2.0], axis=0), DTypeError, "counts are integers"),
    "roll": (lambda: tnp.roll(X, (1, 2), (0, 1, 0)), ShapeError, "takes one shift, or one for each"),
    "polyval": (lambda: tnp.polyval(2.0, X), ShapeError, "the coefficients need an axis"),
    "trim_zeros": (lambda: tnp.trim_zeros(X[0], 1), ArgumentError, "trim"),
    "compress": (lambda: tnp.compress(X > 0, X), ShapeError, "the condition is a vector"),
    "histogramdd": (lambda: tnp.histogramdd(X, [2, 2]), ShapeError, "bins must have an entry for each of the 3"),
    "histogramdd of a range": (lambda: tnp.histogramdd(X, 2, [(0, 1)]), ShapeError, "range must have an entry for"),
    "ravel_multi_index": (lambda: tnp.ravel_multi_index((1, 2, 3), (4, 5)), ShapeError, "a coordinate and a mode"),
    "result_type": (lambda: tnp.result_type(np.array(["a"])), DTypeError, "dtype"),
    "promote_types": (lambda: tnp.promote_types(np.zeros(1, "M8[s]"), "f4"), DTypeError, "dtype"),
    "transpose": (lambda: tnp.transpose(X, 1), ShapeError, "name every axis once"),
    "convolve": (lambda: tnp.convolve(X[0], X[0], X[0]), ArgumentError, 'mode is "full", "same" or "valid"'),
    "arange": (lambda: tnp.arange(X[0]), ArgumentError, "its bounds are single numbers"),
    "indexing": (lambda: X.copy().__setitem__("a", 1.0), IndexingError, "an index is an integer"),
    "indexing by at": (lambda: X.at["a"].set(1.0), IndexingError, "an index is an integer"),
}  # fmt: skip


@each("name", WRONG)
def test_mistakes_are_told_of_the_function(name: str) -> None:
    call, error, text = WRONG[name]
    with pytest.raises(error, match=rf"^{name.split()[0]} at test_odd_inputs\.py:\d+.*{text}"):
        call()
