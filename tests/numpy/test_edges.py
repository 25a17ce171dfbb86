"""Empty arrays, zero-size axes, scalars, NaN and infinities: NumPy's values, shapes and whether it is an error."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering, each
from tracer.errors import ArgumentError

ARRAYS = {
    "empty": np.zeros(0), "zero-size axis": np.zeros((0, 3)), "scalar": np.float64(2.5),
    "NaN": np.array([1.0, np.nan, 3.0]), "odd": np.array([np.inf, -np.inf, 0.0, -0.0, np.nan]),
}  # fmt: skip

CALLS = {
    "insert": lambda p, x: p.insert(x, 0, 1.0), "insert nothing": lambda p, x: p.insert(x, [], []),
    "resize": lambda p, x: p.resize(x, (2, 2)), "resize to nothing": lambda p, x: p.resize(x, (0,)),
    "piecewise": lambda p, x: p.piecewise(x, [x > 1], [1.0, 2.0]),
    "correlate": lambda p, x: p.correlate(x, [1.0]), "interp": lambda p, x: p.interp(x, [0.0, 1.0, 2.0], [5.0, 6, 8]),
    "interp of one": lambda p, x: p.interp(x, [0.0], [5.0]), "gradient": lambda p, x: p.gradient(x),
    "trapezoid": lambda p, x: p.trapezoid(x), "ediff1d": lambda p, x: p.ediff1d(x), "unwrap": lambda p, x: p.unwrap(x),
    "polyval": lambda p, x: p.polyval([1.0, 2.0], x), "polyval of x": lambda p, x: p.polyval(x, 3.0),
    "polyadd": lambda p, x: p.polyadd(x, [1.0, 2.0]), "polymul": lambda p, x: p.polymul(x.reshape(-1), [1.0, 2.0]),
    "poly": lambda p, x: p.poly(x.reshape(-1)), "vander": lambda p, x: p.vander(x),
    "vander of no powers": lambda p, x: p.vander(x, 0), "trim_zeros": lambda p, x: p.trim_zeros(x.reshape(-1)),
    "quantile": lambda p, x: p.quantile(x, 0.3), "quantile axis": lambda p, x: p.quantile(x.reshape(-1), 0.3, axis=0),
    "percentile": lambda p, x: p.percentile(x, [[30], [40]]), "nanquantile": lambda p, x: p.nanquantile(x, 0.3),
    "nanmedian": lambda p, x: p.nanmedian(x), "nanvar": lambda p, x: p.nanvar(x),
    "nanstd": lambda p, x: p.nanstd(x, ddof=1), "nanprod": lambda p, x: p.nanprod(x), "cov": lambda p, x: p.cov(x),
    "corrcoef": lambda p, x: p.corrcoef(x), "histogram": lambda p, x: p.histogram(x, 3)[0],
    "histogram range": lambda p, x: p.histogram(x, 3, (0, 2))[0],
    "histogram_bin_edges": lambda p, x: p.histogram_bin_edges(x, 3),
    "digitize": lambda p, x: p.digitize(x, [0.0, 1.0, 2.0]), "digitize no bins": lambda p, x: p.digitize(x, []),
    "union1d": lambda p, x: p.union1d(x, [1.0, 2.0]), "intersect1d": lambda p, x: p.intersect1d(x, [1.0, np.nan]),
    "setdiff1d": lambda p, x: p.setdiff1d(x, [1.0]), "setxor1d": lambda p, x: p.setxor1d(x, [1.0]),
    "ix_": lambda p, x: p.ix_(x), "r_": lambda p, x: p.r_[x, 1], "c_": lambda p, x: p.c_[x],
    "sort_complex": lambda p, x: p.sort_complex(x), "geomspace of none": lambda p, x: p.geomspace(1, 8, 0),
    "geomspace of one": lambda p, x: p.geomspace(1, 8, 1), "geomspace below": lambda p, x: p.geomspace(-1.0, -8.0, 4),
}  # fmt: skip


def outcome(call: Any, namespace: Any, x: Any) -> Any:
    """The result, or None for an error of any kind."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(namespace, x)
    except (ValueError, TypeError, IndexError):
        return None


