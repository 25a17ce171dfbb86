"""Distributions beside SciPy's, every function everywhere; tails and large parameters beside mpmath; slopes."""

from __future__ import annotations

import inspect
import itertools
import pickle
import subprocess
import sys
from importlib import import_module
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH, each
from tests.scipy.stats.distribution_cases import CASES, FRACTIONS
from tracer import grad, jit, jvp, vmap
from tracer.errors import ArgumentError, DTypeError, ShapeError
from tracer.scipy import stats

COUNTED = {"bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson"}
FUNCTIONS = [
    (name, function) for name in CASES for function in dir(getattr(stats, name)) if function != "entropy"
]  # fmt: skip
OF_FRACTIONS = ("ppf", "isf")
CANCELLING = {"binom": 1e-8, "nbinom": 1e-8, "poisson": 1e-8}  # of SciPy's; see below for the digits that are ours


def placed(name: str, parameters: tuple[float, ...], function: str) -> Any:
    """Places, and a location and a scale that move them."""
    x = FRACTIONS if function in OF_FRACTIONS else CASES[name][1]
    if name == "binom" and parameters[0] == 1e7:
        return np.asarray([9e5, 1e6, 1.1e6])
    if name == "nbinom" and parameters[0] == 3000.0:
        return np.asarray([0.0, 11000.0, 12000.0, 14000.0])
    if (name, function, parameters) == ("bernoulli", "ppf", (0.0,)):
        return x[x < 1]  # SciPy gives the end of the support, which has no probability
    return x


def agree(found: Any, expected: Any, x: Any, name: str = "") -> None:
    """Wherever SciPy gives a number; where it gives NaN for inf - inf ours is the limit.

    Far out theirs overflows where ours does not: 1e200 squared. Theirs subtracts logarithms of factorials.
    """
    found = np.asarray(found)
    known = ~(np.isnan(expected) & np.isinf(x)) & ~(np.isfinite(x) & (np.abs(x) > 1e199))
    np.testing.assert_allclose(found[known], expected[known], rtol=CANCELLING.get(name, 1e-10), atol=1e-300)
    assert not np.isnan(found[~known]).any()


def test_every_distribution_is_here() -> None:
    modules = {name for name in stats.__all__ if inspect.ismodule(getattr(stats, name))}
    assert modules == {*CASES, "norm", "dirichlet", "multinomial", "multivariate_normal"}


@each(("name", "function"), FUNCTIONS)
@pytest.mark.filterwarnings("ignore")  # of SciPy's
def test_values_are_those_of_scipy(name: str, function: str) -> None:
    ours, theirs = getattr(getattr(stats, name), function), getattr(getattr(scipy.stats, name), function)
    for parameters in CASES[name][0]:
        x = placed(name, parameters, function)
        agree(ours(x, *parameters), theirs(x, *parameters), x, name)
    moved = (3.0,) if name in COUNTED else (-1.5, 2.5)
    y = x if function in OF_FRACTIONS else x * (moved[1] if len(moved) > 1 else 1.0) + moved[0]
    agree(ours(y, *parameters, *moved), theirs(y, *parameters, *moved), y, name)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_all_functions_in_one_program_have_the_values_of_scipy(name: str) -> None:
    parameters, functions = CASES[name][0][-1], [function for of, function in FUNCTIONS if of == name]
    places = [placed(name, parameters, function) for function in functions]
    ours = [getattr(getattr(stats, name), function) for function in functions]
    found = jit(lambda xs, *p: [f(x, *p) for f, x in zip(ours, xs, strict=True)])(places, *parameters)
    for function, x, y in zip(functions, places, found, strict=True):
        agree(y, getattr(getattr(scipy.stats, name), function)(x, *parameters), x, name)


