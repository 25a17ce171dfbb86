"""Derivatives where several elements are the extreme one, and where an exponent is 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_operand_and_updates_that_tie_share_equally(name: str, way: Callable[..., Any]) -> None:
    def extremes(x: Any, u: Any) -> Any:
        return getattr(x.at[np.array([0, 0, 1, 2])], name)(u)

    x, u = tnp.asarray([2.0, 5.0, 7.0, 1.0]), tnp.asarray([2.0, 2.0, 5.0, 7.0])
    weights = np.array([6.0, 8.0, 10.0, 3.0])
    dx, du = way(tracer.grad(lambda x, u: tnp.sum(weights * extremes(x, u)), argnums=(0, 1)))(x, u)
    np.testing.assert_allclose(dx, [2.0, 4.0, 5.0, 3.0])
    np.testing.assert_allclose(du, [2.0, 2.0, 4.0, 5.0])
    moved = way(lambda x, u: tracer.jvp(extremes, (x, u), (tnp.ones(4), tnp.zeros(4)))[1])(x, u)
    np.testing.assert_allclose(moved, [1 / 3, 0.5, 0.5, 1.0])


@pytest.mark.parametrize("base", [2.0, 0.5, 1e-100, 1e200])
def test_second_derivatives_of_powers_at_exponent_0(base: float) -> None:
    hessian = np.asarray(tracer.hessian(lambda v: lax.pow(v[0], v[1]))(tnp.asarray([base, 0.0])))
    np.testing.assert_allclose(hessian, [[0.0, 1 / base], [1 / base, np.log(base) ** 2]])
    assert tracer.grad(lambda x: lax.pow(x, tnp.asarray(0.0)))(tnp.asarray(0.0)) == 0.0


NAN = np.nan
ROWS = np.array([[1.0, NAN, 2.0], [5.0, 5.0, NAN], [0.0, 2.0, 2.0]])


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_slopes_of_a_reduction_to_nan_are_nan_and_others_stay_finite(way: Callable[..., Any], dtype: str) -> None:
    """As JAX's, in both directions: nobody takes a zero for the slope of a value that is not a number."""
    x, dx = ROWS.astype(dtype), np.array([[1.0, 2.0, 3.0], [1.0, NAN, 1.0], [NAN, 3.0, 5.0]]).astype(dtype)
    for name, of_last in (("max", [0.0, 0.5, 0.5]), ("min", [1.0, 0.0, 0.0])):
        found = way(tracer.grad(lambda x, name=name: tnp.real(getattr(tnp, name)(x, axis=1)).sum()))(x)
        np.testing.assert_array_equal(found, np.array([[NAN] * 3, [NAN] * 3, of_last]))
    moved = way(lambda x, dx: tracer.jvp(lambda x: tnp.max(x, axis=1), (x,), (dx,))[1])(x, dx)
    np.testing.assert_array_equal(np.isnan(moved), [True, True, False])
    assert moved[2] == 4.0  # of the elements that attain it: what others move by is not looked at
    infinite = np.array([-np.inf, -np.inf])
    np.testing.assert_array_equal(way(tracer.grad(tnp.max))(infinite), [0.5, 0.5])


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("reverse", [False, True])
def test_slopes_of_running_extremes_are_zero_from_nan_on(way: Callable[..., Any], reverse: bool) -> None:
    for x, expected in (
        ([1.0, NAN, 3.0], [[1, 0, 0], [0, 0, 0], [0, 0, 0]]),
        ([NAN, 1.0, 3.0], [[0, 0, 0], [0, 0, 0], [0, 0, 0]]),
        ([1.0, 3.0, 2.0], [[1, 0, 0], [0, 1, 0], [0, 1, 0]]),
    ):
        given, wanted = (np.array(each)[::-1] if reverse else np.array(each) for each in (x, expected))
        wanted = wanted[:, ::-1] if reverse else wanted
        for jacobian in (tracer.jacfwd, tracer.jacrev):
            found = way(jacobian(lambda v: lax.cummax(v, reverse=reverse)))(given)
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("op", [lax.max, lax.min])
@pytest.mark.parametrize("strides", [(2, 2), (1, 1)], ids=["apart", "overlapping"])
def test_slopes_of_a_window_with_nan_go_to_the_first_nan(way: Callable[..., Any], op: Any, strides: Any) -> None:
    x = np.array([[1.0, NAN, 3.0, 2.0], [0.0, 5.0, 1.0, 1.0], [NAN, 1.0, NAN, NAN], [2.0, 2.0, 8.0, 1.0]])
    outside = -np.inf if op is lax.max else np.inf
    pool = lambda a: lax.reduce_window(a, outside, op, (2, 2), strides, "VALID")  # noqa: E731  # shorter than its use
    rows, columns = pool(x).shape
    expected = np.zeros((rows, columns, 4, 4))
    pick = np.argmax if op is lax.max else np.argmin  # NumPy's take the first NaN
    for i, j in np.ndindex(rows, columns):
        top, left = i * strides[0], j * strides[1]
        place = int(pick(x[top : top + 2, left : left + 2]))
        expected[i, j, top + place // 2, left + place % 2] = 1.0
    np.testing.assert_array_equal(way(tracer.jacrev(pool))(x), expected)
    np.testing.assert_array_equal(way(tracer.jacfwd(pool))(x), expected)


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_elements_that_are_nan_keep_their_slopes_beside_updates(way: Callable[..., Any], name: str) -> None:
    x = np.array([NAN, 1.0, NAN, 5.0])
    update = lambda x: getattr(tnp.asarray(x).at[np.array([1, 2])], name)(np.array([3.0, 1.0]))  # noqa: E731
    expected = np.eye(4)
    expected[1, 1] = name == "min"
    np.testing.assert_array_equal(way(tracer.jacrev(update))(x), expected)
    np.testing.assert_array_equal(way(tracer.jacfwd(update))(x), expected)
