"""L-BFGS-B: descent within bounds by a compact quadratic model of the last steps.

Byrd, Lu, Nocedal & Zhu 1995, SIAM J. Sci. Comput. 16(5), whose equations are cited, with the projection of Morales &
Nocedal 2011, ACM Trans. Math. Softw. 38(1). The model's Hessian is B = theta I - W M W^T, W = [Y, theta S].
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from typing import Any, NamedTuple

from tracer.lax import while_loop
from tracer.numpy import (
    absolute,
    argsort,
    asarray,
    block,
    clip,
    concatenate,
    diag,
    eye,
    finfo,
    inf,
    isfinite,
    linalg,
    max,
    maximum,
    min,
    minimum,
    sort,
    sum,
    tril,
    vdot,
    where,
    zeros,
)
from tracer.scipy.optimize.descent import End, Function
from tracer.scipy.optimize.line_search import search
from tracer.scipy.optimize.results import CONVERGED, EXHAUSTED, IMPRECISE, UNDEFINED
from tracer.trace.array import Array
from tracer.transforms.gradients import value_and_grad


class _Model(NamedTuple):
    """Last steps S and changes of the gradient Y, oldest first [m, n]; rows not filled yet are zero."""

    steps: Array
    changes: Array
    scale: Array
    filled: Array


class _State(NamedTuple):
    end: End
    model: _Model


def lbfgsb(
    f: Function, x: Array, low: Array | None, high: Array | None, *, maxcor: int, ftol: Any, gtol: Any, maxfun: Any,
    maxiter: Any, maxls: int,
) -> End:  # fmt: skip
    """Minimise between bounds [n], or without bounds (None). A search that fails restarts from the gradient once."""
    both = value_and_grad(f)
    bounded = low is not None and high is not None

    def iteration(s: _State) -> _State:
        end, model = s
        target = _model_minimum(end, model, low, high)
        direction = target - end.x
        direction = where(
            vdot(direction, end.gradient) < 0, direction, _clipped(end.x - end.gradient, low, high) - end.x
        )
        fresh = model.filled == 0
        longest = _longest(end.x, direction, low, high) if bounded else 1e10
        first = where(fresh, minimum(1 / linalg.norm(direction), 1), 1)
        found = search(both, end.x, direction, end.value, end.gradient, first, longest, maxls)
        x = _clipped(end.x + where(found.succeeded, found.step, 0) * direction, low, high)
        step, change = x - end.x, found.gradient - end.gradient
        decrease = (end.value - found.value) / maximum(maximum(absolute(end.value), absolute(found.value)), 1)
        done = _is_stationary(x, found.gradient, low, high, gtol) | (found.succeeded & (decrease <= ftol))
        known = isfinite(found.value) & isfinite(max(absolute(found.gradient)))
        failed = ~found.succeeded & fresh
        iterations, evaluations = end.iterations + 1, end.evaluations + found.evaluations
        status = where(~known, UNDEFINED, where(done, CONVERGED, where(failed, IMPRECISE, EXHAUSTED)))
        running = known & ~done & ~failed & (iterations < maxiter) & (evaluations < maxfun)
        end = End(x, found.value, found.gradient, end.hess_inv, evaluations, iterations, status, running)
        return _State(end, _updated(model, step, change, found.succeeded))

    x = _clipped(x, low, high)
    value, gradient = both(x)
    finite = isfinite(value)
    status = where(finite, CONVERGED, UNDEFINED)
    running = finite & ~_is_stationary(x, gradient, low, high, gtol)
    rows = zeros((maxcor, x.size), x.dtype)
    start = End(x, value, gradient, zeros((0, 0), x.dtype), asarray(1), asarray(0), status, running)
    model = _Model(rows, rows, asarray(1, x.dtype), asarray(0))
    return while_loop(lambda s: s.end.running, iteration, _State(start, model)).end


def projected_gradient(x: Array, gradient: Array, low: Array | None, high: Array | None) -> Array:
    """Return x - P(x - g), which is zero where x is stationary within the bounds."""
    return gradient if low is None or high is None else x - clip(x - gradient, low, high)


def _is_stationary(x: Array, gradient: Array, low: Array | None, high: Array | None, gtol: Any) -> Array:
    return max(absolute(projected_gradient(x, gradient, low, high))) <= gtol


def _clipped(x: Array, low: Array | None, high: Array | None) -> Array:
    return x if low is None or high is None else clip(x, low, high)


def _longest(x: Array, direction: Array, low: Array | None, high: Array | None) -> Array:
    """Return the longest step along a direction that stays within the bounds."""
    bound = where(direction > 0, high, low)
    steps = where(direction == 0, inf, (bound - x) / where(direction == 0, 1, direction))
    return maximum(min(steps), 0).astype(x.dtype)


def _updated(model: _Model, step: Array, change: Array, succeeded: Array) -> _Model:
    """Return the model with one more pair, unless its curvature is not positive; empty after a search that failed."""
    curvature, square = vdot(step, change), vdot(change, change)
    positive = succeeded & (curvature > finfo(step.dtype).eps * square)
    steps, changes = (
        where(positive, concatenate([old[1:], new[None]]), old)
        for old, new in ((model.steps, step), (model.changes, change))
    )
    scale = where(positive, square / where(positive, curvature, 1), model.scale)
    filled = minimum(model.filled + positive, len(model.steps))
    return _Model(
        where(succeeded, steps, 0),
        where(succeeded, changes, 0),
        where(succeeded, scale, 1),
        where(succeeded, filled, 0),
    )


def _compact(model: _Model) -> tuple[Array, Array]:
    """Return W [n, 2 m] and M [2 m, 2 m]: equations 3.3 and 3.4. Empty rows have a unit diagonal."""
    steps, changes, scale, _ = model
    m = len(steps)
    crossed = steps @ changes.T
    empty = diag(where(sum(crossed * eye(m, dtype=scale.dtype), 1) == 0, 1, 0)).astype(scale.dtype)
    lower = tril(crossed, -1)
    inverse = block([
        [-crossed * eye(m, dtype=scale.dtype) - empty, lower.T], [lower, scale * steps @ steps.T + empty],
    ])  # fmt: skip
    return concatenate([changes, scale * steps]).T, linalg.inv(inverse)


def _model_minimum(end: End, model: _Model, low: Array | None, high: Array | None) -> Array:
    """Return the minimum of the model over the variables that its Cauchy point leaves free, within the bounds."""
    wide, middle = _compact(model)
    x, gradient, scale = end.x, end.gradient, model.scale
    if low is None or high is None:
        return x + _free_minimum(gradient, wide, middle, scale)
    cauchy = clip(x - _cauchy_time(x, gradient, low, high, wide, middle, scale) * gradient, low, high)
    free = (cauchy > low) & (cauchy < high)
    moved = cauchy - x
    reduced = gradient + scale * moved - wide @ (middle @ (wide.T @ moved))
    change = _free_minimum(where(free, reduced, 0), where(free[:, None], wide, 0), middle, scale)
    change = where(free, change, 0)
    projected = clip(cauchy + change, low, high)
    shortened = cauchy + minimum(_longest(cauchy, change, low, high), 1) * change
    return where(vdot(projected - x, gradient) < 0, projected, shortened)


def _free_minimum(reduced: Array, wide: Array, middle: Array, scale: Array) -> Array:
    """Return -B^-1 r on the free variables, which have rows in `wide`: equation 5.11."""
    inner = eye(len(middle), dtype=scale.dtype) - middle @ (wide.T @ wide) / scale
    pulled = linalg.solve(inner, middle @ (wide.T @ reduced))
    return -(reduced + wide @ pulled / scale) / scale


def _cauchy_time(
    x: Array, gradient: Array, low: Array, high: Array, wide: Array, middle: Array, scale: Array
) -> Array:  # fmt: skip
    """Return the time t of the model's first minimum along the path P(x - t g): algorithm CP."""
    room = where(gradient > 0, x - low, x - high)
    times = where(gradient == 0, inf, room / where(gradient == 0, 1, gradient)).astype(x.dtype)
    order = argsort(times)
    times = sort(times)
    moving = where(order.argsort() >= sum(times <= 0), -gradient, 0)
    pulled = wide.T @ moving
    first = -vdot(moving, moving)
    second = -scale * first - pulled @ middle @ pulled

    def passes(s: Any) -> Any:
        k, time, first, second, _, _ = s
        left = k < x.size
        return left & (first < 0) & (times[minimum(k, x.size - 1)] < inf) & (
            time - first / second >= times[minimum(k, x.size - 1)]
        )  # fmt: skip

    def fix(s: Any) -> Any:
        """Fix the next variable at its bound, and continue along the free variables."""
        k, time, first, second, pulled, shift = s
        i, wait = order[k], times[k] - time
        g, row = gradient[i], wide[i]
        shift = shift + wait * pulled
        bound = where(g > 0, low[i], high[i]) - x[i]
        weighted = middle @ row
        first = first + wait * second + g * g + scale * g * bound - g * vdot(weighted, shift)
        second = second - scale * g * g - 2 * g * vdot(weighted, pulled) - g * g * vdot(weighted, row)
        second = maximum(second, finfo(x.dtype).eps * absolute(scale) * g * g)
        return k + 1, times[k], first, second, pulled + g * row, shift

    start = (sum(times <= 0), zeros((), x.dtype), first, second, pulled, zeros(len(middle), x.dtype))
    _, time, first, second, _, _ = while_loop(passes, fix, start)
    return time + where(first < 0, -first / where(second > 0, second, 1), 0)