@each(("name", "function"), FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_parameters_that_there_are_not_give_nan(name: str, function: str) -> None:
    ours = getattr(getattr(stats, name), function)
    parameters, _, wrong = CASES[name]
    x = 0.5 if function in OF_FRACTIONS else 1.0
    for p in wrong:
        assert np.isnan(ours(x, *p))
    if name not in COUNTED:
        assert np.isnan(ours(x, *parameters[0], 0.0, -1.0))
        assert np.isnan(ours(x, *parameters[0], 0.0, 0.0))
    assert np.isnan(ours(np.nan, *parameters[0]))


@each(("name", "function"), FUNCTIONS)
def test_dtypes_are_kept_and_narrow_ones_computed_in_f32(name: str, function: str) -> None:
    ours = getattr(getattr(stats, name), function)
    parameters = CASES[name][0][0]
    of_shares = function in OF_FRACTIONS or name in ("beta", "uniform")
    x = np.asarray([0.25, 0.5] if of_shares else [1.0, 2.0])
    expected = np.asarray(ours(x, *parameters))
    for dtype, rtol in (("float32", 1e-5), ("float16", 2e-3), ("bfloat16", 1e-2)):
        found = ours(tnp.asarray(x, dtype), *parameters)
        assert found.dtype == dtype
        np.testing.assert_allclose(np.asarray(found, float), expected, rtol=rtol, atol=rtol)
    with pytest.raises(DTypeError, match=rf"^{name}.{function} at .* takes real numbers"):
        ours(x + 1j, *parameters)


INNER = {"beta": [0.2, 0.7], "uniform": [0.2, 0.7], "wrapcauchy": [0.5, 2.0], "vonmises": [0.5, 2.0],
         "pareto": [1.7, 3.0], "truncnorm": [0.8, 1.3]}  # fmt: skip


@pytest.mark.parametrize(("name", "function"), FUNCTIONS)
def test_slopes_are_differences_in_every_parameter(name: str, function: str) -> None:
    ours = getattr(getattr(stats, name), function)
    names = list(inspect.signature(ours).parameters)
    moved = (3.0,) if name in COUNTED else (0.3, 1.5)
    turn = FUNCTIONS.index((name, function))  # of the parameters each function has a half, its neighbour the other
    for number, parameters in enumerate(CASES[name][0]):
        if not THOROUGH and (number + turn) % 2 and len(CASES[name][0]) > 1:
            continue
        if not all(np.isfinite(parameters)) or 30.0 in parameters or 1e7 in parameters or 1e10 in parameters:
            continue
        if (name in COUNTED and {0.0, 1.0, 1e-9}.intersection(parameters)) or (name, 0.0) == (name, *parameters[:1]):
            continue  # at the end of what a parameter may be
        places = [0.3, 0.8] if function in OF_FRACTIONS else INNER.get(name, [1.0, 2.0])
        for place in places if THOROUGH else [places[number % 2]]:
            x = place if function in OF_FRACTIONS else place * moved[-1] + moved[0] if len(moved) > 1 else place + 3.0
            if ours(x, *parameters, *moved) == -np.inf:
                continue
            point = [x, *map(float, parameters), *moved]
            varied = [
                at for at, parameter in enumerate(names)
                if (parameter != "n" or name == "nbinom") and not (name in COUNTED and parameter in ("k", "loc", "q"))
            ]  # fmt: skip
            steps = np.zeros((len(varied), len(point)))
            steps[range(len(varied)), varied] = [1e-5 * max(1.0, abs(point[at])) for at in varied]
            up, down = np.asarray(ours(*np.transpose([point + steps, point - steps], (2, 0, 1))))
            slopes = grad(ours, varied)(*point)
            for at, slope, step, above, below in zip(varied, map(float, slopes), steps.max(1), up, down, strict=True):
                assert abs(slope - (above - below) / (2 * step)) <= 2e-6 * max(1.0, abs(slope)), (names[at], point)


@pytest.mark.parametrize(("name", "function"), FUNCTIONS)
def test_slopes_outside_of_the_support_and_at_infinity_are_no_nan(name: str, function: str) -> None:
    ours = getattr(getattr(stats, name), function)
    parameters = CASES[name][0][0]
    x = np.asarray([-np.inf, -3.0, 1e5, np.inf])
    if function in OF_FRACTIONS:
        x = np.asarray([0.3, 0.6])
    x = x[~np.isnan(np.asarray(ours(x, *parameters)))]
    slopes = vmap(grad(lambda v: ours(v, *parameters)))(x)
    assert not np.isnan(slopes).any()
    _, along = jvp(lambda v: ours(v, *parameters), (tnp.asarray(x),), (tnp.ones(x.size),))
    np.testing.assert_allclose(along, slopes, rtol=1e-13)


def test_slopes_at_the_ends_of_parameters_and_of_supports() -> None:
    """Where what is not taken has an infinite slope."""
    for way in (lambda f: f, jit):
        assert way(grad(lambda p: stats.binom.logpmf(0, 5, p)))(0.0) == -5
        assert way(grad(lambda p: stats.binom.logpmf(5, 5, p)))(1.0) == 5
        assert way(grad(lambda p: stats.nbinom.logpmf(0, 5.0, p)))(1.0) == 5
        assert way(grad(lambda mu: stats.poisson.logpmf(0, mu)))(0.0) == -1
        assert way(grad(lambda x: stats.gamma.logpdf(x, 1.0)))(0.0) == -1
        assert way(grad(lambda x: stats.chi2.logpdf(x, 2.0)))(0.0) == -0.5
        for exponent in (0.5, 1.0, 2.0, 8.0):
            slope = float(way(grad(lambda x: stats.gennorm.cdf(x, exponent)))(0.0))  # noqa: B023
            assert slope == pytest.approx(float(stats.gennorm.pdf(0.0, exponent)), rel=1e-14)
        assert way(grad(lambda beta: stats.gennorm.cdf(0.0, beta)))(2.0) == 0


def _log_ways(n: Any, k: Any) -> Any:
    return mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)


