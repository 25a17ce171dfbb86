"""Arguments that functions rarely get, compared with NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer.errors import ArgumentError, TracerArrayError

GRID = np.array([[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 0]])
Z = np.array([1 + 2j, 3j, 1 + 2j, complex(np.nan, 1), 0])


@pytest.mark.parametrize("trim", ["fb", "f", "b", "FB"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("x", [GRID, np.zeros((2, 3)), GRID.astype(float), np.stack([GRID, GRID * 0])])
def test_zeros_are_trimmed_along_axes(x: Any, axis: Any, trim: str) -> None:
    expected = np.trim_zeros(x, trim, axis)
    found = tnp.trim_zeros(x, trim, axis)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("run", [lambda f: f, tracer.jit], ids=["eager", "jit"])
def test_short_exponents_and_bools(run: Any) -> None:
    for by in (np.int8([1, -2, 3]), np.uint8([1, 2, 3]), np.array([True, False, True]), np.array([4, 5, 6], ">i4")):
        found = run(tnp.ldexp)(np.array([1.0, 1.5, -2.0]), by)
        np.testing.assert_array_equal(np.asarray(found), np.ldexp(np.array([1.0, 1.5, -2.0]), by.astype(int)))
    flags = np.array([True, False, True])
    np.testing.assert_array_equal(np.asarray(run(tnp.bitwise_count)(flags)), np.bitwise_count(flags))
    picked = run(lambda a, x: tnp.choose(a, [x, -x]))(flags, np.arange(3.0))
    np.testing.assert_array_equal(np.asarray(picked), np.choose(flags, [np.arange(3.0), -np.arange(3.0)]))


def test_sets_of_complex_numbers() -> None:
    tests = np.array([3j, 1, complex(np.nan, 1)])
    expected = np.isin(Z, tests)
    np.testing.assert_array_equal(np.asarray(tnp.isin(Z, tests)), expected)
    np.testing.assert_array_equal(np.asarray(tracer.jit(tnp.isin)(Z.reshape(5, 1), tests)), expected.reshape(5, 1))
    np.testing.assert_array_equal(np.asarray(tnp.setdiff1d(Z[:3], tests)), np.setdiff1d(Z[:3], tests))
    np.testing.assert_array_equal(np.asarray(tnp.intersect1d(Z[:3], tests)), np.intersect1d(Z[:3], tests))
    np.testing.assert_array_equal(np.asarray(tnp.setxor1d(Z[:3], tests[:2])), np.setxor1d(Z[:3], tests[:2]))


def test_what_depends_on_traced_values_is_told() -> None:
    assert tnp.min_scalar_type(tnp.asarray(10)) == np.uint8
    assert tracer.jit(lambda x: x.astype(tnp.min_scalar_type(x)))(np.zeros(2, "float32")).dtype == np.float32
    with pytest.raises(TracerArrayError, match=r"min_scalar_type at .* depends on the value, which is traced"):
        tracer.jit(lambda x: x.astype(tnp.min_scalar_type(x)))(1.0)
    with pytest.raises(ArgumentError, match='trim is "f", "b" or "fb"'):
        tnp.trim_zeros([0, 1], "z")


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_roll_by_traced_places(axis: Any) -> None:
    x = np.arange(12.0).reshape(3, 4)
    rolled = tracer.jit(lambda x, n: tnp.roll(x, n, axis))
    for shift in (-5, 0, 1, 100) if axis != (0, 1) else ((1, 2), (-4, 0)):
        np.testing.assert_array_equal(rolled(x, np.asarray(shift)), np.roll(x, shift, axis))
    if axis != (0, 1):
        shifts = np.asarray([0, 2, -1])
        wanted = np.stack([np.roll(x, n, axis) for n in shifts])
        np.testing.assert_array_equal(tracer.vmap(lambda n: tnp.roll(tnp.asarray(x), n, axis))(shifts), wanted)
        slopes = tracer.jit(tracer.grad(lambda x, n: tnp.sum(tnp.roll(x, n, axis) * x[0, 1])))(x, 2)
        np.testing.assert_allclose(slopes, x[0, 1] + np.where(np.arange(12).reshape(3, 4) == 1, x.sum(), 0))


@pytest.mark.parametrize("name", ["correlate", "convolve"])
def test_products_at_the_few_places_where_one_vector_lies_within_the_other(name: str) -> None:
    x = np.random.default_rng(3).standard_normal(20)
    for size in (20, 19, 18, 16, 15, 9, 1):
        for a, b in ((x, x[:size]), (x[:size], x), (x + 1j * x[::-1], 1j * x[:size])):
            expected = getattr(np, name)(a, b, "valid")
            for way in (lambda f: f, tracer.jit):
                found = way(lambda a, b: getattr(tnp, name)(a, b, "valid"))(a, b)
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