def same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
        return
    assert np.asarray(ours).dtype == np.asarray(theirs).dtype
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-14, strict=True)


@each(("shape", "name"), covering(ARRAYS, CALLS, least=92))
def test_edges_are_numpys(name: str, shape: str) -> None:
    theirs = outcome(CALLS[name], np, ARRAYS[shape])
    ours = outcome(CALLS[name], tnp, tnp.asarray(ARRAYS[shape]))
    assert (ours is None) == (theirs is None)
    if theirs is not None:
        same(ours, theirs)


DIAGONALS = {
    "eye": lambda p, k: p.eye(2, 3, k=k), "tri": lambda p, k: p.tri(2, 3, k=k), "tril": lambda p, k: p.tril(M, k),
    "triu": lambda p, k: p.triu(M, k), "diagonal": lambda p, k: p.diagonal(M, k), "trace": lambda p, k: p.trace(M, k),
    "diagonal of bools": lambda p, k: p.diagonal(M > 2, k), "diag": lambda p, k: p.diag(M, k),
}  # fmt: skip
M = np.array([[-0.0, 1.0, 2.0], [3.0, -0.0, np.nan]])


@pytest.mark.parametrize("k", [-2, -1, 0, 2, 3, -5, 2**31 - 1, 1 - 2**31])
@pytest.mark.parametrize("name", DIAGONALS)
def test_diagonals_beyond_the_corners_are_empty(name: str, k: int) -> None:
    ours, theirs = np.asarray(DIAGONALS[name](tnp, k)), np.asarray(DIAGONALS[name](np, k))
    np.testing.assert_array_equal(ours, theirs, strict=True)
    np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))


@pytest.mark.parametrize("k", [2**63, -(2**70)])
def test_places_of_diagonals_may_be_of_any_size(k: int) -> None:
    assert bool(tnp.eye(3, k=k).any()) is False
    np.testing.assert_array_equal(tnp.tril(M, k), M if k > 0 else np.zeros((2, 3)))
    np.testing.assert_array_equal(tnp.triu(M, k), np.zeros((2, 3)) if k > 0 else M)
    assert tnp.diagonal(M, k).shape == (0,)


COMPLEX = np.array([1 + 2j, 1 - 1j, -2 + 0j, 3 + 1j, complex(np.nan, 1), complex(1, np.nan), complex(np.inf, -1)])


def test_complex_numbers_are_searched_and_clipped_in_the_order_of_sort() -> None:
    ordered = np.sort(COMPLEX)
    for side in ("left", "right"):
        np.testing.assert_array_equal(
            tnp.searchsorted(ordered, COMPLEX, side=side), np.searchsorted(ordered, COMPLEX, side=side)
        )
    np.testing.assert_array_equal(tnp.isin(COMPLEX, COMPLEX[1:3]), np.isin(COMPLEX, COMPLEX[1:3]))
    finite = COMPLEX[:4]
    np.testing.assert_array_equal(tnp.median(finite), np.median(finite))
    np.testing.assert_array_equal(np.isnan(tnp.median(COMPLEX)), np.isnan(np.median(COMPLEX)))
    np.testing.assert_array_equal(tnp.clip(finite, 0, 2 + 1j), np.clip(finite, 0, 2 + 1j))


def test_nan_is_once_of_each_array_in_what_is_in_one_alone() -> None:
    for x, y in (([np.nan, 1.0, np.nan], [np.nan, 2.0]), ([np.nan, 1.0], [1.0]), ([1.0], [np.nan, np.nan])):
        expected = np.setxor1d(x, y)
        np.testing.assert_array_equal(tnp.setxor1d(x, y), expected)
        np.testing.assert_array_equal(tnp.setxor1d(x, y, size=len(expected)), expected)