def _log_beta(a: Any, b: Any) -> Any:
    return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)


# The documented densities, read for real counts and real numbers of trials; parameters, and the counts at both ends.
OF_REAL_COUNTS: dict[str, tuple[Any, list[tuple[float, ...]], tuple[float, ...]]] = {
    "bernoulli": (lambda k, p: k * mpmath.log(p) + (1 - k) * mpmath.log1p(-p), [(0.3,)], (0, 1)),
    "betabinom": (
        lambda k, n, a, b: _log_ways(n, k) + _log_beta(k + a, n - k + b) - _log_beta(a, b),
        [(7, 0.3, 2.0), (7, 30.0, 2.0)], (0, 1, 6, 7),
    ),
    "binom": (
        lambda k, n, p: _log_ways(n, k) + k * mpmath.log(p) + (n - k) * mpmath.log1p(-p),
        [(7, 0.3), (7, 0.999)], (0, 1, 6, 7),
    ),
    "geom": (lambda k, p: (k - 1) * mpmath.log1p(-p) + mpmath.log(p), [(0.3,)], (1, 2)),
    "nbinom": (
        lambda k, n, p: _log_ways(k + n - 1, k) + n * mpmath.log(p) + k * mpmath.log1p(-p),
        [(0.4, 0.3), (40.0, 0.9)], (0, 1, 40),
    ),
    "poisson": (lambda k, mu: k * mpmath.log(mu) - mu - mpmath.loggamma(k + 1), [(0.3,), (70.0,)], (0, 1, 15, 16)),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_REAL_COUNTS)
