"""A line search for the strong Wolfe conditions: an interval is grown, then narrowed by cubic and quadratic fits.

Algorithms 3.5 and 3.6 of Nocedal & Wright 2006, with the approximate conditions of Hager & Zhang 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tracer import debug, lax
from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.optim.line_searches import bound_loss, inner_product, line_dtype, moved
from tracer.optim.scalars import at
from tracer.optim.selecting import chosen
from tracer.optim.transformation import (
    GradientTransformationExtraArgs,
    init_leaves,
    map_leaves,
    transformation,
)
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.transforms.gradients import value_and_grad


class ZoomLinesearchInfo(NamedTuple):
    """Result of `scale_by_zoom_linesearch`: its count of steps, by how much both conditions are missed.

    >>> tracer.optim.scale_by_zoom_linesearch(5).init(tnp.zeros(1)).info.num_linesearch_steps
    Array(0, i32)
    """

    num_linesearch_steps: Any
    decrease_error: Any
    curvature_error: Any


class ScaleByZoomLinesearchState(NamedTuple):
    """State of `scale_by_zoom_linesearch`: the step, and the loss and gradient there.

    >>> tracer.optim.scale_by_zoom_linesearch(5).init(tnp.zeros(1)).learning_rate
    Array(1., f64)
    """

    learning_rate: Any
    value: Any
    grad: Any
    info: Any


class Point(NamedTuple):
    """A step along the line, and the loss and its slope there."""

    step: Any
    value: Any
    slope: Any


class Search(NamedTuple):
    """State of a search: the last point, the ends of the interval, a third point for fits, the best safe one."""

    count: Any
    last: Point
    grad: Any
    decrease_error: Any
    curvature_error: Any
    found: Any
    done: Any
    failed: Any
    low: Point
    high: Point
    third: tuple[Any, Any]
    safe: tuple[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions of a step, with their tolerances, and the growth of the interval."""

    steps: Any
    longest: Any
    tol: Any
    growth: Any
    slope_rtol: Any
    curv_rtol: Any
    approx_dec_rtol: Any
    precision: Any

    def decrease_error(self, here_: Point, start: Point) -> Array:
        """Return by how much the loss is too high, at least 0; infinite where it is no number."""
        error = here_.value - start.value - self.slope_rtol * here_.step * start.slope
        if self.approx_dec_rtol is not None:
            approximate = here_.slope - (2 * self.slope_rtol - 1.0) * start.slope
            rise = here_.value - start.value - self.approx_dec_rtol * abs(start.value)
            error = tnp.minimum(tnp.maximum(approximate, rise), error)
        error = tnp.maximum(error, 0.0)
        return tnp.where(tnp.isnan(error), tnp.inf, error)

    def curvature_error(self, here_: Point, start: Point) -> Array:
        """Return by how much the slope is too steep, at least 0; infinite where it is no number."""
        error = tnp.maximum(abs(here_.slope) - self.curv_rtol * abs(start.slope), 0.0)
        return tnp.where(tnp.isnan(error), tnp.inf, error)


def _cubic(low: Point, high: Point, third: tuple[Any, Any]) -> Array:
    """Return the minimum of the cubic through three values and the slope at `low`."""
    db, dc = high.step - low.step, third[0] - low.step
    rb, rc = high.value - low.value - low.slope * db, third[1] - low.value - low.slope * dc
    scale = (db * dc) ** 2 * (db - dc)
    a, b = (dc**2 * rb - db**2 * rc) / scale, (-(dc**3) * rb + db**3 * rc) / scale
    return low.step + (-b + tnp.sqrt(b * b - 3.0 * a * low.slope)) / (3.0 * a)


def _quadratic(low: Point, high: Point) -> Array:
    """Return the minimum of the parabola through two values and the slope at `low`."""
    width = high.step - low.step
    return low.step - low.slope / (2.0 * ((high.value - low.value - low.slope * width) / width**2))


