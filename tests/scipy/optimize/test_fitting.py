"""Least squares beside SciPy: losses, bounds, covariances, and derivatives of fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import tracer
import tracer.numpy as tnp
from tracer import errors
from tracer.scipy.optimize import curve_fit, least_squares

T = np.linspace(0, 3, 30)
OPEN = (-np.inf, np.inf)


def decay(t: Any, a: Any, b: Any, c: Any) -> Any:
    return a * tnp.exp(-b * t) + c


def test_fits_are_scipy_s(rng: np.random.Generator) -> None:
    y = 3 * np.exp(-1.5 * T) + 0.2 + 0.05 * rng.normal(size=T.size)
    sigma = rng.uniform(0.5, 2, size=T.size)
    for options in ({}, {"sigma": sigma}, {"sigma": sigma, "absolute_sigma": True}):
        p, covariance = curve_fit(decay, T, y, np.ones(3), **options)
        expected = scipy.optimize.curve_fit(lambda t, a, b, c: a * np.exp(-b * t) + c, T, y, np.ones(3), **options)
        np.testing.assert_allclose(p, expected[0], rtol=1e-5)
        np.testing.assert_allclose(covariance, expected[1], rtol=1e-4)
    found = least_squares(lambda p, t, y: decay(t, *p) - y, np.ones(3), args=(T,), kwargs={"y": y})
    theirs = scipy.optimize.least_squares(lambda p: p[0] * np.exp(-p[1] * T) + p[2] - y, np.ones(3), method="lm")
    assert float(found.cost) == pytest.approx(theirs.cost, rel=1e-10)
    np.testing.assert_allclose(found.jac, theirs.jac, rtol=1e-4, atol=1e-6)
    assert bool(found.success)


def test_derivatives_of_fits(rng: np.random.Generator) -> None:
    y = tnp.asarray(3 * np.exp(-1.5 * T) + 0.2 + 0.05 * rng.normal(size=T.size))

    def fit(y: Any) -> Any:
        return least_squares(lambda p: decay(T, p[0], p[1], p[2]) - y, np.ones(3), ftol=0, xtol=0, gtol=0).x

    direction = rng.normal(size=T.size)
    expected = (fit(y + 1e-5 * direction) - fit(y - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose(tracer.jit(tracer.jacrev(fit))(y) @ direction, expected, rtol=1e-5)


def outliers(rng: np.random.Generator) -> Any:
    y = 3 * np.exp(-1.5 * T) + 0.2 + 0.05 * rng.normal(size=T.size)
    y[::7] += 2
    return y


@pytest.mark.parametrize("bounds", [OPEN, ([0, 0, 0.3], [2.0, 5, np.inf])])
def test_losses_and_bounds_are_scipy_s(bounds: Any, rng: np.random.Generator) -> None:
    y = outliers(rng)

    def fit(module: Any, loss: Any, **options: Any) -> Any:
        exp = (tnp if module is tracer.scipy.optimize else np).exp
        return module.least_squares(
            lambda p: p[0] * exp(-p[1] * T) + p[2] - y, np.ones(3), loss=loss, f_scale=0.1, bounds=bounds, **options
        )

    for loss in ("soft_l1", "huber", "cauchy", lambda z: tnp.stack([tnp.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2])):
        mine = fit(tracer.scipy.optimize, loss)
        theirs = fit(scipy.optimize, "cauchy" if callable(loss) else loss, ftol=1e-12, xtol=1e-12)
        np.testing.assert_allclose(mine.x, theirs.x, rtol=1e-4, atol=1e-5)
        assert float(mine.cost) == pytest.approx(theirs.cost, rel=1e-8)
        assert mine.active_mask.tolist() == theirs.active_mask.tolist()
        assert bool(mine.success)
        assert float(mine.optimality) < 1e-3


def test_solutions_at_bounds_and_of_trees_in_batches() -> None:
    found = least_squares(lambda x: x - tnp.asarray([3.0, -4.0, 0.5]), np.full(3, 9.0), bounds=(-1, [2, 2, 2]))
    np.testing.assert_allclose(found.x, [2, -1, 0.5], atol=1e-8)
    assert found.active_mask.tolist() == [1, -1, 0]
    low = {"a": tnp.zeros(2), "b": tnp.asarray(1.0)}
    tree = least_squares(lambda t: {"a": t["a"] + 1, "b": t["b"]}, {"a": np.ones(2), "b": 3.0}, bounds=(low, np.inf))
    assert (tree.x["a"].tolist(), float(tree.x["b"])) == ([0, 0], 1)
    lanes = tracer.jit(tracer.vmap(lambda a: least_squares(lambda x: x**2 - a, tnp.ones(1), bounds=(0, 1.5)).x[0]))
    np.testing.assert_allclose(lanes(tnp.asarray([2.0, 4.0])), [np.sqrt(2), 1.5], rtol=1e-6)


def test_derivatives_with_losses_and_bounds(rng: np.random.Generator) -> None:
    y = tnp.asarray(outliers(rng))

    def fit(y: Any, high: Any, scale: Any) -> Any:
        return least_squares(
            lambda p: decay(T, p[0], p[1], p[2]) - y, np.ones(3), bounds=(0, tnp.stack([high, 5, 5])), loss="soft_l1",
            f_scale=scale, ftol=0, xtol=0, gtol=0,
        ).x  # fmt: skip

    at, direction = (y, tnp.asarray(2.0), tnp.asarray(0.1)), (tnp.asarray(rng.normal(size=T.size)), 1.0, 1.0)
    fit = tracer.jit(fit)
    ahead, behind = (fit(*(x + h * d for x, d in zip(at, direction, strict=True))) for h in (1e-3, -1e-3))
    found = tracer.jvp(fit, at, tuple(tnp.asarray(d) for d in direction))[1]
    assert float(found[0]) == pytest.approx(1)  # at its bound
    np.testing.assert_allclose(found, (ahead - behind) / 2e-3, rtol=1e-3)


def test_curve_fit_guesses_and_weighs_as_scipy_does(rng: np.random.Generator) -> None:
    y = 3 * np.exp(-1.5 * T) + 0.2 + 0.05 * rng.normal(size=T.size)
    noise = np.exp(-np.abs(T[:, None] - T)) + np.eye(T.size)
    p, covariance = curve_fit(decay, T, y, sigma=noise, bounds=(0, 2.5))
    theirs = scipy.optimize.curve_fit(
        lambda t, a, b, c: a * np.exp(-b * t) + c, T, y, np.ones(3), sigma=noise, bounds=(0, 2.5), ftol=1e-12
    )
    np.testing.assert_allclose(p, theirs[0], rtol=1e-5)
    np.testing.assert_allclose(covariance, theirs[1], rtol=1e-4)


def test_wrong_calls_are_refused() -> None:
    def line(x: Any) -> Any:
        return x

    with pytest.raises(errors.ArgumentError, match=r'^least_squares at test_fitting.py:.*: method is "trf" or "lm"'):
        least_squares(line, np.ones(2), method="dogbox")
    with pytest.raises(errors.ArgumentError, match='"lm" takes neither bounds nor a loss'):
        least_squares(line, np.ones(2), method="lm", loss="huber")
    with pytest.raises(errors.ArgumentError, match="no such loss\n  got 'l1'\n  help: linear, soft_l1, huber"):
        least_squares(line, np.ones(2), loss="l1")
    with pytest.raises(errors.ArgumentError, match="each lower bound is below the upper one"):
        least_squares(line, np.ones(2), bounds=([0, 1], [1, 1]))
    with pytest.raises(errors.ShapeError, match="one for each of the 2 unknowns\n  got 3"):
        least_squares(line, np.ones(2), bounds=([0, 1, 2], 9))
    with pytest.raises(errors.ArgumentError, match="how many parameters there are\n  help: give p0"):
        curve_fit(lambda x, *p: x, T, T)
    with pytest.raises(errors.ShapeError, match="a covariance"):
        curve_fit(decay, T, T, sigma=np.ones(3))
