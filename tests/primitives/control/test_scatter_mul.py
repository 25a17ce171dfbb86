"""Derivatives of scatter_mul: products of all but one, two and three factors, zeros and extremes among them."""

from __future__ import annotations

import itertools
from math import prod
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.primitives.structural import lax
from tracer import grad, hessian, jacfwd, jacrev, jit, ops, vmap
from tracer.errors import NoRuleError
from tracer.primitives.arrays.dynamic_slice import ScatterDimensionNumbers

POINT = ScatterDimensionNumbers((), (0,), (0,))
PLACES = np.array([0, 2, 0, 0, 1, 2, 9, 0, 9])  # 9 is nowhere
START = np.array([2.0, 3.0, 0.0, 5.0])
UPDATES = [
    np.array([3.0, 2.0, -1.0, 4.0, 7.0, 5.0, 2.0, 6.0, 2.0]),
    np.array([0.0, 2.0, -1.0, 4.0, 7.0, 5.0, 2.0, 6.0, 2.0]),
    np.array([0.0, 0.0, 0.0, 4.0, 0.0, 5.0, 0.0, 6.0, 2.0]),
    np.zeros(9),
]


def scattered(u: Any, start: Any = START, mode: str = "drop") -> Any:
    return lax.scatter_mul(tnp.asarray(start), tnp.asarray(PLACES)[:, None], u, POINT, mode=mode)


def without(u: Any, *left_out: int) -> float:
    """The derivative of the sum of all products by those updates: what is left where they meet, else nothing."""
    places = {int(PLACES[k]) for k in left_out}
    if len(places) > 1 or len(set(left_out)) < len(left_out) or 9 in places:
        return 0.0
    (place,) = places
    return float(START[place] * prod(u[k] for k in range(len(u)) if PLACES[k] == place and k not in left_out))


def total(u: Any) -> Any:
    return scattered(u).sum()


@pytest.mark.parametrize("u", UPDATES, ids=("no zero", "one zero", "zeros", "all zero"))
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_derivatives_leave_factors_out_to_every_order(u: Any, compiled: bool) -> None:
    way: Any = jit if compiled else lambda f: f
    n = range(len(u))
    first = [without(u, i) for i in n]
    second = [[without(u, i, j) for j in n] for i in n]
    np.testing.assert_array_equal(way(grad(total))(u), first)
    np.testing.assert_array_equal(way(jacfwd(total))(u), first)
    np.testing.assert_array_equal(way(hessian(total))(u), second)
    np.testing.assert_array_equal(way(jacrev(jacrev(total)))(u), second)
    third = np.array([without(u, i, j, k) for i, j, k in itertools.product(n, n, n)]).reshape(len(u), len(u), len(u))
    np.testing.assert_array_equal(way(jacfwd(hessian(total)))(u), third)


def test_batches_of_gradients() -> None:
    many = np.stack(UPDATES)
    np.testing.assert_array_equal(vmap(grad(total))(many), [[without(u, i) for i in range(9)] for u in many])
    at_once = grad(lambda us: vmap(total)(us).sum())(many)
    np.testing.assert_array_equal(at_once, [[without(u, i) for i in range(9)] for u in many])


def test_the_operand_and_the_updates_together() -> None:
    u, start = tnp.asarray(UPDATES[1]), tnp.asarray(START)
    mixed = jacfwd(grad(lambda start, u: scattered(u, start).sum()), argnums=1)(start, u)
    expected = [[float(PLACES[k] == p) * prod(UPDATES[1][j] for j in range(9) if PLACES[j] == p and j != k)
                 for k in range(9)] for p in range(4)]  # fmt: skip
    np.testing.assert_array_equal(mixed, expected)


def test_neither_large_nor_small_factors_are_divided_by() -> None:
    places = tnp.asarray([0, 0, 1])

    def f(u: Any) -> Any:
        return tnp.asarray([2.0, 1.0]).at[places].multiply(u).sum()

    for size in (1e200, 1e-200):
        np.testing.assert_array_equal(grad(f)(tnp.asarray([size, size, 5.0])), [2 * size, 2 * size, 1.0])
    np.testing.assert_array_equal(grad(f)(tnp.asarray([0.0, np.inf, 5.0])), [np.inf, 0.0, 1.0])