def _inside(state: Search) -> Array:
    """Return the next step within the interval: by a cubic, a parabola, or in the middle."""
    low, high = state.low.step, state.high.step
    width, left, right = abs(high - low), tnp.minimum(low, high), tnp.maximum(low, high)
    cubic, quadratic = _cubic(state.low, state.high, state.third), _quadratic(state.low, state.high)
    by_cubic = (cubic > left + 0.2 * width) & (cubic < right - 0.2 * width)
    by_quadratic = (quadratic > left + 0.1 * width) & (quadratic < right - 0.1 * width)
    return tnp.where(by_cubic, cubic, tnp.where(by_quadratic, quadratic, (low + high) / 2.0))


def _grown(how: Conditions, state: Search, now: Point, errors: tuple[Any, Any], at_limit: Any) -> Search:
    """Return the state after a step by which an interval was looked for."""
    error = tnp.maximum(*errors)
    to_high = (errors[0] > 0.0) | ((now.value >= state.last.value) & (state.count > 0))
    to_low = (now.slope >= 0.0) & ~to_high
    low, high = chosen(to_low, now, state.last), chosen(to_low, state.last, now)
    found = to_high | to_low | (error <= how.tol)
    done = (error <= how.tol) | (at_limit & ~found)
    failed = (state.count + 1 >= how.steps) & ~done
    return state._replace(found=found, done=done, failed=failed, low=low, high=high, third=(low.step, low.value))


def _narrowed(how: Conditions, state: Search, now: Point, errors: tuple[Any, Any], safe_step: Any) -> Search:
    """Return the state after a step within the interval."""
    done = tnp.maximum(*errors) <= how.tol
    to_high = (errors[0] > 0.0) | (now.value >= state.low.value)
    turned = (now.slope * (state.high.step - state.low.step) >= 0.0) & ~to_high
    high = chosen(turned, state.low, chosen(to_high, now, state.high))
    low = chosen(to_high, state.low, now)
    old = chosen(to_high | turned, state.high, state.low)
    short = abs(state.high.step - state.low.step) <= how.precision
    failed = ((state.count + 1 >= how.steps) | (short & (safe_step > 0.0))) & ~done
    return state._replace(done=done, failed=failed, low=low, high=high, third=(old.step, old.value))


def searched(how: Conditions, loss: Any, params: Any, updates: Any, start: Point, grad: Any, guess: Any) -> Search:
    """Return the last state of the search for a step along updates."""
    dtype = start.value.dtype

    def advanced(state: Search) -> Search:
        longer = tnp.where(state.count == 0, guess, how.growth * state.last.step)
        at_limit = tnp.zeros((), bool)
        if how.longest is not None:
            at_limit, longer = longer >= how.longest, tnp.minimum(longer, how.longest)
        step = tnp.where(state.found, _inside(state), longer).astype(dtype)
        value, slopes = value_and_grad(loss)(moved(params, step, updates))
        now = Point(step, tnp.asarray(value).astype(dtype), inner_product(slopes, updates).astype(dtype))
        errors = how.decrease_error(now, start), how.curvature_error(now, start)
        better = (errors[0] <= how.tol) & (~state.found | (now.value < state.safe[1]))
        safe = chosen(better, (step, now.value, slopes), state.safe)
        grown = _grown(how, state, now, errors, at_limit)
        narrowed = _narrowed(how, state, now, errors, safe[0])
        after = chosen(state.found, narrowed, grown)._replace(
            count=state.count + 1, last=now, grad=slopes, decrease_error=errors[0], curvature_error=errors[1], safe=safe
        )
        return chosen(tnp.asarray(True), after, state)

    none, far = tnp.zeros((), dtype), tnp.full((), tnp.inf, dtype)
    no = tnp.zeros((), bool)
    begin = start._replace(step=none)
    first = Search(
        tnp.zeros((), "int32"), begin, grad, far, far, no, no, no, begin, begin, (none, start.value),
        (none, start.value, grad),
    )  # fmt: skip
    last: Search = lax.while_loop(lambda state: ~(state.done | state.failed), advanced, first)
    return last