@pytest.mark.parametrize(
    ("name", "axis"), covering(["quantile", "nanquantile", "percentile"], [None, 0, 1, (0, 1)], least=6)
)
def test_weighted_quantiles_are_numpys(name: str, axis: Any, rng: np.random.Generator) -> None:
    x, weights = rng.normal(size=(4, 5)), rng.integers(0, 3, (4, 5)) + 0.0
    weights[0] = weights[:, 1] = 1.0
    q = np.array([0.0, 0.3, 0.5, 1.0]) * (100 if name == "percentile" else 1)
    spreads = [weights, {0: weights[:, 0] + 1, 1: weights[0]}.get(axis, weights)]  # type: ignore[call-overload]
    for given in spreads:
        options = {"axis": axis, "weights": given, "method": "inverted_cdf"}
        expected = getattr(np, name.removeprefix("nan"))(x, q, **options)  # NumPy's nanquantile cuts the weights twice
        np.testing.assert_array_equal(getattr(tnp, name)(x, q, **options), expected)
        compiled = tracer.jit(lambda x, options=options: getattr(tnp, name)(x, q, **options))
        np.testing.assert_array_equal(compiled(x), expected)
    with pytest.raises(ArgumentError, match=rf'^{name} at .* takes weights with method="inverted_cdf"'):
        getattr(tnp, name)(x, q, axis=axis, weights=weights)


def test_averages_weigh_several_axes(rng: np.random.Generator) -> None:
    x, weights = rng.normal(size=(2, 3, 4)), rng.uniform(size=(4, 2))
    np.testing.assert_allclose(
        tnp.average(x, axis=(2, 0), weights=weights), np.average(x, axis=(2, 0), weights=weights), rtol=1e-14
    )


def test_linspace_of_integers_has_numpys_roundings() -> None:
    for start in range(-6, 6):
        for stop in range(-6, 40, 7):
            for num in (1, 2, 8, 11, 34):
                expected = np.linspace(start, stop, num, dtype=int)
                assert np.array_equal(tnp.linspace(start, stop, num, dtype=int), expected)


def test_conditions_and_choices_are_rows_of_arrays_as_well() -> None:
    conditions, choices = np.asarray([[True, False, False], [True, True, False]]), np.asarray([[1.0, 2, 3], [4, 5, 6]])
    expected = np.select(conditions, choices, 7)
    for call in (tnp.select, tracer.jit(tnp.select)):
        np.testing.assert_array_equal(call(conditions, choices, 7), expected)
    np.testing.assert_array_equal(tnp.select(tnp.asarray(conditions), [8.0, 9.0]), np.select(conditions, [8.0, 9.0]))
    for none in ((), np.zeros((0, 3), bool)):
        with pytest.raises(ArgumentError, match=r"select at .*one choice for each condition, and at least one"):
            tnp.select(none, ())


def test_lists_without_elements_hold_places_and_counts() -> None:
    for none in ([], ()):
        for ours, theirs in (
            (tnp.take([1.0, 2.0], none), np.take([1.0, 2.0], none)),
            (tnp.take(np.ones((2, 3)), none, 1), np.take(np.ones((2, 3)), none, 1)),
            (tnp.bincount(none), np.bincount(none)),
            (tnp.bincount(none, minlength=3), np.bincount(none, minlength=3)),
        ):
            same(ours, theirs)
    with pytest.raises(ArgumentError, match=r"take at .* takes integer indices"):
        tnp.take([1.0, 2.0], np.zeros(0))


def test_a_bound_of_zero_has_no_ratio_under_jit_as_well() -> None:
    for call in (lambda: tnp.geomspace(0, 4, 3), tracer.jit(lambda: tnp.geomspace(0, 4, 3))):
        with pytest.raises(ArgumentError, match=r"^geomspace at .*: no ratio leads from or to zero"):
            call()