def test_slopes_in_counts_and_trials_are_those_of_the_density_at_real_numbers(name: str) -> None:
    """Also at both ends of the support, where a branch may drop the terms that are zero there."""
    density, drawn, counts = OF_REAL_COUNTS[name]
    ours = getattr(stats, name).logpmf
    points = np.asarray([(count, *parameters) for parameters in drawn for count in counts], float)
    places = tuple(range(points.shape[1]))
    slopes, bends = jit(
        lambda xs: (vmap(tracer.jacrev(lambda x: ours(*x)))(xs), vmap(tracer.hessian(lambda x: ours(*x)))(xs))
    )(points)
    with mpmath.workdps(40):
        for number, (point, slope, bend) in enumerate(zip(points, slopes, bends, strict=True)):
            at = tuple(map(mpmath.mpf, map(float, point)))
            for i in places:
                exact = mpmath.diff(density, at, tuple(int(i == p) for p in places))
                assert float(slope[i]) == pytest.approx(float(exact), rel=1e-9, abs=1e-9), (point, i)
                for j in places[i:]:
                    if not THOROUGH and (i + j + number) % 2:  # half of the pairs at a point, the others at the next
                        continue
                    exact = mpmath.diff(density, at, tuple((i == p) + (j == p) for p in places))
                    for found in (bend[i, j], bend[j, i]):
                        assert float(found) == pytest.approx(float(exact), rel=1e-7, abs=1e-7), (point, i, j)


def relative(found: Any, exact: Any) -> float:
    return float(abs(mpmath.mpf(float(found)) / exact - 1))


def test_densities_of_large_parameters_do_not_cancel() -> None:
    """Where sums of logarithms of factorials would keep six digits or fewer."""
    with mpmath.workdps(60):
        m = mpmath.mpf
        for k, mean in itertools.product((1e6, 1e9), (0.999, 1.0, 1.001)):
            mu = k * mean
            exact = m(k) * mpmath.log(m(mu)) - m(mu) - mpmath.loggamma(m(k) + 1)
            assert relative(stats.poisson.logpmf(k, mu), exact) < 1e-12
            exact = (m(k) - 1) * mpmath.log(m(mu)) - m(mu) - mpmath.loggamma(m(k))
            assert relative(stats.gamma.logpdf(mu, k), exact) < 1e-12
        for k, n, p in ((3e5, 1e6, 0.3), (3.01e5, 1e6, 0.3), (3.0, 1e9, 1e-9), (1e9 - 2, 1e9, 1 - 2.0**-30)):
            ways = mpmath.loggamma(m(n) + 1) - mpmath.loggamma(m(k) + 1) - mpmath.loggamma(m(n) - m(k) + 1)
            exact = ways + m(k) * mpmath.log(m(p)) + (m(n) - m(k)) * mpmath.log1p(-m(p))
            assert relative(stats.binom.logpmf(k, n, p), exact) < 1e-12
            ways = mpmath.loggamma(m(n) + m(k)) - mpmath.loggamma(m(n)) - mpmath.loggamma(m(k) + 1)
            exact = ways + m(n) * mpmath.log(m(p)) + m(k) * mpmath.log1p(-m(p))
            assert relative(stats.nbinom.logpmf(k, n, p), exact) < 1e-12
        for a, b, x in ((1e6, 2e6, 1 / 3), (1e6, 2e6, 0.334), (0.5, 1e8, 1e-8)):
            weight = mpmath.loggamma(m(a) + m(b)) - mpmath.loggamma(m(a)) - mpmath.loggamma(m(b))
            exact = weight + (m(a) - 1) * mpmath.log(m(x)) + (m(b) - 1) * mpmath.log1p(-m(x))
            assert relative(stats.beta.logpdf(x, a, b), exact) < 1e-12
        for v, y in ((1e6, 1.5), (1e12, 3.0), (2.0, 1e200), (1e-3, 1e5)):
            half = m(v) / 2
            exact = mpmath.loggamma(half + m(1) / 2) - mpmath.loggamma(half) - mpmath.log(mpmath.pi * m(v)) / 2
            exact -= (half + m(1) / 2) * mpmath.log1p(m(y) ** 2 / m(v))
            assert relative(stats.t.logpdf(y, v), exact) < 1e-12


