"""Confluent and Gauss's hypergeometric functions beside mpmath, their ends beside SciPy."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

from tests.grids import each
from tests.scipy.special_functions.precision import errors, exact
from tracer import grad, jit, vmap
from tracer.scipy.special import hyp1f1, hyp2f1

_rng = np.random.default_rng(0)
COUNT = 16


def uniform(low: float, high: float) -> Any:
    return _rng.uniform(low, high, COUNT)


def whole(low: int, high: int) -> Any:
    return _rng.integers(low, high, COUNT).astype(float)


def spread(low: float, high: float) -> Any:
    return 10 ** _rng.uniform(low, high, COUNT)


_B = uniform(0.1, 5)
KUMMER = {
    "positive": (uniform(0.1, 10), uniform(0.1, 10), uniform(-30, 30)),
    "any sign": (uniform(-10, 10), uniform(0.1, 10), uniform(-30, 30)),
    "asymptotic": (uniform(-10, 10), uniform(0.1, 10), uniform(-600, 600)),
    "oscillating": (uniform(-60, -20), uniform(0.1, 10), uniform(0, 50)),
    "large": (uniform(-100, 100), uniform(0.1, 100), uniform(-100, 100)),
    "polynomials": (-whole(0, 30), uniform(0.1, 10), uniform(-100, 100)),
    "small": (uniform(-10, 10), uniform(0.1, 10), spread(-12, 0)),
}
GAUSS = {
    "positive": (uniform(0.1, 10), uniform(0.1, 10), uniform(0.1, 10), uniform(-3, 1)),
    "any sign": (uniform(-10, 10), uniform(-10, 10), uniform(0.1, 10), uniform(-3, 1)),
    "far": (uniform(-5, 5), uniform(-5, 5), uniform(0.1, 10), -spread(0, 6)),
    "beside 1": (uniform(-5, 5), uniform(-5, 5), uniform(0.1, 10), 1 - spread(-12, 0)),
    "whole numbers": (whole(1, 9), whole(1, 9), whole(1, 20), uniform(-20, 1)),
    "equal": (_B, _B, uniform(0.1, 5), -spread(-2, 4)),
    "oscillating": (uniform(-30, -10), uniform(10, 30), uniform(0.5, 5), uniform(0, 0.9)),
    "polynomials": (-whole(0, 25), uniform(-10, 10), uniform(0.1, 10), uniform(-1, 1)),
}


def conditioned(function: Any, *operands: Any) -> tuple[list[Any], Any]:
    """The exact values, and by how much a relative error of the last operand is magnified."""
    *parameters, x = operands
    values = exact(function, *operands)
    above = exact(function, *(p + 1 for p in parameters), x)
    upper = np.prod(parameters[:-1], axis=0) * x / parameters[-1]
    factors = [abs(float(u * b / v)) for u, b, v in zip(upper, above, values, strict=True)]
    return values, np.maximum(1.0, factors)


JITTED = jit(hyp1f1), jit(hyp2f1)


@pytest.mark.parametrize("domain", KUMMER)
def test_kummers_function(domain: str) -> None:
    values, condition = conditioned(mpmath.hyp1f1, *KUMMER[domain])
    assert (errors(JITTED[0](*KUMMER[domain]), values) / condition < 2e-14).all()


def test_kummers_function_of_large_parameters() -> None:
    a = np.array([1.0, 1.0, 3.0, 0.25, 76.625, -30.875, 7.0, -82.375, -0.5, 3.875])
    b = np.array([1000.0, 186.0, 536.0, 281.0, 7.75, 16.875, 354.0, 27.0, 365.0, 267.125])
    x = np.array([700.0, -241.875, 1675.5, -2058.125, -1650.25, 1107.25, -9577.0, -5562.375, 653.25, 787.75])
    relative = errors(JITTED[0](a, b, x)[[0, 1, 2, 3, 4, 6, 7, 8, 9]], np.delete(exact(mpmath.hyp1f1, a, b, x), 5))
    assert (relative < 1e-11).all()  # logarithms of gamma functions up to 6000
    assert float(JITTED[0](a, b, x)[5]) == -np.inf


@pytest.mark.parametrize("domain", GAUSS)
def test_gausss_function(domain: str) -> None:
    values, condition = conditioned(mpmath.hyp2f1, *GAUSS[domain])
    assert (errors(JITTED[1](*GAUSS[domain]), values) / condition < 3e-14).all()


@each(("a", "b", "x"), [
    (1, 0, 1.0), (-2, -3, 1.0), (-3, -2, 1.0), (-2, -2, 1.0), (1.5, -2, 0.0), (1, 2, np.inf), (1, 2, -np.inf),
    (np.nan, 1, 1), (1, 2, 800.0), (0, 2, np.inf), (1.5, np.inf, 1.0), (1, 2, 0.0), (1, 2, np.nan),
    (-1, -1, 0.0), (-2, -3, 0.0), (-3, -2, 0.0), (-4, -3, -1.0),
])  # fmt: skip
def test_ends_of_kummers_function_are_scipys(a: float, b: float, x: float) -> None:
    np.testing.assert_allclose(JITTED[0](*map(float, (a, b, x))), scipy.special.hyp1f1(a, b, x), rtol=1e-14)


def test_ends_of_kummers_function_where_scipys_are_not_limits() -> None:
    found = [float(hyp1f1(*v)) for v in ((0.0, 0.0, 1.0), (-1.0, 2.0, np.inf), (2.0, 1.0, -np.inf))]
    assert found == [1.0, -np.inf, 0.0]
    assert [float(SLOPES[0](0.0, b, 1.0)[2]) for b in (0.0, -1.0, 2.0)] == [0.0, 0.0, 0.0]


@each(("a", "b", "c", "x"), [
    (1, 2, 3.5, 1.5), (1, 2, 0, 0.5), (-2, 1, -3, 0.5), (-3, 1, -2, 0.5), (-2, 1.5, -2, 0.5), (1, 2, 3.5, 1.0),
    (1, 2, 3, 1.0), (1, 2, 2, 1.0), (-2, 1, 3, 5.0), (-7, 8, 1, 3.0), (1, 2, 3, np.inf), (np.nan, 1, 2, 0.5),
    (1, 1, 1, 2.0), (1, 3, 3, 2.0), (1.5, 3, 3, 2.0), (1, 2, 4, -1e10), (1, 2, 0, 0.0), (-2, 3, 4, 1.0),
    (2.5, 1.0, 1.5, 0.9), (1, 2, 3, np.nan),
])  # fmt: skip
def test_ends_of_gausss_function_are_scipys(a: float, b: float, c: float, x: float) -> None:
    np.testing.assert_allclose(JITTED[1](*map(float, (a, b, c, x))), scipy.special.hyp2f1(a, b, c, x), rtol=1e-14)


def test_gausss_function_of_huge_numbers() -> None:
    expected = exact(mpmath.hyp2f1, 0.5, 0.5, 2.0, np.asarray([-1e20, -1e100]))
    assert (errors(JITTED[1](0.5, 0.5, 2.0, np.asarray([-1e20, -1e100])), expected) < 1e-13).all()
    assert float(hyp2f1(1.0, 2.0, 3.0, -np.inf)) == 0.0


@pytest.mark.parametrize("point", [(1.3, 2.2, -40.0), (1.3, 2.2, 40.0), (-3.0, 1.5, 2.0), (-7.5, 1.5, 12.0)])
def test_derivatives_of_kummers_function(point: tuple[float, ...]) -> None:
    _compare_slopes(SLOPES[0], mpmath.hyp1f1, point)


@pytest.mark.parametrize("point", [
    (1.3, 2.2, 0.7, 0.95), (1.0, 1.0, 2.0, 0.99), (-2.0, 1.5, 2.0, 0.6), (-7.5, 8.5, 1.0, 0.4), (1.0, 2.0, 3.0, -30.0),
])  # fmt: skip
def test_derivatives_of_gausss_function(point: tuple[float, ...]) -> None:
    _compare_slopes(SLOPES[1], mpmath.hyp2f1, point)


SLOPES = jit(grad(hyp1f1, (0, 1, 2))), jit(grad(hyp2f1, (0, 1, 2, 3)))


def _compare_slopes(slopes: Any, function: Any, point: tuple[float, ...]) -> None:
    with mpmath.workdps(40):
        exact_point = tuple(map(mpmath.mpf, point))
        orders = np.eye(len(point), dtype=int).tolist()
        expected = [float(mpmath.diff(function, exact_point, tuple(order))) for order in orders]
    np.testing.assert_allclose([float(s) for s in slopes(*point)], expected, rtol=3e-14)


def test_second_derivatives_mix_parameters_and_argument() -> None:
    mixed = jit(grad(grad(hyp1f1, 0), 1))(1.3, 2.2, 0.7)
    np.testing.assert_allclose(mixed, float(mpmath.diff(mpmath.hyp1f1, (1.3, 2.2, 0.7), (1, 1, 0))), rtol=1e-11)
    mixed = jit(grad(grad(hyp2f1, 2), 3))(1.3, 2.2, 0.7, 0.3)
    np.testing.assert_allclose(mixed, float(mpmath.diff(mpmath.hyp2f1, (1.3, 2.2, 0.7, 0.3), (0, 0, 1, 1))), rtol=1e-11)


def test_shapes_and_dtypes() -> None:
    single = hyp1f1(np.float32(1.5), np.ones((2, 1), "float32"), np.ones(3, "float32"))
    assert (single.dtype, single.shape) == ("float32", (2, 3))
    assert hyp2f1(1.0, 2.0, 3.0, np.zeros((0, 2))).shape == (0, 2)
    x = np.linspace(-2, 0.9, 5)
    np.testing.assert_allclose(
        jit(vmap(hyp2f1, (None, None, None, 0)))(0.5, 1.5, 2.5, x), scipy.special.hyp2f1(0.5, 1.5, 2.5, x), rtol=1e-13
    )
    np.testing.assert_allclose(hyp2f1(0.5, 1.5, 2.5, x.astype("float32")), hyp2f1(0.5, 1.5, 2.5, x), rtol=1e-5)
