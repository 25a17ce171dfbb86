"""Descent with a line search: BFGS and truncated Newton. Nocedal & Wright 2006, Numerical Optimization, second edition.

Each iterates on a vector [n] and returns an `End`; nothing here is differentiated.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracer.lax import while_loop
from tracer.numpy import (
    absolute,
    any,
    asarray,
    eye,
    finfo,
    isfinite,
    isnan,
    linalg,
    max,
    minimum,
    outer,
    sqrt,
    sum,
    vdot,
    where,
    zeros,
    zeros_like,
)
from tracer.scipy.optimize.line_search import End as Step
from tracer.scipy.optimize.line_search import search
from tracer.scipy.optimize.results import CONVERGED, EXHAUSTED, IMPRECISE, UNDEFINED
from tracer.trace.array import Array
from tracer.transforms.gradients import grad, value_and_grad
from tracer.transforms.jacobian_products import jvp

Function = Callable[[Array], Array]


class End(NamedTuple):
    """Last state of an iteration. hess_inv is empty for methods without it."""

    x: Any
    value: Any
    gradient: Any
    hess_inv: Any
    evaluations: Any
    iterations: Any
    status: Any
    running: Any


class _State(NamedTuple):
    end: End
    previous: Any  # value one iteration ago, from which the first trial step is guessed


def bfgs(f: Function, x: Array, *, gtol: Any, norm: Any, maxiter: Any, xrtol: Any, line_search_maxiter: int) -> End:
    """Minimise by updates of the inverse Hessian: algorithm 6.1, steps as of section 3.5."""
    both = value_and_grad(f)

    def iteration(s: _State) -> _State:
        end = s.end
        direction = -end.hess_inv @ end.gradient
        uphill = ~(vdot(direction, end.gradient) < 0)
        direction = where(uphill, -end.gradient, direction)
        first = _first_trial(end.value, s.previous, vdot(direction, end.gradient))
        found = search(both, end.x, direction, end.value, end.gradient, first, 1e10, line_search_maxiter)
        step, change = found.step * direction, found.gradient - end.gradient
        inverse = _updated_inverse(end.hess_inv, step, change)
        small = linalg.norm(step, norm) <= xrtol * (xrtol + linalg.norm(end.x + step, norm))
        done = (linalg.norm(found.gradient, norm) <= gtol) | small
        return _State(_next(end, found, step, done, maxiter)._replace(hess_inv=inverse), end.value)

    start = _start(both, x, eye(x.size, dtype=x.dtype), lambda g: linalg.norm(g, norm) <= gtol)
    guess = start.value + linalg.norm(start.gradient) / 2
    return while_loop(lambda s: s.end.running, iteration, _State(start, guess)).end


def newton_cg(f: Function, x: Array, *, xtol: Any, maxiter: Any, line_search_maxiter: int) -> End:
    """Minimise by Newton steps that conjugate gradients solve: section 7.1. Ends where a step is small."""
    both, gradient = value_and_grad(f), grad(f)

    def iteration(s: _State) -> _State:
        end = s.end
        direction = _newton_direction(lambda v: jvp(gradient, (end.x,), (v,))[1], end.gradient)
        found = search(both, end.x, direction, end.value, end.gradient, 1.0, 1e10, line_search_maxiter)
        step = found.step * direction
        done = sum(absolute(direction)) <= x.size * xtol
        return _State(_next(end, found, step, done, maxiter), end.value)

    start = _start(both, x, zeros((0, 0), x.dtype), lambda g: ~any(g))
    return while_loop(lambda s: s.end.running, iteration, _State(start, start.value)).end


def _start(both: Any, x: Array, inverse: Array, flat: Callable[[Array], Array]) -> End:
    value, gradient = both(x)
    finite = isfinite(value)
    stationary = flat(gradient)
    status = where(finite, CONVERGED, UNDEFINED)
    return End(x, value, gradient, inverse, asarray(1), asarray(0), status, finite & ~stationary)


def _next(end: End, found: Step, step: Array, done: Array, maxiter: Any) -> End:
    """Return the state after a search. A search that failed ends the iteration where it stands."""
    iterations = end.iterations + 1
    done = done & found.succeeded
    known = ~isnan(found.value) & isfinite(max(absolute(found.gradient)))
    status = where(~known, UNDEFINED, where(~found.succeeded, IMPRECISE, where(done, CONVERGED, EXHAUSTED)))
    running = known & found.succeeded & ~done & (iterations < maxiter)
    return end._replace(
        x=end.x + where(found.succeeded, step, 0), value=found.value, gradient=found.gradient,
        evaluations=end.evaluations + found.evaluations, iterations=iterations, status=status, running=running,
    )  # fmt: skip


def _first_trial(value: Array, previous: Array, slope: Array) -> Array:
    """Return the step for which a parabola falls by the last iteration's decrease: equation 3.60."""
    guess = 1.01 * 2 * (value - previous) / where(slope == 0, 1, slope)
    return where(guess > 0, minimum(guess, 1), 1)


def _updated_inverse(inverse: Array, step: Array, change: Array) -> Array:
    """Return the inverse Hessian after a step and its change of the gradient: equation 6.17.

    Unchanged where the curvature along the step is not positive.
    """
    curvature = vdot(change, step)
    positive = curvature > finfo(step.dtype).tiny
    rate = where(positive, 1 / where(positive, curvature, 1), 0)
    image = inverse @ change
    crossed = outer(step, image)
    return inverse + rate * ((1 + rate * vdot(change, image)) * outer(step, step) - crossed - crossed.T)


def _newton_direction(product: Function, gradient: Array) -> Array:
    """Return an approximate solution of H d = -g, a direction of descent also for indefinite H: algorithm 7.1."""
    size = sum(absolute(gradient))
    target = minimum(0.5, sqrt(size)) * size
    rounding = 3 * finfo(gradient.dtype).eps

    def unfinished(s: Any) -> Any:
        _, residual, _, k, stopped = s
        return ~stopped & (sum(absolute(residual)) > target) & (k < 20 * gradient.size)

    def iteration(s: Any) -> Any:
        d, residual, conjugate, k, _ = s
        moved = product(conjugate)
        curvature = vdot(conjugate, moved)
        square = vdot(residual, residual)
        flat = curvature <= rounding * vdot(conjugate, conjugate)
        rate = square / where(flat, 1, curvature)
        # Along negative curvature, the first direction is steepest descent.
        d = where(flat, where((k == 0), -gradient, d), d + rate * conjugate)
        residual = where(flat, residual, residual + rate * moved)
        conjugate = -residual + vdot(residual, residual) / square * conjugate
        return d, residual, conjugate, k + 1, flat

    start = (zeros_like(gradient), gradient, -gradient, asarray(0), zeros((), bool))
    return while_loop(unfinished, iteration, start)[0]