def test_tails_are_small_and_not_nothing() -> None:
    with mpmath.workdps(40):
        for x in (-1e30, -1e8, -40.0):
            assert relative(stats.cauchy.cdf(x), mpmath.atan2(1, -x) / mpmath.pi) < 1e-15
            assert relative(stats.cauchy.sf(-x), mpmath.atan2(1, -x) / mpmath.pi) < 1e-15
        for q in (1e-300, 1e-20, 0.3):
            exact = -mpmath.cot(mpmath.pi * mpmath.mpf(q))
            assert relative(stats.cauchy.ppf(q), exact) < 4e-15
            assert relative(stats.cauchy.isf(q), -exact) < 4e-15
        assert relative(stats.beta.sf(1e-20, 0.01, 5.0), mpmath.betainc(0.01, 5, 1e-20, 1, regularized=True)) < 1e-13
        assert relative(stats.beta.logcdf(1e-20, 0.01, 5.0),
                        mpmath.log(mpmath.betainc(0.01, 5, 0, 1e-20, regularized=True))) < 1e-13  # fmt: skip
        assert relative(stats.gennorm.cdf(-30.0, 1.0), mpmath.exp(-30) / 2) < 1e-13
        assert relative(stats.gumbel_r.logsf(100.0), -100 - mpmath.exp(-100) / 2) < 1e-15
        assert relative(stats.expon.logcdf(1e-20), mpmath.log(mpmath.mpf(1e-20))) < 1e-15
        assert relative(stats.truncnorm.logpdf(31.0, 30.0, 40.0), mpmath.log(
            mpmath.npdf(31) / (mpmath.ncdf(-30) - mpmath.ncdf(-40)))) < 1e-11  # fmt: skip


def test_the_entropy_of_poisson_s_distribution() -> None:
    means = np.asarray([1e-9, 0.1, 1.0, 7.3, 49.0, 51.0, 300.0, 1e6])
    for mean, found in zip(means, np.asarray(jit(stats.poisson.entropy)(means)), strict=True):
        with mpmath.workdps(40):
            m = mpmath.mpf(float(mean))
            spread = int(mean + 60 * (mean**0.5 + 1)) if mean < 1e5 else 0
            if not spread:
                exact = mpmath.log(2 * mpmath.pi * mpmath.e * m) / 2 - 1 / (12 * m) - 1 / (24 * m * m)
            else:
                terms = (mpmath.exp(k * mpmath.log(m) - m - mpmath.loggamma(k + 1)) * mpmath.loggamma(k + 1)
                         for k in range(2, spread))  # fmt: skip
                exact = m - m * mpmath.log(m) + mpmath.fsum(terms)
        assert relative(found, exact) < 1e-12, mean
    assert float(stats.poisson.entropy(0.0)) == 0
    assert np.isnan(stats.poisson.entropy(-1.0))
    slope = (float(stats.poisson.entropy(3.0 + 1e-5)) - float(stats.poisson.entropy(3.0 - 1e-5))) / 2e-5
    assert abs(float(grad(stats.poisson.entropy)(3.0)) - slope) < 1e-8


@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_multinomial(way: Any) -> None:
    p = np.asarray([0.2, 0.3, 0.5])
    x = np.asarray([[1, 2, 3], [6, 0, 0], [1, 1, 1], [-1, 4, 3]])
    for f in ("pmf", "logpmf"):
        expected = getattr(scipy.stats.multinomial, f)(x, 6, p)
        np.testing.assert_allclose(way(getattr(stats.multinomial, f))(x, 6, p), expected, rtol=1e-13)
    large = np.asarray([200_000, 300_000, 500_000])
    with mpmath.workdps(60):
        exact = mpmath.loggamma(1_000_001) + sum(
            int(k) * mpmath.log(mpmath.mpf(q)) - mpmath.loggamma(int(k) + 1) for k, q in zip(large, p, strict=True)
        )
    assert relative(way(stats.multinomial.logpmf)(large, 1_000_000, p), exact) < 1e-12
    slopes = way(grad(lambda q: stats.multinomial.logpmf(x[0], 6, q)))(p)
    np.testing.assert_allclose(slopes, x[0] / p, rtol=1e-12)


