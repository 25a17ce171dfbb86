"""What lax's functions of several operands take beside each other, and the errors where they do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import lax
from tracer.errors import ArgumentError, DTypeError, ShapeError

SINGLE, INTEGERS = np.array([1.0, 2.0, 3.0], np.float32), np.array([1, 2, 3], np.int32)
ARITHMETIC = [lax.add, lax.sub, lax.mul, lax.div, lax.max, lax.min, lax.rem, lax.eq, lax.lt, lax.ge]


@each("function", ARITHMETIC, ids=lambda f: f.__name__)
def test_a_numpy_scalar_keeps_its_dtype(function: Callable[..., Any]) -> None:
    for call in (lambda: function(SINGLE, np.float64(1)), lambda: function(np.int64(1), INTEGERS)):
        with pytest.raises(DTypeError, match="operands must have equal dtypes"):
            call()
    np.testing.assert_array_equal(function(SINGLE, np.float32(2)), function(SINGLE, np.full(3, 2, np.float32)))
    with pytest.raises(DTypeError, match="operands must have equal dtypes"):
        function(x=SINGLE, y=np.float64(1))


@each("function", ARITHMETIC, ids=lambda f: f.__name__)
def test_a_python_number_of_a_greater_kind_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(DTypeError, match=r"got i32\[3\] and f64\*\[3\]"):
        function(INTEGERS, 2.0)
    assert np.asarray(function(INTEGERS, 2)).shape == (3,)


def test_cases_to_choose_among_have_one_dtype() -> None:
    which = np.array([True, False, True])
    for call in (
        lambda: lax.select(which, SINGLE, np.float64(2)),
        lambda: lax.select(pred=which, on_true=SINGLE, on_false=np.float64(2)),
        lambda: lax.select(which, INTEGERS, 2.5),
        lambda: lax.select_n(which, SINGLE, np.float64(2)),
        lambda: lax.select_n(which.astype(int), SINGLE, np.float64(2), SINGLE),
        lambda: lax.select_n(which, np.float32(1), np.float64(2)),
    ):
        with pytest.raises(DTypeError, match="operands must have equal dtypes"):
            call()
    np.testing.assert_array_equal(lax.select(which, SINGLE, np.float32(7)), [1, 7, 3])
    np.testing.assert_array_equal(lax.select_n(which, SINGLE, tnp.float32(7)), [7, 2, 7])
    np.testing.assert_array_equal(lax.select(np.bool_(True), on_true=SINGLE, on_false=7), SINGLE)
    assert lax.select(which, SINGLE, 7).dtype == np.float32


def test_an_array_without_axes_is_spread() -> None:
    np.testing.assert_array_equal(lax.add(SINGLE, tnp.float32(1)), SINGLE + 1)
    np.testing.assert_array_equal(tracer.jit(lax.mul)(np.float32(3), SINGLE), 3 * SINGLE)
    np.testing.assert_array_equal(tracer.vmap(lax.sub, (0, None))(SINGLE, SINGLE), SINGLE[:, None] - SINGLE)
    assert float(tracer.grad(lambda s: lax.mul(SINGLE, s).sum())(tnp.float32(2))) == 6
    with pytest.raises(ShapeError, match="operands must have equal shapes"):
        lax.add(SINGLE, np.ones((1, 3), np.float32))


def test_powers_take_integers() -> None:
    np.testing.assert_array_equal(lax.pow(SINGLE, np.int32(2)), SINGLE**2)
    np.testing.assert_array_equal(lax.pow(SINGLE, INTEGERS), SINGLE**INTEGERS)


def test_the_reciprocal_of_an_integer_is_refused() -> None:
    for x in (INTEGERS, 2):
        with pytest.raises(DTypeError, match=r"reciprocal.* takes floats, complex numbers"):
            lax.reciprocal(x)


def test_polygamma_takes_orders_in_an_array() -> None:
    orders, x = np.array([0.0, 1.0, 3.0, 1.0]), np.array([0.5, 1.0, 2.5, -0.5])
    expected = [special.digamma(0.5), *(special.polygamma(int(n), y) for n, y in zip(orders[1:3], x[1:3], strict=True))]
    for found in (lax.polygamma(orders, x), tracer.jit(lambda y: lax.polygamma(orders, y))(x)):
        np.testing.assert_allclose(np.asarray(found)[:3], expected, rtol=1e-13)
        np.testing.assert_allclose(np.asarray(found)[3], 8.9348022005446793, rtol=1e-13)  # trigamma(1/2) + 4
    slopes = tracer.grad(lambda y: lax.polygamma(orders, y).sum())(x)
    np.testing.assert_allclose(np.asarray(slopes)[:3], special.polygamma([1, 2, 4], x[:3]), rtol=1e-12)


def test_orders_of_polygamma_are_known_whole_numbers() -> None:
    for m in (0.5, -1, np.array([0.0, 1.5, 2.0], np.float32)):
        with pytest.raises(ArgumentError, match="orders must be concrete whole numbers"):
            lax.polygamma(m, SINGLE)
    with pytest.raises(ArgumentError, match=r"got f32\[3\]"):
        tracer.jit(lax.polygamma)(SINGLE, SINGLE)
    with pytest.raises(DTypeError, match="equal dtypes"):
        lax.polygamma(INTEGERS, SINGLE)
