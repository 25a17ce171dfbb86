"""Fits: `least_squares` and `curve_fit`. Jacobians are derivatives in forward mode, taken at every accepted step."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.numpy import (
    absolute,
    asarray,
    broadcast_to,
    clip,
    concatenate,
    inf,
    linalg,
    max,
    maximum,
    ones,
    where,
)
from tracer.numpy.core.conversion import array_of
from tracer.scipy.linalg import solve_triangular
from tracer.scipy.optimize.bounded_descent import projected_gradient
from tracer.scipy.optimize.functions import Unknowns, rounding, solution
from tracer.scipy.optimize.losses import Loss, cost_slopes, loss_of, twice_cost
from tracer.scipy.optimize.results import CONVERGED, LeastSquaresResults
from tracer.scipy.optimize.trust_regions import DAMPED, End, Limits, minimized
from tracer.trace import trees
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here
from tracer.transforms.jacobian_products import vjp


def least_squares(
    fun: Callable[..., Any], x0: Any, *, bounds: Any = (-inf, inf), method: str = "trf", ftol: Any = 1e-8,
    xtol: Any = 1e-8, gtol: Any = 1e-8, loss: Any = "linear", f_scale: Any = 1.0, max_nfev: Any = None, args: Any = (),
    kwargs: dict[str, Any] | None = None,
) -> LeastSquaresResults:  # fmt: skip
    """Find a local minimum of half the sum of the losses of the residuals fun(x, *args, **kwargs).

    fun: returns a tree of real numbers, [m] together, from a tree like x0, the args and kwargs; x0: a tree of real
    numbers [*s], [n] together, where a list of numbers is a vector; args, kwargs: further arguments. bounds: the lower
    and the upper ones, each a number or a tree like x0, or SciPy's `Bounds`; x0 is moved within them. method: "trf" or
    "lm", Levenberg-Marquardt for both; as in SciPy "lm" takes neither bounds nor a loss. ftol, xtol, gtol: the relative
    decrease of the cost, the relative size of a step, and the gradient (projected at bounds), at which the iteration
    ends; no smaller than rounding. loss: "linear", the squares of the residuals, or "soft_l1", "huber", "cauchy" or
    "arctan", which limit the effect of residuals beyond f_scale; or a function of z = (residual / f_scale)**2 [m] that
    returns the loss and its first two derivatives [3, m]. max_nfev: evaluations at most, by default 200 (n + 1).

    Returns `LeastSquaresResults` of floats. Works under `jit` and `vmap`. x, cost and residuals have derivatives by
    args, captured arrays and bounds. They are by the implicit function theorem, with the full Hessian of the cost.
    Raises ArgumentError for another method or loss, and for bounds that are not ascending; ShapeError for bounds of
    another shape.

    >>> t = tnp.linspace(0.0, 1.0, 5)
    >>> fit = lambda y: tracer.scipy.optimize.least_squares(lambda p: p[0] * tnp.exp(-p[1] * t) - y, tnp.ones(2)).x
    >>> fit(3.0 * tnp.exp(-2.0 * t)).round(6)
    Array([3., 2.], f64)
    >>> tracer.jacobian(fit)(3.0 * tnp.exp(-2.0 * t)).shape
    (2, 5)
    >>> outlier = tnp.asarray([1.0, 1.0, 1.0, 1.0, 101.0])
    >>> tracer.scipy.optimize.least_squares(lambda p: p - outlier, tnp.zeros(1), loss="cauchy").x.round(2)
    Array([1.], f64)
    """
    rho = loss_of("least_squares", loss)
    unknowns = Unknowns("least_squares", x0, args)
    limits = _bounds(bounds, unknowns)
    if method not in ("trf", "lm"):
        raise ArgumentError(message(f'least_squares{here()}: method is "trf" or "lm"', f"got {method!r}"))
    if method == "lm" and (rho is not None or limits):
        raise ArgumentError(
            message(
                f'least_squares{here()}: "lm" takes neither bounds nor a loss', f"got loss={loss!r}, bounds={bounds!r}",
                help='leave method out, or take "trf"',
            )
        )  # fmt: skip
    f, held = unknowns.vector(lambda *given: fun(*given, **(kwargs or {})))
    small = rounding(unknowns.start)
    most = 200 * (unknowns.start.size + 1) if max_nfev is None else max_nfev
    tolerances = Limits(maximum(ftol, small), maximum(xtol, small), maximum(gtol, small), most)
    more = [array_of("least_squares", f_scale).astype(unknowns.start.dtype)] if rho is not None else []
    return _fitted(unknowns, f, held, tolerances, rho, [*more, *limits])


def _fitted(
    unknowns: Unknowns, f: Any, held: list[Array], tolerances: Limits, rho: Any, more: list[Array]
) -> LeastSquaresResults:  # fmt: skip
    """Return the minimum. more: the loss's scale, if there is a loss, and the bounds, if there are any."""
    count = len(more)

    def given(parts: Any) -> tuple[Loss | None, Any]:
        loss = None if rho is None else Loss(rho, parts[0])
        limits = tuple(parts[int(rho is not None) : count])
        return loss, limits or None

    def slope(x: Array, *parts: Array) -> Array:
        loss, limits = given(parts)
        found, pull = vjp(lambda x: f(x, *parts[count:]), x)
        gradient = pull(cost_slopes(loss, found))[0]
        return projected_gradient(x, gradient, *(limits or (None, None)))

    def solve(start: Array, *parts: Array) -> tuple[Array, End]:
        loss, limits = given(parts)
        if limits is not None:
            start = clip(start, *limits)
        end = minimized(lambda x: f(x, *parts[count:]), start, DAMPED, tolerances, bounds=limits, loss=loss)
        return end.x, end

    x, end = solution(slope, unknowns.start, solve, held, *more)
    loss, limits = given(more)
    residual = f(x, *held)
    gradient = end.jacobian.T @ end.residual
    optimality = max(absolute(projected_gradient(end.x, gradient, *(limits or (None, None)))))
    active = asarray(np.zeros(x.size, int))
    if limits is not None:
        active = where(end.x <= limits[0], -1, where(end.x >= limits[1], 1, active))
    return LeastSquaresResults(
        unknowns.tree(x), twice_cost(loss, residual) / 2, residual, end.jacobian, gradient, optimality,
        end.evaluations, end.jacobians, end.status, end.status == CONVERGED, active,
    )  # fmt: skip


