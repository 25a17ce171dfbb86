"""`gaussian_kde` and `mode` against SciPy's; names of SciPy's that are not here say why."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.stats

import tracer
import tracer.numpy as tnp
from tests.grids import covering, each
from tracer.errors import ArgumentError, ShapeError
from tracer.scipy import sparse, stats

RNG = np.random.default_rng(5)
WEIGHTS = RNG.random(30)
SAMPLES = {1: RNG.standard_normal(30), 3: RNG.standard_normal((3, 30)) * [[1.0], [10.0], [0.1]]}
POINTS = {1: np.linspace(-3.0, 3.0, 7), 3: SAMPLES[3][:, :5] + 0.05}


@pytest.mark.parametrize(
    ("dimensions", "method", "weights"),
    covering([1, 3], [None, "scott", "silverman", 0.3, lambda density: density.neff**-0.4], [None, WEIGHTS], least=10),
)
def test_densities_of_samples_are_scipys(dimensions: int, method: Any, weights: Any) -> None:
    samples, points = SAMPLES[dimensions], POINTS[dimensions]
    mine, theirs = (k(samples, method, weights) for k in (stats.gaussian_kde, scipy.stats.gaussian_kde))
    assert (mine.d, mine.n) == (theirs.d, theirs.n)
    for name in ("neff", "covariance", "inv_cov"):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-12)
    for call in (mine, mine.evaluate, mine.pdf, tracer.jit(mine.pdf)):
        np.testing.assert_allclose(call(points), theirs(points), rtol=1e-11)
    np.testing.assert_allclose(mine.logpdf(points), theirs.logpdf(points), rtol=1e-11)
    mean, spread = np.full(dimensions, 0.5), np.eye(dimensions) * 2.0
    np.testing.assert_allclose(
        mine.integrate_gaussian(mean, spread), theirs.integrate_gaussian(mean, spread), rtol=1e-11
    )
    others = samples[..., 3:] * 1.5
    np.testing.assert_allclose(
        mine.integrate_kde(stats.gaussian_kde(others)),
        theirs.integrate_kde(scipy.stats.gaussian_kde(others)),
        rtol=1e-11,
    )
    if dimensions == 1:
        np.testing.assert_allclose(mine.integrate_box_1d(-0.5, 2.0), theirs.integrate_box_1d(-0.5, 2.0), rtol=1e-11)


def test_far_out_the_logarithm_of_a_density_stays_a_number() -> None:
    density = stats.gaussian_kde(tnp.asarray([0.0, 1.0]))
    assert float(density(tnp.asarray([1e3]))[0]) == 0.0
    assert -1e7 < float(density.logpdf(tnp.asarray([1e3]))[0]) < -1e5


def test_densities_are_trees_and_differentiable_in_samples_weights_and_points() -> None:
    def score(samples: Any, weights: Any, points: Any) -> Any:
        return stats.gaussian_kde(samples, weights=weights).logpdf(points).sum()

    given = [tnp.asarray(x) for x in (SAMPLES[3], WEIGHTS, POINTS[3])]
    tracer.test_util.check_grads(score, given, order=1, rtol=1e-4, atol=1e-4)
    density = stats.gaussian_kde(SAMPLES[1])
    (leaves, structure) = tracer.tree.flatten(density)
    np.testing.assert_array_equal(tracer.tree.unflatten(structure, leaves)(POINTS[1]), density(POINTS[1]))
    found = tracer.jit(lambda k, x: k.logpdf(x))(density, POINTS[1])
    np.testing.assert_allclose(found, density.logpdf(POINTS[1]), rtol=1e-13)


@pytest.mark.parametrize("dimensions", [1, 3])
def test_draws_follow_the_density(dimensions: int) -> None:
    density = stats.gaussian_kde(SAMPLES[dimensions], weights=WEIGHTS)
    drawn = density.resample(tracer.random.key(0), (20000,))
    assert drawn.shape == (dimensions, 20000)
    mean = np.average(np.atleast_2d(SAMPLES[dimensions]), axis=1, weights=WEIGHTS)
    spread = np.std(drawn, axis=1)
    assert (np.abs(np.mean(drawn, axis=1) - mean) < 5 * spread / 20000**0.5).all()


def test_what_no_density_can_be_made_of_is_refused() -> None:
    density = stats.gaussian_kde(SAMPLES[3])
    for kind, call, said in (
        (ShapeError, lambda: stats.gaussian_kde(1.0), "a dataset holds samples"),
        (ShapeError, lambda: stats.gaussian_kde(SAMPLES[1], weights=[1.0, 2.0]), "a weight for each of the 30 samples"),
        (ArgumentError, lambda: stats.gaussian_kde(SAMPLES[1], "wide"), "bw_method is"),
        (ShapeError, lambda: density(np.zeros((2, 5))), r"points are \[3, m\]"),
        (ShapeError, lambda: density.integrate_box_1d(0.0, 1.0), "integrate_box_1d takes two numbers"),
        (ShapeError, lambda: density.integrate_gaussian(np.zeros(2), np.eye(3)), "a mean and a covariance"),
        (ArgumentError, density.set_bandwidth, "a density keeps its bandwidth"),
        (ArgumentError, lambda: density.integrate_box([0.0], [1.0]), "boxes have one dimension"),
    ):
        with pytest.raises(kind, match=rf"^gaussian_kde at test_densities.py:\d+: {said}"):  # type: ignore[arg-type]
            call()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("axis", "keepdims", "dtype"), covering([0, 1, -1, None], [False, True], ["int64", "float32", "uint8"], least=8)
)
def test_modes_are_scipys(axis: int | None, keepdims: bool, dtype: str) -> None:
    x = RNG.integers(0, 4, (6, 5, 3)).astype(dtype)
    expected = scipy.stats.mode(x, axis=axis, keepdims=keepdims)
    for found in (
        stats.mode(x, axis, keepdims=keepdims),
        tracer.jit(lambda x: stats.mode(x, axis, keepdims=keepdims))(x),
    ):
        assert found.mode.dtype == dtype
        assert found.count.dtype == "int64"
        np.testing.assert_array_equal(found.mode, expected.mode)
        np.testing.assert_array_equal(found.count, expected.count)


def test_modes_of_nans_of_nothing_and_their_slopes() -> None:
    found = stats.mode(tnp.asarray([1.0, np.nan, 2.0, np.nan]))
    assert np.isnan(found.mode)
    assert int(found.count) == 2
    empty = stats.mode(tnp.zeros((0, 2)))
    assert np.isnan(empty.mode).all()
    assert empty.count.tolist() == [0.0, 0.0]
    slope = tracer.grad(lambda x: stats.mode(x).mode)(tnp.asarray([3.0, 1.0, 2.0]))
    assert slope.tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(ArgumentError, match=r"^mode at .*: no such nan_policy\n  got 'raise'"):
        stats.mode(tnp.zeros(2), nan_policy="raise")


def test_modes_that_omit_nans_are_scipys() -> None:
    x = np.asarray([[1.0, np.nan, 2.0, np.nan], [np.nan] * 4, [np.nan, 3.0, 3.0, 1.0], [2.0, 1.0, 1.0, 2.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy's, of rows without numbers
        expected = scipy.stats.mode(x, axis=1, nan_policy="omit")
    found = stats.mode(x, 1, nan_policy="omit")
    np.testing.assert_array_equal(found.mode, expected.mode)
    np.testing.assert_array_equal(found.count, expected.count)


@each(
    ("module", "name", "why"),
    [
        (stats, "weibull_min", "not yet: this distribution"),
        (stats.norm, "rvs", "draws take a key: tracer.random.normal(key, ...)"),
        (stats.vonmises, "rvs", "draws take a key: tracer.random has some"),
        (sparse, "csr_matrix", "tracer.experimental.sparse has BCOO, COO, CSR and CSC"),
        (sparse.linalg, "minres", "gmres takes indefinite matrices"),
        (sparse.linalg, "spsolve", "tracer.scipy.linalg.solve"),
    ],
)
def test_names_of_scipys_that_are_not_here_say_why(module: Any, name: str, why: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}' \(.*{re.escape(why)}"):
        getattr(module, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
        module.nothing  # noqa: B018
