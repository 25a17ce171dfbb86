"""Line search for the strong Wolfe conditions, one value and gradient per iteration.

Moré & Thuente 1994, ACM Transactions on Mathematical Software 20(3). A trial that is not finite ends the interval.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracer.lax import while_loop
from tracer.numpy import absolute, asarray, clip, finfo, isfinite, maximum, minimum, sign, sqrt, vdot, where, zeros
from tracer.trace.array import Array

ValueAndGradient = Callable[[Array], tuple[Array, Array]]

_SUFFICIENT, _CURVATURE = 1e-4, 0.9  # the constants of the two Wolfe conditions
_EXTEND = 4.0  # a trial goes at most this multiple beyond the last one
_SHRINK = 0.66  # an interval that shrinks less in two iterations is halved


class End(NamedTuple):
    """End of a search: the step, value and gradient there, evaluations, and whether the value decreased enough."""

    step: Array
    value: Array
    gradient: Array
    evaluations: Array
    succeeded: Array


class _Point(NamedTuple):
    step: Any
    value: Any
    slope: Any


class _Search(NamedTuple):
    trial: _Point
    gradient: Array
    low: _Point  # the best trial so far, by the modified function
    high: _Point  # the other end of the interval
    best: tuple[Array, Array, Array]  # the step with the smallest sufficient value, its value and gradient
    bracketed: Array
    first_stage: Array
    widths: tuple[Array, Array]
    limits: tuple[Array, Array]
    evaluations: Array
    converged: Array
    stuck: Array


def search(
    f: ValueAndGradient, x: Array, direction: Array, value: Array, gradient: Array, first: Any, longest: Any,
    tries: int = 20,
) -> End:  # fmt: skip
    """Return a step along a descent direction [n] from x, where f has this value and gradient.

    first: the trial to begin with; longest: the largest step; tries: evaluations at most.
    """
    dtype = x.dtype
    slope = vdot(direction, gradient)
    longest = asarray(longest, dtype)
    first = minimum(asarray(first, dtype), longest)
    rounding = finfo(dtype).eps

    def at(step: Array) -> tuple[_Point, Array]:
        found, its_gradient = f(x + step * direction)
        return _Point(step, found, vdot(direction, its_gradient)), its_gradient

    def next_trial(s: _Search) -> _Search:
        trial, goal = s.trial, value + s.trial.step * _SUFFICIENT * slope
        finite = isfinite(trial.value) & isfinite(trial.slope)
        sufficient = finite & (trial.value <= goal)
        first_stage = s.first_stage & ~(sufficient & (trial.slope >= 0))
        modified = first_stage & (trial.value <= s.low.value) & (trial.value > goal)
        tilt = where(modified, _SUFFICIENT * slope, 0)
        low, high, new, bracketed = _refined(
            _tilted(s.low, -tilt), _tilted(s.high, -tilt), _tilted(trial, -tilt), s.bracketed, s.limits
        )
        low, high = _tilted(low, tilt), _tilted(high, tilt)
        width = absolute(high.step - low.step)
        new = where(bracketed & (width >= _SHRINK * s.widths[1]), low.step + 0.5 * (high.step - low.step), new)
        widths = where(bracketed, width, s.widths[0]), where(bracketed, s.widths[0], s.widths[1])
        # A trial that is not finite becomes the far end, and the next one comes nearer to the best.
        low, high = _chosen(finite, low, s.low), _chosen(finite, high, trial._replace(value=value, slope=-slope))
        new = where(finite, new, s.low.step + 0.1 * (trial.step - s.low.step))
        bracketed = bracketed | ~finite
        limits = (
            where(bracketed, minimum(low.step, high.step), new + 1.1 * (new - low.step)),
            where(bracketed, maximum(low.step, high.step), new + _EXTEND * (new - low.step)),
        )
        new = clip(new, 0, longest)
        narrow = bracketed & ((new <= limits[0]) | (new >= limits[1]) | (limits[1] - limits[0] <= rounding * limits[1]))
        stuck = narrow & finite
        trial, its_gradient = at(where(stuck, low.step, new))
        return _checked(
            s._replace(
                trial=trial, gradient=its_gradient, low=low, high=high, bracketed=bracketed, first_stage=first_stage,
                widths=widths, limits=limits, evaluations=s.evaluations + 1, stuck=stuck,
            )
        )  # fmt: skip

    def _checked(s: _Search) -> _Search:
        trial, goal = s.trial, value + s.trial.step * _SUFFICIENT * slope
        sufficient = isfinite(trial.slope) & (trial.value <= goal)
        flat = absolute(trial.slope) <= -_CURVATURE * slope
        at_end = (trial.step >= longest) & (trial.slope <= _SUFFICIENT * slope)
        better = sufficient & ((trial.value < s.best[1]) | (s.best[0] == 0))
        best = tuple(where(better, a, b) for a, b in zip((trial.step, trial.value, s.gradient), s.best, strict=True))
        return s._replace(best=best, converged=sufficient & (flat | at_end), stuck=s.stuck | (trial.step <= 0))

    none = zeros((), bool)
    nothing = _Point(zeros((), dtype), value, slope)
    trial, its_gradient = at(first)
    start = _checked(
        _Search(
            trial, its_gradient, nothing, nothing, (nothing.step, value, gradient), none, ~none,
            (longest, 2 * longest), (nothing.step, (1 + _EXTEND) * first), asarray(1), none, none,
        )
    )  # fmt: skip
    end = while_loop(lambda s: ~s.converged & ~s.stuck & (s.evaluations < tries), next_trial, start)
    last = (end.trial.step, end.trial.value, end.gradient)
    step, found, its_gradient = (where(end.converged, a, b) for a, b in zip(last, end.best, strict=True))
    return End(step, found, its_gradient, end.evaluations, end.converged | (end.best[0] > 0))


def _chosen(condition: Array, yes: _Point, no: _Point) -> _Point:
    return _Point(*(where(condition, a, b) for a, b in zip(yes, no, strict=True)))


def _tilted(point: _Point, slope: Array) -> _Point:
    return _Point(point.step, point.value + point.step * slope, point.slope + slope)


def _refined(
    low: _Point, high: _Point, trial: _Point, bracketed: Array, limits: tuple[Array, Array]
) -> tuple[_Point, _Point, Array, Array]:
    """Return the new interval, the next trial and whether a minimum is bracketed: section 4 of the paper."""
    x, fx, dx = low
    t, ft, dt = trial
    turned = sign(dt) * sign(dx) < 0
    higher = ft > fx
    cubic_low = _cubic(low, trial)
    secant = t + _quotient(dt, dt - dx) * (x - t)

    quadratic = x + 0.5 * _quotient(dx, _quotient(fx - ft, t - x) + dx) * (t - x)
    between = where(absolute(cubic_low - x) < absolute(quadratic - x), cubic_low, 0.5 * (cubic_low + quadratic))

    across = where(absolute(cubic_low - t) > absolute(secant - t), cubic_low, secant)

    # The cubic has a minimum beyond the trial, or grows to the limit.
    forward = where(t > x, limits[1], limits[0])
    beyond = (cubic_low - t) * (t - x) > 0
    cubic = where(beyond & isfinite(cubic_low), cubic_low, forward)
    nearer = absolute(cubic - t) < absolute(secant - t)
    inside = where(nearer, cubic, secant)
    guard = t + _SHRINK * (high.step - t)
    inside = where(t > x, minimum(guard, inside), maximum(guard, inside))
    outside = clip(where(nearer, secant, cubic), limits[0], limits[1])
    flatter = where(bracketed, inside, outside)

    steeper = where(bracketed, _cubic(high, trial), forward)
    new = where(higher, between, where(turned, across, where(absolute(dt) < absolute(dx), flatter, steeper)))
    other = _chosen(higher, trial, _chosen(turned, low, high))
    return _chosen(higher, low, trial), other, new, bracketed | higher | turned


def _cubic(a: _Point, b: _Point) -> Array:
    """Return the minimum of the cubic through two points with these values and slopes."""
    theta = 3 * _quotient(a.value - b.value, b.step - a.step) + a.slope + b.slope
    size = maximum(absolute(theta), maximum(absolute(a.slope), absolute(b.slope)))
    root = size * sqrt(
        maximum(_quotient(theta, size) ** 2 - _quotient(a.slope, size) * _quotient(b.slope, size), 0)
    ) * sign(a.step - b.step)  # fmt: skip
    share = _quotient(root - b.slope + theta, (root - b.slope) + root + a.slope)
    return b.step + share * (a.step - b.step)


def _quotient(a: Any, b: Any) -> Any:
    return a / where(b == 0, 1, b)
