"""Steps of initial value problems: state, error control, the first step, and interpolation within a step.

Hairer, Nørsett & Wanner, Solving ODEs I, second edition, section II.4. Errors and step sizes are not differentiated, so
derivatives follow the steps taken.
"""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tracer.ir import dtypes
from tracer.lax import while_loop
from tracer.numpy import (
    absolute,
    asarray,
    inf,
    maximum,
    mean,
    minimum,
    nextafter,
    ones_like,
    sqrt,
    square,
    where,
    zeros,
)
from tracer.primitives.elementwise.stop_gradient import stop_gradient
from tracer.trace.array import Array

SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0

Slope = Callable[[Array, Array], Array]  # of the time and the value


class Interval(NamedTuple):
    """Last step: its start, size and value there, and the method's rows [r, n], which interpolate within it."""

    t: Array
    h: Array
    y: Array
    rows: Array


class Counts(NamedTuple):
    """Evaluations of the function and its Jacobian, and factorisations."""

    nfev: Any
    njev: Any
    nlu: Any


class State(NamedTuple):
    """Solution between steps: time, size of the next step (signed), value, slope, and the last step.

    rejected: whether the last attempt was; failed: whether the step size vanished. memory: the method's own arrays.
    """

    t: Array
    h: Array
    y: Array
    slope: Array
    last: Interval
    counts: Counts
    attempts: Array
    rejected: Array
    failed: Array
    memory: Any


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Tolerances of a step's error, and bounds of its size: at most `longest`, and not beyond the time `bound`."""

    rtol: Any
    atol: Any
    longest: Any = inf
    bound: Any = None

    def limited(self, t: Array, h: Array) -> Array:
        """Return a step size within the bounds."""
        longest = minimum(absolute(h), self.longest)
        if self.bound is not None:
            longest = minimum(longest, absolute(self.bound - t))
        return where(h < 0, -longest, longest).astype(h.dtype)


class Method(NamedTuple):
    """One-step method: order of its error estimate, memory at the start, an attempt at a step, and its interpolant.

    attempt(f, state, h, tolerances): an `Attempt`. rows: r of `Interval`. coefficients(f, interval): of
    the powers of the share of the step, from the first on [d, n], and how often f was evaluated.
    """

    order: int
    rows: int
    memory: Callable[[Slope, Array, Array], Any]
    attempt: Callable[..., Attempt]
    coefficients: Callable[[Slope, Interval], tuple[Array, int]]


class Attempt(NamedTuple):
    """Attempted step: value and slope at its end, error relative to the tolerances, and the factor of the next step."""

    y: Array
    slope: Array
    rows: Array
    error: Array
    factor: Array
    counts: Counts
    memory: Any


def begin(method: Method, f: Slope, t: Array, y: Array, first: Array, slope: Array, evaluations: int) -> State:
    """Return the state before the first step, of this size."""
    rows = zeros((method.rows, y.size), y.dtype)
    no = zeros((), bool)
    counts = Counts(asarray(evaluations, int), asarray(0, int), asarray(0, int))
    memory = method.memory(f, t, y)
    if memory is not None:
        counts = counts._replace(njev=counts.njev + 1)
    return State(t, first, y, slope, Interval(t, ones_like(t), y, rows), counts, counts.njev * 0, no, no, memory)