def scale_by_zoom_linesearch(
    max_linesearch_steps: int, max_learning_rate: Any = None, tol: Any = 0.0, increase_factor: Any = 2.0,
    slope_rtol: Any = 1e-4, curv_rtol: Any = 0.9, approx_dec_rtol: Any = 1e-6, stepsize_precision: Any = 1e-5,
    initial_guess_strategy: str = "keep", verbose: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the scaling of updates by a step at which the loss falls enough and its slope is small.

    The strong Wolfe conditions: value <= start + slope_rtol step slope, and |slope there| <= curv_rtol |slope|, each
    within tol. Near a minimum the first may also hold by slopes, within approx_dec_rtol |value|; None forbids it.
    increase_factor: growth of the step until an interval has one; stepsize_precision: the least length of the interval.
    max_learning_rate: the longest step. initial_guess_strategy: "keep" begins at the last step, "one" at 1. verbose:
    whether to print each search. Give update the keywords value, grad and value_fn; further ones go to value_fn.
    Nocedal & Wright 2006, section 3.5; Hager & Zhang 2006.

    >>> f = lambda x: tnp.sum(x**2)
    >>> tx = tracer.optim.chain(tracer.optim.sgd(1.0), tracer.optim.scale_by_zoom_linesearch(20))
    >>> params = tnp.asarray([1.0])
    >>> value, g = tracer.value_and_grad(f)(params)
    >>> tx.update(g, tx.init(params), params, value=value, grad=g, value_fn=f)[0]
    Array([-1.], f64)
    """
    name = "scale_by_zoom_linesearch"
    if initial_guess_strategy not in ("one", "keep"):
        got = f"got {initial_guess_strategy!r}"
        raise ArgumentError(message(f"{name}{here()}: initial_guess_strategy is 'one' or 'keep'", got))
    how = Conditions(
        max_linesearch_steps, max_learning_rate, tol, increase_factor, slope_rtol, curv_rtol, approx_dec_rtol,
        stepsize_precision,
    )  # fmt: skip

    def init(params: Any) -> ScaleByZoomLinesearchState:
        far = [tnp.full((), tnp.inf, line_dtype(params)) for _ in range(3)]
        info = ZoomLinesearchInfo(tnp.zeros((), "int32"), far[0], far[1])
        one = tnp.ones((), line_dtype(params))
        return ScaleByZoomLinesearchState(one, far[2], init_leaves(tnp.zeros_like, params), info)

    def apply(
        updates: Any, state: Any, params: Any, scalars: Any, *, value: Any = None, grad: Any = None,
        value_fn: Any = None, **extra: Any,
    ) -> Any:  # fmt: skip
        del scalars
        loss = bound_loss(name, value_fn, extra, {"value": value, "grad": grad, "value_fn": value_fn})
        dtype = state.learning_rate.dtype
        grad = map_leaves(lambda g, old: g.astype(old.dtype), grad, state.grad)
        zero = tnp.zeros((), dtype)
        start = Point(zero, tnp.asarray(value).astype(dtype), inner_product(updates, grad).astype(dtype))
        guess = tnp.ones((), dtype) if initial_guess_strategy == "one" else state.learning_rate
        last = searched(how, loss, params, updates, start, grad, guess)
        fall_back = last.failed & ((last.safe[0] > 0.0) | tnp.isinf(last.decrease_error))
        step, new, slopes = chosen(fall_back, last.safe, (last.last.step, last.last.value, last.grad))
        if verbose:
            debug.print("zoom line search: step {}, decrease error {}, curvature error {}, steps {}",
                        step, last.decrease_error, last.curvature_error, last.count)  # fmt: skip
        info = ZoomLinesearchInfo(last.count, last.decrease_error, last.curvature_error)
        after = ScaleByZoomLinesearchState(step, new, slopes, info)
        return map_leaves(lambda u: at(step, u) * u, updates), after

    return transformation(name, init, apply, need="moves along a line from them", kind=ScaleByZoomLinesearchState)
