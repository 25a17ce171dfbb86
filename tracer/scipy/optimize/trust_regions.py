"""Sums of squares made smaller by trust regions: the iteration of `root` and `least_squares`, and its steps.

A damped step is Levenberg-Marquardt's, by a QR factorisation of the damped Jacobian. It is scaled as in Moré 1978, The
Levenberg-Marquardt algorithm, with the damping of Nielsen 1999, IMM-REP-1999-05. Within bounds, unknowns that a descent
would lead beyond their bound stay. The step of all other unknowns is projected. From Kanzow, Yamashita & Fukushima
2004, J. Comput. Appl. Math. 172(2). A dogleg step is Powell's: Nocedal & Wright 2006, section 11.2.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracer.lax import while_loop
from tracer.numpy import (
    absolute,
    asarray,
    clip,
    concatenate,
    diag,
    finfo,
    inf,
    isfinite,
    linalg,
    max,
    maximum,
    minimum,
    sqrt,
    sum,
    vdot,
    where,
    zeros,
)
from tracer.scipy.linalg import solve_triangular
from tracer.scipy.optimize.bounded_descent import projected_gradient
from tracer.scipy.optimize.losses import Loss, weighed
from tracer.scipy.optimize.results import CONVERGED, EXHAUSTED, IMPRECISE, UNDEFINED
from tracer.trace.array import Array
from tracer.transforms.jacobians import jacfwd

Bounds = tuple[Array, Array] | None  # lower and upper ones [n]


class End(NamedTuple):
    """State of the iteration. residual, jacobian: as the loss weighs them, so that their product is the gradient."""

    x: Any
    size: Any  # twice the cost
    residual: Any
    jacobian: Any
    scale: Any  # of each unknown: the largest norm of its column so far
    radius: Any  # of the trust region; the damping of a damped step
    growth: Any
    evaluations: Any
    jacobians: Any
    status: Any
    running: Any


class Step(NamedTuple):
    """Way to a next point. first_radius(x, scale): the radius and growth at the start.

    attempt(end, bounds): the change of x, the predicted decrease of twice the cost, and a rule. The rule gives radius
    and growth for the ratio of the decreases, whether x changes, and the length of the step.
    """

    attempt: Callable[[End, Bounds], tuple[Array, Array, Any]]
    first_radius: Callable[[Array, Array], tuple[Array, Array]]


class Limits(NamedTuple):
    """Tolerances of cost, step and gradient at which the iteration ends, and evaluations at most."""

    ftol: Any
    xtol: Any
    gtol: Any
    evaluations: Any


def minimized(
    function: Callable[[Array], Array], start: Array, step: Step, limits: Limits, *, bounds: Bounds = None,
    loss: Loss | None = None, to_zero: bool = False,
) -> End:  # fmt: skip
    """Iterate steps of a trust region from `start` [n] until one of the tolerances is met.

    function: the residuals [m]; to_zero: whether only a root is a success.
    """

    def evaluated(x: Array) -> tuple[Array, Array, Array]:
        return weighed(loss, function(x), jacfwd(function)(x))

    def iteration(end: End) -> End:
        change, predicted, attempt = step.attempt(end, bounds)
        x = end.x + change
        tried = evaluated(x)
        size = tried[0]
        gained = where(isfinite(size), end.size - size, -inf)
        ratio = where(predicted > 0, gained / where(predicted > 0, predicted, 1), -1)
        better = (ratio > 1e-4) & (gained > 0)
        length = linalg.norm(end.scale * change)
        small = length <= limits.xtol * linalg.norm(end.scale * end.x)
        slow = (absolute(gained) <= limits.ftol * end.size) & (predicted <= limits.ftol * end.size)
        x = where(better, x, end.x)
        parts = zip(tried, (end.size, end.residual, end.jacobian), strict=True)
        size, residual, jacobian = (where(better, new, old) for new, old in parts)
        zero = ~(size > 0)
        flat = _is_flat(x, jacobian, residual, bounds, limits.gtol)
        evaluations = end.evaluations + 1
        known = isfinite(sum(jacobian))
        done = small | slow | zero | flat
        if to_zero:  # a small step far from a root is a minimum of the norm
            goal = sqrt(finfo(x.dtype).eps) * (linalg.norm(absolute(jacobian) @ absolute(x)) + 1e-6)
            solved = zero | (linalg.norm(residual) <= goal)
        else:
            solved = done
        status = where(~known, UNDEFINED, where(done, where(solved, CONVERGED, IMPRECISE), EXHAUSTED))
        running = known & ~done & (evaluations < limits.evaluations)
        scale = maximum(end.scale, _column_norms(jacobian))
        radius, growth = attempt(ratio, better, length)
        return End(
            x, size, residual, jacobian, scale, radius, growth, evaluations, end.jacobians + better, status, running
        )  # fmt: skip

    size, residual, jacobian = evaluated(start)
    norms = _column_norms(jacobian)
    scale = where(norms > 0, norms, 1)
    known = isfinite(sum(jacobian)) & isfinite(sum(residual))
    done = ~(size > 0) | _is_flat(start, jacobian, residual, bounds, limits.gtol)
    radius, growth = step.first_radius(start, scale)
    status = where(known, CONVERGED, UNDEFINED)
    first = End(
        start, size, residual, jacobian, scale, radius, growth, asarray(1), asarray(1), status, known & ~done
    )  # fmt: skip
    return while_loop(lambda end: end.running, iteration, first)


def _is_flat(x: Array, jacobian: Array, residual: Array, bounds: Bounds, gtol: Any) -> Array:
    return max(absolute(projected_gradient(x, jacobian.T @ residual, *(bounds or (None, None))))) <= gtol


def _column_norms(jacobian: Array) -> Array:
    return sqrt(sum(jacobian * jacobian, 0))


def _damped_step(end: End, bounds: Bounds) -> tuple[Array, Array, Any]:
    """Return the minimum of |J p + r|^2 + damping |D p|^2, its predicted decrease, and the rule for the damping."""
    jacobian = end.jacobian
    if bounds is not None:
        low, high = bounds
        gradient = jacobian.T @ end.residual
        stays = ((end.x <= low) & (gradient > 0)) | ((end.x >= high) & (gradient < 0))
        jacobian = where(stays, 0, jacobian)
    rows = concatenate([jacobian, sqrt(end.radius) * diag(end.scale)])
    q, triangle = linalg.qr(rows)
    side = concatenate([end.residual, zeros(end.x.size, end.x.dtype)])
    change = -solve_triangular(triangle, q.T @ side)
    if bounds is not None:
        change = clip(end.x + change, low, high) - end.x
    linear = end.residual + end.jacobian @ change
    predicted = vdot(end.residual, end.residual) - vdot(linear, linear)

    def attempt(ratio: Array, better: Array, length: Array) -> tuple[Array, Array]:
        less = end.radius * maximum(1 / 3, 1 - (2 * minimum(ratio, 2) - 1) ** 3)
        least = finfo(end.x.dtype).eps ** 2
        return maximum(where(better, less, end.radius * end.growth), least), where(better, 2, 2 * end.growth)

    return change, predicted, attempt


def _first_damping(x: Array, scale: Array) -> tuple[Array, Array]:
    return asarray(1e-3, x.dtype), asarray(2, x.dtype)


def _dogleg_step(end: End, bounds: Bounds) -> tuple[Array, Array, Any]:
    """Return Powell's dogleg step within the trust region, its predicted decrease, and the rule for the radius."""
    scaled = end.jacobian / end.scale
    gradient = scaled.T @ end.residual
    newton = -linalg.solve(scaled, end.residual)
    regular = isfinite(sum(newton))
    image = scaled @ gradient
    cauchy = -gradient * vdot(gradient, gradient) / _nonzero(vdot(image, image))
    newton = where(regular, newton, cauchy)
    cauchy_size, newton_size = linalg.norm(cauchy), linalg.norm(newton)
    shorter = cauchy * minimum(1, end.radius / _nonzero(cauchy_size))
    rest = newton - cauchy
    a, b = vdot(rest, rest), vdot(cauchy, rest)
    c = cauchy_size**2 - end.radius**2
    share = (-b + sqrt(maximum(b * b - a * c, 0))) / _nonzero(a)
    bent = where(cauchy_size < end.radius, cauchy + share * rest, shorter)
    step = where(newton_size <= end.radius, newton, bent)
    linear = end.residual + scaled @ step
    predicted = vdot(end.residual, end.residual) - vdot(linear, linear)

    def attempt(ratio: Array, better: Array, length: Array) -> tuple[Array, Array]:
        wider = maximum(end.radius, 2 * length)
        return where(ratio < 0.25, 0.5 * length, where(ratio > 0.75, wider, end.radius)), end.growth

    return step / end.scale, predicted, attempt


def _first_radius(x: Array, scale: Array) -> tuple[Array, Array]:
    size = linalg.norm(scale * x)
    return where(size > 0, 100 * size, 100).astype(x.dtype), asarray(1, x.dtype)


def _nonzero(x: Array) -> Array:
    return where(x == 0, 1, x)


DAMPED = Step(_damped_step, _first_damping)
DOGLEG = Step(_dogleg_step, _first_radius)