def test_what_is_written_nowhere_spoils_nothing() -> None:
    u = np.array(UPDATES[0])
    u[PLACES == 9] = [np.inf, 0.0]
    np.testing.assert_array_equal(grad(total)(u), [without(u, i) for i in range(9)])


def test_windows_and_complex_numbers() -> None:
    rng = np.random.default_rng(5)
    x, u = (rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in ((3, 2), (4, 2)))
    u[1, 0] = u[2, 1] = 0
    rows = np.array([2, 0, 2, 2])

    def f(u: Any) -> Any:
        return tnp.sum(tnp.asarray(x).at[tnp.asarray(rows)].multiply(u))

    expected = [[x[rows[i], c] * prod(u[j, c] for j in range(4) if rows[j] == rows[i] and j != i) for c in range(2)]
                for i in range(4)]  # fmt: skip
    np.testing.assert_allclose(grad(f, holomorphic=True)(tnp.asarray(u)), expected, rtol=1e-15)


def test_one_window_and_unique_ones_sort_nothing() -> None:
    def names(f: Any, u: Any) -> set[str]:
        return {equation.primitive.name for equation in tracer.make_program(grad(f))(u).equations}

    x = tnp.ones((4, 3))
    assert "sort" not in names(lambda u: x.at[2].multiply(u).sum(), tnp.ones(3))
    assert "sort" not in names(
        lambda u: x.at[tnp.asarray([2, 0])].multiply(u, unique_indices=True).sum(), tnp.ones((2, 3))
    )
    assert "sort" in names(lambda u: x.at[tnp.asarray([2, 0])].multiply(u).sum(), tnp.ones((2, 3)))


def test_products_of_segments() -> None:
    ids = tnp.asarray([0, 1, 0, 0, 1])

    def f(d: Any) -> Any:
        return ops.segment_prod(d, ids, 2).sum()

    d = tnp.asarray([0.0, 2.0, 0.0, 3.0, 0.0])
    np.testing.assert_array_equal(grad(f)(d), [0.0, 0.0, 0.0, 0.0, 2.0])
    second = np.zeros((5, 5))
    second[0, 2] = second[2, 0] = 3.0
    second[1, 4] = second[4, 1] = 1.0
    np.testing.assert_array_equal(hessian(f)(d), second)
    assert grad(lambda d: ops.segment_prod(d, tnp.zeros(0, dtype=int), 2).sum())(tnp.zeros(0)).shape == (0,)


def test_products_of_several_updates_are_not_linear_in_them() -> None:
    """As JAX says; in the operand they are, and in updates of which no two are said to meet."""
    x, u, ct = np.arange(1.0, 5.0), np.array([2.0, 3.0, 5.0]), np.array([1.0, 10.0, 100.0, 1000.0])
    repeated, distinct = np.array([[0], [0], [2]]), np.array([[3], [0], [2]])

    def product(operand: Any, places: Any, updates: Any, unique: bool = False) -> Any:
        return tracer.lax.scatter_mul(operand, places, updates, POINT, unique_indices=unique)

    (back,) = tracer.linear_transpose(lambda v: product(v, repeated, u), x)(ct)
    np.testing.assert_array_equal(back, [6.0, 10.0, 500.0, 1000.0])
    (back,) = tracer.linear_transpose(lambda v: product(x, distinct, v, unique=True), u)(ct)
    np.testing.assert_array_equal(back, [4000.0, 1.0, 300.0])
    (back,) = tracer.linear_transpose(lambda v: product(x, repeated[:1], v), u[:1])(ct)
    np.testing.assert_array_equal(back, [1.0])
    with pytest.raises(NoRuleError, match="updates of one element are multiplied with each other"):
        tracer.linear_transpose(lambda v: product(x, repeated, v), u)(ct)