@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_dirichlet(way: Any) -> None:
    alpha = np.asarray([0.5, 1.0, 3.0])
    x = np.asarray([[0.2, 0.3], [0.3, 0.1], [0.5, 0.6]])
    for f in ("pdf", "logpdf"):
        ours, theirs = way(getattr(stats.dirichlet, f)), getattr(scipy.stats.dirichlet, f)
        np.testing.assert_allclose(ours(x, alpha), theirs(x, alpha), rtol=1e-13)
        np.testing.assert_allclose(ours(x[:-1], alpha), theirs(x[:-1], alpha), rtol=1e-13)
    np.testing.assert_array_equal(way(stats.dirichlet.pdf)(np.asarray([0.5, 0.1, 0.2]), alpha), 0.0)
    assert np.isnan(stats.dirichlet.pdf(x[:, 0], np.asarray([1.0, 1.0, -1.0])))
    slopes = way(grad(lambda a: stats.dirichlet.logpdf(x[:, 0], a)))(alpha)
    digamma = scipy.special.digamma
    np.testing.assert_allclose(slopes, np.log(x[:, 0]) + digamma(alpha.sum()) - digamma(alpha), rtol=1e-12)
    with pytest.raises(ShapeError, match=r"^dirichlet.logpdf at .*: x is \[k, \*s\] or \[k - 1, \*s\], alpha \[k\]"):
        stats.dirichlet.logpdf(np.ones(5), alpha)


@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_multivariate_normal(way: Any) -> None:
    rng = np.random.default_rng(2)
    x, mean, root = rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=(3, 3))
    cov = root @ root.T + np.eye(3)
    for f in ("pdf", "logpdf"):
        ours, theirs = way(getattr(stats.multivariate_normal, f)), getattr(scipy.stats.multivariate_normal, f)
        np.testing.assert_allclose(ours(x, mean, cov), theirs(x, mean, cov), rtol=1e-12)
        np.testing.assert_allclose(ours(x[0], mean, cov), theirs(x[0], mean, cov), rtol=1e-12)
        np.testing.assert_allclose(ours(x, mean, 2.0), theirs(x, mean, 2.0), rtol=1e-12)
        np.testing.assert_allclose(ours(x, 0.5, 2.0), theirs(x.reshape(-1, 1), 0.5, 2.0).reshape(4, 3), rtol=1e-12)
        many = ours(x, mean, np.stack([cov, 2 * cov, 3 * cov, cov]))
        each = [theirs(x[i], mean, s * cov) for i, s in enumerate((1, 2, 3, 1))]
        np.testing.assert_allclose(many, each, rtol=1e-12)
    by_x = way(grad(lambda v: stats.multivariate_normal.logpdf(v, mean, cov)))(x[0])
    np.testing.assert_allclose(by_x, -np.linalg.solve(cov, x[0] - mean), rtol=1e-12)
    by_cov = way(grad(lambda c: stats.multivariate_normal.logpdf(x[0], mean, c)))(cov)
    away = np.linalg.solve(cov, x[0] - mean)
    both = np.asarray(by_cov) + np.asarray(by_cov).T
    np.testing.assert_allclose(both, np.outer(away, away) - np.linalg.inv(cov), rtol=1e-10, atol=1e-12)
    with pytest.raises(ShapeError, match=r"^multivariate_normal.pdf at .*: x and mean are"):
        stats.multivariate_normal.pdf(x, mean, np.eye(2))
    with pytest.raises(ArgumentError, match="singular covariances have no density"):
        stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=True)
    expected = scipy.stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=False)
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=False), expected)


def test_modules_are_reached_as_scipy_s() -> None:
    for name in (*CASES, "norm", "dirichlet", "multinomial", "multivariate_normal"):
        module = getattr(tracer.scipy.stats, name)
        assert import_module(f"tracer.scipy.stats.{name}") is module
        assert module.__name__ == f"tracer.scipy.stats.{name}"


def test_functions_are_pickled_by_their_public_name() -> None:
    script = "import pickle, sys; f = pickle.load(sys.stdin.buffer); print(f.__module__, f.__name__)"
    found = subprocess.run(
        [sys.executable, "-c", script], input=pickle.dumps(stats.beta.pdf), capture_output=True, check=True
    )
    assert found.stdout.split() == [b"tracer.scipy.stats.beta", b"pdf"]