def _bounds(bounds: Any, unknowns: Unknowns) -> list[Array]:
    """Return lower and upper bounds [n]; nothing where all are concrete and infinite. Raises where they do not fit."""
    both = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") and hasattr(bounds, "ub") else tuple(bounds)
    if len(both) != 2:
        text = f"least_squares{here()}: bounds are the lower and the upper ones"
        raise ShapeError(message(text, f"got {len(both)} parts", help="(lower, upper), each a number or like x0"))
    start = unknowns.start
    leaves = [[array_of("least_squares", x) for x in trees.flatten(side)[0]] for side in both]
    for side in leaves:
        count = sum(x.size for x in side)
        if count not in (1, start.size):
            text = f"least_squares{here()}: a bound is one number, or one for each of the {start.size} unknowns"
            raise ShapeError(message(text, f"got {count}"))
    known = [[concrete_value(x) for x in side] for side in leaves]
    if all(x is not None for side in known for x in side):
        low, high = (np.concatenate([np.ravel(x) for x in side]) for side in known)
        if not (low < high).all():
            text = f"least_squares{here()}: each lower bound is below the upper one"
            raise ArgumentError(message(text, f"got {low.tolist()} and {high.tolist()}"))
        if (low == -np.inf).all() and (high == np.inf).all():
            return []
    vectors = (concatenate([x.ravel().astype(start.dtype) for x in side]) for side in leaves)
    return [broadcast_to(vector, start.shape) for vector in vectors]


def curve_fit(
    f: Callable[..., Any], xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None, absolute_sigma: bool = False, *,
    bounds: Any = (-inf, inf), method: str = "trf", ftol: Any = 1e-8, xtol: Any = 1e-8, gtol: Any = 1e-8,
    loss: Any = "linear", f_scale: Any = 1.0, max_nfev: Any = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Fit ydata by f(xdata, *p) in the sense of least squares, from p0.

    f: returns real numbers [m]; xdata: any tree, the first argument of f; ydata: real numbers [m]; p0: real numbers
    [n], by default ones, as many as f has further positional arguments. sigma: standard deviations [m] of ydata, or
    their covariance [m, m]; absolute_sigma: whether they are known beyond a common factor. bounds, method, ftol, xtol,
    gtol, loss, f_scale, max_nfev: as of `least_squares`. Returns (p [n], its covariance [n, n]), floats: p has the
    derivatives of `least_squares`. Raises ArgumentError for another method or loss, or where p0 is needed, and
    ShapeError where sigma does not fit.

    >>> x = tnp.linspace(0.0, 1.0, 5)
    >>> p, covariance = tracer.scipy.optimize.curve_fit(lambda x, a, b: a + b * x, x, 2.0 + 3.0 * x)
    >>> p.round(6), covariance.shape
    (Array([2., 3.], f64), (2, 2))
    """
    wanted = array_of("curve_fit", ydata)
    start = ones(_parameters(f)) if p0 is None else array_of("curve_fit", p0)
    weights = None if sigma is None else array_of("curve_fit", sigma)
    if weights is not None and weights.shape not in ((), wanted.shape, (wanted.size, wanted.size)):
        text = f"curve_fit{here()}: sigma has one number for each of ydata, or a covariance [m, m]"
        raise ShapeError(message(text, f"got {weights.type} for {wanted.type}"))
    factor = linalg.cholesky(weights) if weights is not None and weights.ndim > 1 else None

    def residual(p: Array) -> Array:
        found = f(xdata, *(p[i] for i in range(p.size))) - wanted
        if factor is not None:
            return solve_triangular(factor, found, lower=True)
        return found if weights is None else found / weights

    found = least_squares(
        residual, start, bounds=bounds, method=method, ftol=ftol, xtol=xtol, gtol=gtol, loss=loss, f_scale=f_scale,
        max_nfev=max_nfev,
    )  # fmt: skip
    triangle = linalg.qr(found.jac, mode="r")
    inverse = solve_triangular(triangle, asarray(np.eye(found.jac.shape[1]), triangle.dtype))
    freedom = found.fun.size - found.jac.shape[1]
    size = 1.0 if absolute_sigma else (2 * found.cost / freedom if freedom > 0 else inf)
    return found.x, inverse @ inverse.T * size


def _parameters(f: Callable[..., Any]) -> int:
    """Return the number of parameters that a function takes after its data."""
    kinds = [parameter.kind for parameter in inspect.signature(f).parameters.values()]
    named = sum(kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)
    if inspect.Parameter.VAR_POSITIONAL in kinds or named <= 1:
        text = f"curve_fit{here()}: the signature of f does not say how many parameters there are"
        raise ArgumentError(message(text, help="give p0"))
    return named - 1
