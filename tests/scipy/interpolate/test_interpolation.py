"""Interpolation on grids and by piecewise cubics, beside SciPy's, and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import tracer
import tracer.numpy as tnp
from tracer import errors
from tracer.scipy import interpolate

CURVES = [
    ("PchipInterpolator", {}), ("Akima1DInterpolator", {}),
    ("Akima1DInterpolator", {"method": "makima", "extrapolate": True}), ("CubicSpline", {}),
    ("CubicSpline", {"bc_type": "natural"}), ("CubicSpline", {"bc_type": "clamped", "extrapolate": False}),
    ("CubicSpline", {"bc_type": "periodic"}), ("CubicSpline", {"bc_type": ("not-a-knot", (2, 0.7))}),
]  # fmt: skip


def agree(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("case", range(len(CURVES)))
def test_curves_are_scipy_s(case: int, rng: np.random.Generator) -> None:
    name, options = CURVES[case]
    at = rng.uniform(-1, 5, size=(4, 5))
    for n, shape, axis in ((2, (2,), 0), (3, (3,), 0), (7, (2, 7, 3), 1)):
        x, y = np.cumsum(rng.uniform(0.3, 1, size=n)), rng.normal(size=shape)
        if options.get("bc_type") == "periodic":
            np.moveaxis(y, axis, 0)[-1] = np.moveaxis(y, axis, 0)[0]
        given = dict(options)
        if isinstance(given.get("bc_type"), tuple):
            given["bc_type"] = ("not-a-knot", (2, 0.7 * np.ones(y.shape[:axis] + y.shape[axis + 1 :])))
        mine, theirs = (getattr(m, name)(x, y, axis=axis, **given) for m in (interpolate, scipy.interpolate))
        for nu in (0, 1, 2, 4):
            agree(mine(at, nu), theirs(at, nu))
        agree(tracer.jit(lambda f, t: f.derivative()(t))(mine, at), theirs.derivative()(at))
        agree(mine.antiderivative(2)(at), theirs.antiderivative(2)(at))
        agree(mine.integrate(x[0] + 0.1, x[-1] - 0.1), np.asarray(theirs.integrate(x[0] + 0.1, x[-1] - 0.1)))


def test_periodic_curves_repeat(rng: np.random.Generator) -> None:
    x, y = np.arange(5.0), rng.normal(size=5)
    mine, theirs = (m.CubicSpline(x, y, extrapolate="periodic") for m in (interpolate, scipy.interpolate))
    agree(mine(np.linspace(-7, 9, 20)), theirs(np.linspace(-7, 9, 20)))
    agree(mine.integrate(-3, 9.0), np.asarray(theirs.integrate(-3, 9.0)))


def test_values_and_places_have_derivatives(rng: np.random.Generator) -> None:
    x, y, at = tnp.arange(5.0), tnp.asarray(rng.normal(size=5)), tnp.asarray([0.7, 1.9])
    for name in ("CubicSpline", "PchipInterpolator", "Akima1DInterpolator"):
        curve = getattr(interpolate, name)
        tracer.test_util.check_grads(lambda x, y, t, curve=curve: curve(x, y)(t), (x, y, at), 1)
    f = interpolate.CubicSpline(x, y)
    assert float(tracer.grad(f)(1.3)) == pytest.approx(float(f(1.3, 1)))


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_grids_are_scipy_s(method: str, rng: np.random.Generator) -> None:
    grid = (np.array([0, 1, 2.5, 4]), np.array([-1, 0, 2.0]))
    points = np.stack([rng.uniform(0, 4, 30), rng.uniform(-1, 2, 30)], -1)
    for values in (rng.normal(size=(4, 3, 2)), rng.normal(size=(4, 3)) * (1 + 1j)):
        for options in ({}, {"bounds_error": False}, {"bounds_error": False, "fill_value": None}):
            mine, theirs = (m.RegularGridInterpolator(grid, values, method=method, **options)
                            for m in (interpolate, scipy.interpolate))  # fmt: skip
            at = points if not options else 2 * points
            agree(mine(at), theirs(at))
            agree(tracer.jit(lambda f, p: f(p))(mine, at), theirs(at))
            agree(mine((at[:, 0], 0.5)), theirs((at[:, 0], 0.5)))
    with pytest.raises(errors.OutOfBoundsError, match="points lie within the grid"):
        interpolate.RegularGridInterpolator(grid, values)(3 * points)
    linear = interpolate.RegularGridInterpolator(grid, rng.normal(size=(4, 3)))
    tracer.test_util.check_grads(lambda f, p: f(p), (linear, tnp.asarray(points[:5])), 1)


@pytest.mark.parametrize("method", ["slinear", "cubic", "quintic", "pchip"])
def test_splines_on_grids_are_scipy_s(method: str, rng: np.random.Generator) -> None:
    x, y = np.cumsum(rng.uniform(0.3, 1, size=7)), -np.cumsum(rng.uniform(0.3, 1, size=6))
    at = np.stack([rng.uniform(x[0] - 0.2, x[-1] + 0.2, (2, 4)), rng.uniform(y[-1] - 0.2, y[0], (2, 4))], -1)
    values = rng.normal(size=(7, 6, 2))
    # SciPy solves for all coefficients at once, by default to 6 digits.
    exact = {} if method == "pchip" else {"solver_args": {"rtol": 1e-13, "atol": 1e-13}}
    mine = interpolate.RegularGridInterpolator((x, y), values, method, False, None)
    theirs = scipy.interpolate.RegularGridInterpolator((x, y), values, method, False, None, **exact)
    agree(mine(at), theirs(at))
    for nu in () if method == "pchip" else ((1, 0), (2, 1), (0, 6)):
        agree(mine(at, nu=nu), theirs(at, nu=nu))
    agree(tracer.jit(lambda f, p: f(p))(mine, at), theirs(at))
    linear = interpolate.RegularGridInterpolator((x, y), values, bounds_error=False, fill_value=None)
    agree(linear(at, method), np.asarray(mine(at)))


@pytest.mark.parametrize("method", ["cubic", "pchip"])
def test_splines_on_grids_have_derivatives(method: str, rng: np.random.Generator) -> None:
    grid = tuple(tnp.asarray(np.cumsum(rng.uniform(0.3, 1, size=n))) for n in (5, 4))
    values, at = tnp.asarray(rng.normal(size=(5, 4))), tnp.asarray(rng.uniform(1, 1.4, size=(2, 2)))

    def f(grid: Any, values: Any, at: Any) -> Any:
        return interpolate.RegularGridInterpolator(grid, values, method, False, None)(at)

    tracer.test_util.check_grads(f, (grid, values, at), 1)
    stacked = tnp.stack([values, 2 * values])
    agree(tracer.vmap(f, (None, 0, None))(grid, stacked, at)[1], np.asarray(f(grid, 2 * values, at)))


def test_points_unknown_or_alone_are_scipy_s() -> None:
    grid, values = (np.arange(3.0), np.arange(4.0)), np.arange(12.0).reshape(3, 4) ** 2
    for method in ("linear", "nearest"):
        agree(
            interpolate.interpn(grid, values, [1.2, 0.4], method),
            scipy.interpolate.interpn(grid, values, [1.2, 0.4], method),
        )
        assert np.isnan(interpolate.RegularGridInterpolator(grid, values, method)([np.nan, 0.5])).all()


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match=r"^CubicSpline at test_interpolation.py:.*: x ascends"):
        interpolate.CubicSpline(np.array([0.0, 2.0, 1.0]), np.zeros(3))
    with pytest.raises(errors.ShapeError, match="x is a vector of 2 places at least"):
        interpolate.PchipInterpolator(np.zeros(1), np.zeros(1))
    with pytest.raises(errors.ArgumentError, match="no such end"):
        interpolate.CubicSpline(np.arange(3.0), np.zeros(3), bc_type="flat")
    with pytest.raises(errors.ShapeError, match="points are one vector for each axis"):
        interpolate.RegularGridInterpolator((np.arange(3.0),), np.zeros(4))
    grid = interpolate.RegularGridInterpolator((np.arange(4.0),), np.arange(4.0))
    with pytest.raises(errors.ShapeError, match=r"quintic needs 6 points along each axis\n  got \[4\]"):
        grid([[1.0]], "quintic")
    with pytest.raises(errors.ArgumentError, match=r"nu is for slinear, cubic, quintic\n  got method 'linear'"):
        grid([[1.0]], nu=(1,))
    with pytest.raises(errors.ArgumentError, match="nu has an order of 0 or more for each of 1 axes"):
        grid([[1.0]], "cubic", nu=(1, -1))
    with pytest.raises(errors.ArgumentError, match="no such method\n  got 'spline'"):
        interpolate.RegularGridInterpolator((np.arange(4.0),), np.arange(4.0), "spline")
    with pytest.raises(errors.ArgumentError, match="points ascend or descend"):
        interpolate.RegularGridInterpolator((np.array([0.0, 2.0, 1.0]),), np.arange(3.0))
    with pytest.raises(errors.ArgumentError, match=r"PchipInterpolator at .*: values are real"):
        interpolate.PchipInterpolator(np.arange(3.0), np.array([1, 2j, 3]))