def advance(method: Method, f: Slope, state: State, tolerances: Tolerances) -> State:
    """Try a step; where its error is too large, keep the value and take a shorter step next."""
    h = tolerances.limited(state.t, state.h)
    attempt = method.attempt(f, state, h, tolerances)
    accepted = attempt.error <= 1
    factor = where(accepted, where(state.rejected, minimum(attempt.factor, 1), attempt.factor), attempt.factor)
    t = state.t + h
    if tolerances.bound is not None:
        t = where(absolute(h) >= absolute(tolerances.bound - state.t), tolerances.bound, t).astype(h.dtype)
    following = h * stop_gradient(factor).astype(h.dtype)
    now = stop_gradient(t)
    smallest = 10 * absolute(nextafter(now, where(h < 0, -inf, inf).astype(t.dtype)) - now)
    vanished = ~accepted & (absolute(following) < smallest)
    tried = state._replace(t=t, y=attempt.y, slope=attempt.slope, last=Interval(state.t, h, state.y, attempt.rows))
    kept = chosen(accepted, tried, state)
    return kept._replace(
        h=following, counts=Counts(*map(_added, state.counts, attempt.counts)), attempts=state.attempts + 1,
        rejected=~accepted, failed=state.failed | vanished, memory=attempt.memory,
    )  # fmt: skip


def _added(x: Any, y: Any) -> Any:
    return x + y


def reach(
    method: Method, f: Slope, state: State, target: Array, tolerances: Tolerances, attempts: Any = inf
) -> State:  # fmt: skip
    """Step until the target is reached or passed, the step size vanishes, or there were too many attempts."""

    def unfinished(s: State) -> Array:
        left = where(s.h < 0, s.t > target, s.t < target)
        return left & ~s.failed & (s.attempts < attempts) & moves(s)

    return while_loop(unfinished, lambda s: advance(method, f, s, tolerances), state)


def moves(state: State) -> Array:
    """Return whether the next step changes the time: not where it is too small, or NaN."""
    return absolute(state.t + state.h - state.t) > 0


def value_at(method: Method, f: Slope, last: Interval, t: Array) -> Array:
    """Return the value at a time within the last step."""
    coefficients, _ = method.coefficients(f, last)
    share = ((t - last.t) / last.h).astype(real(last.y.dtype))
    return interpolated(last.y, coefficients, share)


def interpolated(y: Array, coefficients: Array, share: Array) -> Array:
    """Return a polynomial of the share of a step: y + share (c_0 + share (c_1 + ...))."""
    total = coefficients[-1] * share
    for row in coefficients[-2::-1]:
        total = (total + row) * share
    return y + total


def chosen(accepted: Array, new: Any, old: Any) -> Any:
    """Return the new tree where accepted, else the old one."""
    if isinstance(new, tuple):
        parts = [chosen(accepted, a, b) for a, b in zip(new, old, strict=True)]
        return type(new)(*parts) if hasattr(new, "_fields") else tuple(parts)
    return None if new is None else where(accepted, new, old)


def first_step(
    method: Method, f: Slope, t: Array, y: Array, slope: Array, sign: Any, rtol: Any, atol: Any, span: Any = inf
) -> Array:  # fmt: skip
    """Return a first step, signed, by which an explicit Euler step stays within the tolerances."""
    scale = atol + rtol * absolute(y)
    size, speed = norm(y / scale), norm(slope / scale)
    small = (size < 1e-5) | (speed < 1e-5)
    guess = minimum(where(small, 1e-6, 0.01 * size / where(small, 1.0, speed)), span)
    beyond = f(t + (sign * guess).astype(t.dtype), y + (sign * guess).astype(real(y.dtype)) * slope)
    curve = norm((beyond - slope) / scale) / where(guess > 0, guess, 1)
    steepest = maximum(speed, curve)
    flat = steepest <= 1e-15
    refined = (0.01 / where(flat, 1.0, steepest)) ** (1 / (method.order + 1))
    step = minimum(minimum(100 * guess, where(flat, maximum(1e-6, guess * 1e-3), refined)), span)
    return stop_gradient(sign * step).astype(t.dtype)


def norm(x: Array) -> Array:
    """Return the root of the mean of the squares, as a constant."""
    return sqrt(mean(square(absolute(stop_gradient(x))))) if x.size else zeros((), real(x.dtype))


def real(dtype: Any) -> Any:
    """Return the dtype of a number's real part."""
    return dtypes.real_dtype(dtype) if dtypes.is_complex(dtype) else dtype
