"""Divisors, exponents, bits, windows, fits and roots, functions made of scalar ones: beside NumPy's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer.errors import ArgumentError, DTypeError, MatrixError, ShapeError, TracerArrayError

INTEGERS = [np.int8, np.int32, np.int64, np.uint8, np.uint64]
ODD = np.array([0.0, -0.0, 1.0, -1.5, 0.1, -7e300, 5e-324, -3e-310, 2.0**-1022, 1.7e308, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize(("name", "dtype"), covering(["gcd", "lcm"], INTEGERS))
def test_divisors_and_multiples_are_numpys(name: str, dtype: Any) -> None:
    info = np.iinfo(dtype)
    x = np.array([0, 1, 12, 18, 100, info.max, info.min, info.max - 1, 3], dtype)
    expected = getattr(np, name)(x[:, None], x)
    np.testing.assert_array_equal(getattr(tnp, name)(x[:, None], x), expected, strict=True)
    np.testing.assert_array_equal(tracer.jit(getattr(tnp, name))(x[:, None], x), expected)
    np.testing.assert_array_equal(tracer.vmap(getattr(tnp, name), (0, None))(x, x[2]), getattr(np, name)(x, x[2]))


def test_divisors_of_floats_are_refused() -> None:
    with pytest.raises(DTypeError, match=r"gcd at .* takes integers\n  got f64\n  help: cast with .astype\(int\)"):
        tnp.gcd(1.5, 2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_exponents_are_numpys(dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x = ODD.astype(dtype)
        by = np.arange(-2200, 2200, 37)
        spread = np.concatenate([x, np.random.default_rng(1).normal(size=20).astype(dtype)])
        pairs = [
            *zip(tnp.frexp(x), np.frexp(x), strict=True), (tnp.spacing(x), _signed(np.spacing(x), x)),
            (tnp.ldexp(spread[:, None], by), np.ldexp(spread[:, None], by)),
            (tracer.jit(tnp.ldexp)(spread[:, None], by), np.ldexp(spread[:, None], by)),
        ]  # fmt: skip
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours, theirs, strict=True)
        known = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(ours)[known], np.signbit(theirs)[known])


def _signed(gaps: Any, x: Any) -> Any:
    """NumPy forgets the sign where x is float16."""
    return np.where((x < 0) & (gaps > 0), -gaps, gaps)


def test_derivatives_of_scaled_numbers_are_the_scales() -> None:
    assert float(tracer.grad(lambda x: tnp.ldexp(x, 3))(1.7)) == 8.0
    assert float(tracer.grad(lambda x: tnp.frexp(x)[0])(6.0)) == 0.125
    with pytest.raises(DTypeError, match=r"ldexp at .*: exponents must be integers"):
        tnp.ldexp(1.0, 2.0)


@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("shape", [(3, 11), (0, 4), (2, 8)])
def test_bits_are_packed_and_unpacked_as_numpy_does(shape: tuple[int, int], axis: int | None, bitorder: Any) -> None:
    bits = np.random.default_rng(0).integers(0, 3, shape)
    packed = np.packbits(bits, axis, bitorder)
    np.testing.assert_array_equal(tnp.packbits(bits, axis, bitorder), packed, strict=True)
    for count in (None, 5, 20, -3) if packed.size else (None,):  # NumPy fills up with what is in memory
        expected = np.unpackbits(packed, axis, count, bitorder)
        np.testing.assert_array_equal(tnp.unpackbits(packed, axis, count, bitorder), expected, strict=True)


def test_bessel_function_and_its_window() -> None:
    x = np.concatenate([np.linspace(-40, 40, 401), [0.0, 700.0, -700.0]])
    np.testing.assert_allclose(tnp.i0(x), np.i0(x), rtol=4e-15)
    some = x[:401:40]
    curvature = tracer.vmap(tracer.grad(tracer.grad(tnp.i0)))(some)
    np.testing.assert_allclose(curvature, np.i0(some) - _slope(some), rtol=1e-13)
    for size in (0, 1, 2, 7):
        np.testing.assert_allclose(tnp.kaiser(size, 8.6), np.kaiser(size, 8.6), rtol=1e-14, strict=True)
    with pytest.raises(ArgumentError, match=r"^kaiser at .*: an argument is not an array"):
        tnp.kaiser(3, "wide")


def _slope(x: Any) -> Any:
    """i1(x) / x, from the power series of both."""
    terms = np.arange(60.0)
    factorials = np.cumprod(np.concatenate([[1.0], terms[1:]]))
    return 0.5 * np.sum((x[:, None] ** 2 / 4) ** terms / (factorials * factorials * (terms + 1)), axis=1)


@pytest.mark.parametrize("shape", [(9,), (9, 2)])
def test_fits_are_numpys(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x, y, w = rng.normal(size=9), rng.normal(size=shape), rng.uniform(0.5, 2, 9)
    for degree in (0, 1, 3):
        np.testing.assert_allclose(tnp.polyfit(x, y, degree), np.polyfit(x, y, degree), rtol=1e-10)
        for cov in (True, "unscaled"):
            found, expected = tnp.polyfit(x, y, degree, w=w, cov=cov), np.polyfit(x, y, degree, w=w, cov=cov)
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-10)
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-9)
    np.testing.assert_allclose(tracer.jit(lambda x, y: tnp.polyfit(x, y, 2))(x, y), np.polyfit(x, y, 2), rtol=1e-10)


def test_fits_through_as_many_points_as_coefficients_and_of_fewer() -> None:
    x = np.array([0.0, 1.0, 3.0])
    np.testing.assert_allclose(tnp.polyfit(x, x**2, 2), [1, 0, 0], atol=1e-13)
    for points, degree in ((x, 3), (np.full(3, 2.0), 1), (np.array([4.0]), 5)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.RankWarning)
            expected = np.polyfit(points, points**2, degree)
        np.testing.assert_allclose(tnp.polyfit(points, points**2, degree), expected, rtol=1e-10)
    with pytest.raises(ShapeError, match="4 coefficients need as many points"):
        tracer.jit(lambda x: tnp.polyfit(x, x, 3))(x)
    for y in ([1.0], 1.0):
        with pytest.raises(ShapeError, match=r"^polyfit at .* takes x \[n\]"):
            tnp.polyfit(x, y, 1)
    with pytest.raises(ShapeError, match=r"^polyfit at .* takes one weight for each point"):
        tnp.polyfit(x, x, 1, w=[1.0])


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_fits_by_singular_values_are_numpys_of_known_points(dtype: str, rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(2, 7)).astype(dtype)
    choices: list[Any] = [{"full": True}, {"full": True, "w": np.arange(1.0, 8)}, {"rcond": 1e-9, "cov": True}]
    for options in ({"rcond": 0.5}, *choices):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.RankWarning)
            theirs = np.polyfit(x, y, 2, **options)
        ours = tnp.polyfit(x, y, 2, **options)
        pairs = zip(ours, theirs, strict=True) if isinstance(theirs, tuple) else [(ours, theirs)]
        for found, expected in pairs:
            np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == "float32" else 1e-9)
    with pytest.raises(TracerArrayError, match=r"^polyfit at .*: full= and rcond= need the singular values"):
        tracer.jit(lambda y: tnp.polyfit(x, y, 1, full=True))(y)
    with pytest.raises(MatrixError, match=r"^polyfit at .*: a covariance needs independent powers"):
        tnp.polyfit(x, y, 2, rcond=0.9, cov=True)
    with pytest.raises(ShapeError, match=r"^polyfit at .*: 2 coefficients need as many points"):
        tnp.polyfit([], [], 1, full=True)


def test_fits_of_complex_points_are_numpys(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(2, 6)) + 1j * rng.normal(size=(2, 6))
    for a, b in ((x, y), (x.real, y), (x, y.real), (x * 0 + np.arange(6), y)):
        for call in (tnp.polyfit, tracer.jit(tnp.polyfit, static_argnums=2, static_argnames="cov")):
            for found, expected in zip(call(a, b, 2, cov=True), np.polyfit(a, b, 2, cov=True), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-9, strict=True)


def test_derivatives_of_fits_are_finite_differences(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=6), rng.normal(size=6)
    slope = tracer.jacfwd(lambda y: tnp.polyfit(x, y, 2))(y)
    for i in range(6):
        bumped = y + 1e-6 * (np.arange(6) == i)
        np.testing.assert_allclose(slope[:, i], (np.polyfit(x, bumped, 2) - np.polyfit(x, y, 2)) / 1e-6, atol=1e-5)


def by_size(z: Any) -> Any:
    return np.asarray(z)[np.lexsort((np.asarray(z).imag.round(6), np.asarray(z).real.round(6)))]


@pytest.mark.parametrize(
    "p",
    [[1.0, -3.0, 2.0], [2.0, 0.0, 0.0, -16.0], [0.0, 0.0, 1.0, 5.0, 0.0, 0.0], [1.0, 0.0, 1.0], [3.0], [0.0, 0.0], [],
     [1.0, -6.0, 11.0, -6.0], [1e-8, 1.0, 1e8], [1j, 2.0, 1 - 1j], [1, 2, 3], list(range(1, 20))],
    ids=str,
)  # fmt: skip
def test_roots_are_numpys(p: list[Any]) -> None:
    expected = np.roots(np.asarray(p, None if p else float))
    found = tnp.roots(tnp.asarray(p))
    assert found.dtype == np.complex128
    np.testing.assert_allclose(by_size(found), by_size(expected), rtol=1e-10, atol=1e-10)


def test_multiple_roots_are_as_good_as_rounding_lets_them() -> None:
    np.testing.assert_allclose(np.sort(tnp.roots(np.poly([1.0, 1.0, 1.0, 2.0])).real), [1, 1, 1, 2], atol=1e-4)


def test_roots_of_known_integers_compile() -> None:
    found = tracer.jit(lambda: tnp.roots([1, 3, 2]))()
    np.testing.assert_allclose(np.sort(found.real), [-2, -1], atol=1e-12)


def test_roots_differentiate_and_compile() -> None:
    p = np.array([1.0, -6.0, 11.0, -6.0])
    least = tracer.jit(tracer.grad(lambda p: tnp.min(tnp.roots(p, strip_zeros=False).real)))
    np.testing.assert_allclose(least(p), -(1.0 ** np.arange(3, -1, -1)) / 2.0, rtol=1e-9)  # -x^k / p'(x) at 1
    with pytest.raises(TracerArrayError, match="strip_zeros=False, if the first is not 0"):
        tracer.jit(tnp.roots)(p)


# Functions made of scalar ones

ADD = tnp.frompyfunc(lambda x, y: x + y, nin=2, nout=1, identity=0)
FAR = tnp.frompyfunc(lambda x, y: 2 * x - y, nin=2, nout=1)
T = np.arange(1.0, 13.0).reshape(3, 4)


def test_folds_are_those_of_numpys_ufuncs() -> None:
    theirs = np.frompyfunc(lambda x, y: 2 * x - y, 2, 1)
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(ADD.reduce(T, axis), np.add.reduce(T, axis))
        np.testing.assert_array_equal(FAR.reduce(T, axis), theirs.reduce(T, axis).astype(float))
        np.testing.assert_array_equal(FAR.accumulate(T, axis), theirs.accumulate(T, axis).astype(float))
        np.testing.assert_array_equal(ADD.reduceat(T, [0, 2, 1], axis), np.add.reduceat(T, [0, 2, 1], axis))
    np.testing.assert_array_equal(ADD.reduce(T, None, keepdims=True), [[78.0]])
    np.testing.assert_array_equal(ADD.reduce(T, 1, where=T > 3, initial=1), np.add.reduce(T, 1, where=T > 3, initial=1))
    np.testing.assert_array_equal(FAR.outer(T, T[0]), theirs.outer(T, T[0]).astype(float))
    np.testing.assert_array_equal(tracer.jit(FAR.reduce)(T), theirs.reduce(T).astype(float))
    np.testing.assert_array_equal(tracer.grad(lambda x: ADD.reduce(x, None))(T), np.ones((3, 4)))


def test_updates_at_repeated_places_count_again() -> None:
    expected = np.zeros(4)
    np.add.at(expected, [1, 1, 3], [1.0, 2.0, 5.0])
    np.testing.assert_array_equal(ADD.at(np.zeros(4), [1, 1, 3], tnp.asarray([1.0, 2.0, 5.0]), inplace=False), expected)
    twice = tnp.frompyfunc(lambda x: 2 * x + 1, nin=1, nout=1)
    np.testing.assert_array_equal(
        twice.at(T, (tnp.asarray([0, 0]), tnp.asarray([1, 1])), inplace=False), T + 9 * (T == 2)
    )


# Not power and arctan2, of which NumPy 2.4 reduces by the last element alone
FOLDS = (
    "add",
    "multiply",
    "maximum",
    "minimum",
    "subtract",
    "logical_or",
    "hypot",
    "logaddexp",
    "fmax",
)


@pytest.mark.parametrize("name", FOLDS)
def test_functions_of_two_arrays_fold_as_numpys_ufuncs(name: str) -> None:
    ours, theirs = getattr(tnp, name), getattr(np, name)
    for axis in (0, -1):
        np.testing.assert_allclose(ours.accumulate(T / 8, axis), theirs.accumulate(T / 8, axis), rtol=1e-14)
        np.testing.assert_allclose(ours.reduce(T / 8, axis), theirs.reduce(T / 8, axis), rtol=1e-14)
        np.testing.assert_allclose(
            ours.reduceat(T / 8, [0, 2, 1], axis), theirs.reduceat(T / 8, [0, 2, 1], axis), rtol=1e-14
        )
    np.testing.assert_allclose(ours.reduce(T, 1, keepdims=True), theirs.reduce(T, 1, keepdims=True), rtol=1e-14)
    np.testing.assert_allclose(ours.outer(T, T[0]), theirs.outer(T, T[0]), rtol=1e-14)
    x, expected = tnp.asarray(T), T.copy()
    ours.at(x, ([0, 0, 2], [1, 1, 3]), 2.0)
    theirs.at(expected, ([0, 0, 2], [1, 1, 3]), 2.0)
    np.testing.assert_allclose(x, expected, rtol=1e-14)


def test_methods_are_of_functions_of_two_arrays_alone() -> None:
    assert not hasattr(tnp.sin, "reduce")
    assert not hasattr(tnp.matmul, "reduce")
    assert tnp.maximum.reduce(T, None) == 12
    assert tracer.grad(lambda x: tnp.add.reduce(x * x))(T[0]).tolist() == (2 * T[0]).tolist()


def test_folds_with_nothing_to_start_with_are_refused() -> None:
    with pytest.raises(ArgumentError, match="has no start value\n  help: give initial="):
        FAR.reduce(T[:0])
    with pytest.raises(ArgumentError, match="is for functions of two arguments and one result"):
        tnp.frompyfunc(lambda x: x, nin=1, nout=1).reduce(T)
    with pytest.raises(ArgumentError, match="takes 2 arguments\n  got 1"):
        FAR(T)


def test_vectorize_takes_numpys_other_arguments() -> None:
    x = np.arange(3.0)

    def halved(v: Any) -> Any:
        return v / 2

    for otypes in (["f4"], "f", [np.int32], [complex]):
        for given in (x, x[:0], 3.0):
            found, expected = tnp.vectorize(halved, otypes)(given), np.vectorize(halved, otypes)(given)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(found, expected)
    first, second = tnp.vectorize(lambda v: (v, v), otypes="fi", excluded=None, cache=True)(x)
    assert (first.dtype, second.dtype) == (np.float32, np.int32)
    rows = np.ones((2, 3))
    counted = tnp.vectorize(otypes=[int], signature="(n)->()")(lambda v: v.sum())(rows)
    np.testing.assert_array_equal(counted, [3, 3])
    assert counted.dtype == np.int64
    slope = tracer.grad(lambda x: tnp.vectorize(halved, otypes=[np.float32])(x).sum())(x)
    np.testing.assert_array_equal(slope, [0.5, 0.5, 0.5])
    assert tnp.vectorize(halved, doc="Half of it.").__doc__ == "Half of it."
    with pytest.raises(ArgumentError, match="otypes must have one dtype for each result\n  got 2 for 1"):
        tnp.vectorize(halved, otypes="ff")(x)
    with pytest.raises(ArgumentError, match=r"of NumPy's codes\n  got <class 'float'>\n  help: otypes=\[float\]"):
        tnp.vectorize(halved, otypes=float)


def test_functions_that_branch_on_values_are_called_for_each_element() -> None:
    def larger(a: Any, b: Any) -> Any:
        return a - b if a > b else a + b

    x, y = np.array([[1.0], [5.0]]), np.array([2.0, 0.0, 7.0])
    np.testing.assert_array_equal(tnp.vectorize(larger)(x, y), np.vectorize(larger)(x, y))
    slope = tracer.grad(lambda y: tnp.sum(tnp.vectorize(larger)(x, y) * y))(y)
    np.testing.assert_allclose(slope, np.sum(np.where(x > y, x - 2 * y, x + 2 * y), axis=0))
    with pytest.raises(tracer.errors.TracerBoolError, match="on a traced value"):
        tracer.jit(tnp.vectorize(larger))(x, y)
    rows = np.arange(6.0).reshape(2, 3) - 2

    def row(v: Any) -> Any:
        return v[::-1] if v.sum() > 0 else v

    np.testing.assert_array_equal(tnp.apply_along_axis(row, 1, rows), np.apply_along_axis(row, 1, rows))
