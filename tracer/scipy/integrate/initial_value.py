"""`solve_ivp`: initial value problems of ordinary differential equations, under SciPy's name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.lax import scan
from tracer.numpy import absolute, arange, argsort, asarray, concatenate, isnan, nan, stack, where, zeros
from tracer.numpy.core.conversion import array_of, floating
from tracer.scipy.integrate.radau import radau
from tracer.scipy.integrate.recording import Event, Recorder, Records
from tracer.scipy.integrate.runge_kutta import explicit
from tracer.scipy.integrate.solutions import OdeResult, OdeSolution
from tracer.scipy.integrate.stepping import Method, Slope, State, Tolerances, begin, reach, value_at
from tracer.scipy.integrate.stepping import first_step as guessed_step
from tracer.scipy.integrate.tableaus import DOP853, RK23, RK45
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here
from tracer.trace.tracebacks import call_user
from tracer.transforms.functions import check_callable
from tracer.transforms.jacobians import jacfwd

_NAME = "solve_ivp"
_TABLEAUS = {"RK23": RK23, "RK45": RK45, "DOP853": DOP853}
_CHUNK = 128  # steps that are recorded at a time outside `jit`
_COMPILED = 1000  # steps that are recorded at most under `jit`


def solve_ivp(
    fun: Callable[..., Any], t_span: Sequence[Any], y0: Any, method: str = "RK45", t_eval: Any = None,
    dense_output: bool = False, events: Any = None, vectorized: bool = False, args: Any = None, *,
    rtol: Any = 1e-3, atol: Any = 1e-6, max_step: Any = math.inf, first_step: Any = None, jac: Any = None,
    max_steps: int | None = None,
) -> OdeResult:  # fmt: skip
    """Solve dy/dt = fun(t, y, *args) from y0 at t_span[0] to t_span[1], in either direction.

    fun: returns numbers [n] or a list of n, for a time [] and the value [n] (a number if n is 1); y0: floats or complex
    numbers [n]; t_span: two real numbers; args: a tuple of trees. method: "RK45", "RK23" or "DOP853", explicit
    Runge-Kutta methods, or "Radau", implicit, for stiff problems with real values. t_eval: real numbers [m] within
    t_span at which the solution is returned, by default after every step. dense_output: whether `sol` interpolates it.
    events: functions of fun's arguments, or one: their roots in time are found, only sign changes of `event.direction`
    if it is not 0, and `event.terminal` (a bool or a number of roots) ends the solution. rtol, atol: tolerances of a
    step's error; max_step, first_step: sizes. jac: for "Radau", the derivative of fun by y as a function or a matrix
    [n, n], by default in forward mode. vectorized: accepted for SciPy. max_steps: steps at most, a concrete integer.

    Returns `OdeResult`. Shapes under `jit` do not depend on values: the results have as many columns as t_eval, or
    max_steps (1000) + 1, and `num_points` says how many are used; further ones repeat the last, or are NaN where a time
    of t_eval is not reached. Outside `jit`, results are as long as in SciPy, and the number of steps has no limit by
    itself; with t_eval, without events and dense_output, it has none under `jit` either. Lanes of `vmap` end by
    themselves. Raises ArgumentError for an unknown method and for values that do not fit, ShapeError for y0 that is no
    vector.

    Derivatives of every mode and order are derivatives of the steps taken. Radau's stages and the times of events have
    derivatives by the implicit function theorem.

    >>> result = tracer.scipy.integrate.solve_ivp(lambda t, y: -y, (0.0, 2.0), [1.0], t_eval=[0.0, 1.0, 2.0], rtol=1e-8)
    >>> result.y.round(4), result.message
    (Array([[1.    , 0.3679, 0.1353]], f64), 'the end of the interval is reached')
    >>> end = lambda k: tracer.scipy.integrate.solve_ivp(lambda t, y: -k * y, (0.0, 2.0), [1.0], rtol=1e-8).y[0, -1]
    >>> tracer.grad(end)(1.0).round(4)
    Array(-0.2707, f64*)
    """
    check_callable(fun, _NAME)
    times, start = _span(t_span), _value(y0)
    given = args if isinstance(args, tuple) else () if args is None else (args,)
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        _require(f"{name} is not negative", tolerance, lambda x: x >= 0)
    for name, size in (("max_step", max_step), ("first_step", first_step)):
        _require(f"{name} is positive", size, lambda x: x > 0, "t_span says the direction")
    f = _slope(fun, given, times[0], start)
    chosen = _method(method, f, jac, given, start)
    bound, direction = times[1], where(times[1] < times[0], -1, 1).astype(times.dtype)
    tolerances = Tolerances(rtol, atol, max_step, bound)
    slope = f(times[0], start)
    span = absolute(bound - times[0])
    if first_step is None:
        first = guessed_step(chosen, f, times[0], start, slope, direction, rtol, atol, span)
    else:
        length = concrete_value(span)
        if length is not None:
            _require("first_step is at most the length of t_span", first_step, lambda x: x <= length)
        first = (direction * absolute(array_of(_NAME, first_step))).astype(times.dtype)
    state = begin(chosen, f, times[0], start, tolerances.limited(times[0], first), slope, 1 + (first_step is None))
    wanted = None if t_eval is None else _wanted(t_eval, times)
    watched = _events(events, given)
    if wanted is not None and not dense_output and not watched:
        return _at_times(chosen, f, state, tolerances, wanted, direction, max_steps)
    recorder = Recorder(chosen, f, tolerances, direction, watched, dense_output or bool(watched) or wanted is not None)
    records, known = _recorded(recorder, state, max_steps)
    return _result(records, known, (times[0], start), direction, bound, wanted, dense_output)


def _span(t_span: Sequence[Any]) -> Array:
    ends = [array_of(_NAME, t) for t in t_span]
    if len(ends) != 2 or any(t.ndim or dtypes.is_complex(t.dtype) for t in ends):
        got = f"got {', '.join(str(t.type) for t in ends)}"
        raise ShapeError(message(f"solve_ivp{here()}: t_span is two real numbers, the first and the last time", got))
    times = stack([floating(t) for t in ends])
    _require("t_span has no NaN", times, lambda t: ~np.isnan(t))
    return times


def _value(y0: Any) -> Array:
    start = array_of(_NAME, asarray(y0))
    if start.ndim != 1:
        text = f"solve_ivp{here()}: y0 is a vector"
        remedy = "[y0] for one number; flatten_util.ravel_pytree for a tree"
        raise ShapeError(message(text, f"got {start.type}", help=remedy))
    start = floating(start)
    _require("y0 is finite", start, np.isfinite)
    return start


def _require(rule: str, given: Any, holds: Callable[[Any], Any], help: str | None = None) -> None:
    """Raise ArgumentError for a concrete argument that breaks a rule. holds: from its values to bools."""
    values = None if given is None else concrete_value(array_of(_NAME, given))
    if values is not None and not holds(values).all():
        raise ArgumentError(message(f"solve_ivp{here()}: {rule}", f"got {given!r}", help=help))


def _slope(fun: Any, args: tuple[Any, ...], t: Array, start: Array) -> Slope:
    def slope(t: Array, y: Array) -> Array:
        found = call_user(fun, (t, y, *args), {})
        value = asarray(found) if not isinstance(found, list | tuple) else stack([asarray(x) for x in found])
        if not value.ndim and start.size == 1:
            value = value.reshape(start.shape)
        if value.shape != start.shape:
            raise ShapeError(
                message(
                    f"solve_ivp{here()}: fun returns one number for each of y", f"got {value.type} for {start.type}"
                )
            )
        if dtypes.is_complex(value.dtype) and not dtypes.is_complex(start.dtype):
            remedy = "start from complex numbers, y0.astype(complex)"
            text = f"solve_ivp{here()}: fun returns complex numbers for real ones"
            raise DTypeError(message(text, f"got {value.type} for {start.type}", help=remedy))
        return value.astype(start.dtype)

    return slope


def _method(method: str, f: Slope, jac: Any, args: tuple[Any, ...], start: Array) -> Method:
    if method in _TABLEAUS:
        return explicit(_TABLEAUS[method])
    if method != "Radau":
        known = ", ".join((*_TABLEAUS, "Radau"))
        remedy = f"take Radau for stiff problems, of {known}"
        raise ArgumentError(message(f"solve_ivp{here()}: no such method", f"got {method!r}", help=remedy))
    if not start.size:
        raise ShapeError(message(f"solve_ivp{here()}: Radau takes one value at least", f"got {start.type}"))
    if dtypes.is_complex(start.dtype):
        remedy = "solve for real and imaginary parts"
        raise DTypeError(message(f"solve_ivp{here()}: Radau takes real values", f"got {start.type}", help=remedy))
    if jac is None:
        return radau(jacfwd(f, 1))
    if callable(jac):
        return radau(lambda t, y: asarray(call_user(jac, (t, y, *args), {})).astype(y.dtype))
    matrix = array_of(_NAME, jac).astype(start.dtype)
    return radau(lambda t, y: matrix)


def _wanted(t_eval: Any, times: Array) -> Array:
    wanted = floating(array_of(_NAME, asarray(t_eval))).astype(times.dtype)
    if wanted.ndim != 1:
        raise ShapeError(message(f"solve_ivp{here()}: t_eval is one axis of times", f"got {wanted.type}"))
    values, ends = concrete_value(wanted), concrete_value(times)
    if values is None or ends is None:
        return wanted
    sign = -1 if ends[1] < ends[0] else 1
    outside = (sign * values < sign * ends[0]) | (sign * values > sign * ends[1])
    if outside.any() or (sign * np.diff(values) <= 0).any():
        text = f"solve_ivp{here()}: t_eval lies within t_span, in its direction"
        raise ArgumentError(message(text, f"got times from {values.min()} to {values.max()} for {ends.tolist()}"))
    return wanted


def _events(events: Any, args: tuple[Any, ...]) -> tuple[Event, ...]:
    def watched(function: Any) -> Event:
        terminal = getattr(function, "terminal", None) or math.inf

        def level(t: Array, y: Array) -> Array:
            found = array_of(_NAME, call_user(function, (t, y, *args), {}))
            if found.size != 1 or dtypes.is_complex(found.dtype):
                raise ShapeError(message(f"solve_ivp{here()}: an event returns one real number", f"got {found.type}"))
            return found.reshape(()).astype(t.dtype)

        return Event(level, float(getattr(function, "direction", 0) or 0), float(terminal))

    given = () if events is None else (events,) if callable(events) else tuple(events)
    return tuple(watched(function) for function in given)


def _at_times(
    method: Method, f: Slope, state: State, tolerances: Tolerances, wanted: Array, direction: Array, max_steps: Any
) -> OdeResult:  # fmt: skip
    """Return the solution at times alone, without recording the steps between them."""
    limit = math.inf if max_steps is None else max_steps

    def step(state: State, target: Array) -> tuple[State, Array]:
        state = reach(method, f, state, target, tolerances, limit)
        missing = (target - state.t) * direction > 0
        return state, where(missing, nan, value_at(method, f, state.last, target))

    # the steps to the end are the last iteration, so that the program holds one loop of steps
    state, values = scan(step, state, concatenate([wanted, tolerances.bound[None]]))
    values = values[:-1]
    reached = wanted * direction <= state.t * direction
    status = where(state.t == tolerances.bound, 0, -1)
    count = reached.sum()
    known = concrete_value(count)
    if known is not None and int(known) < wanted.size:
        wanted, values = wanted[: int(known)], values[: int(known)]
    return OdeResult(wanted, values.T, None, None, None, *state.counts, status, status >= 0, count)


def _recorded(recorder: Recorder, state: State, max_steps: int | None) -> tuple[Records, bool]:
    """Return the recorded steps, and whether their number is concrete.

    A concrete number has no limit but `max_steps`.
    """
    known = concrete_value(recorder.direction + state.t + state.y.sum().real) is not None
    if not known:
        return recorder.run(recorder.empty(state, _COMPILED if max_steps is None else max_steps)), False
    left = math.inf if max_steps is None else max_steps
    records, parts = recorder.empty(state, int(min(_CHUNK, left))), []
    while True:
        records = recorder.run(records)
        count = int(records.steps)
        parts.append([x[:count] for x in records[1:7]])
        left -= count
        if left <= 0 or not recorder.unfinished(records):
            break
        records = recorder.again(records)
        if left < records.ts.size:
            records = recorder.empty(records.state, int(left))._replace(hits=records.hits)
    joined = [concatenate(rows) for rows in zip(*parts, strict=True)]
    names = Records._fields[1:7]
    rows: dict[str, Any] = dict(zip(names, joined, strict=True))
    whole = records._replace(**rows, steps=asarray(len(joined[0]), int))
    return whole, True


def _result(
    records: Records, known: bool, start: tuple[Array, Array], direction: Array, bound: Array, wanted: Array | None,
    dense_output: bool,
) -> OdeResult:  # fmt: skip
    state, count = records.state, records.steps
    used = arange(records.ts.size + 1) <= count
    ts = where(used, concatenate([start[0][None], records.ts]), state.t)
    ys = where(used[:, None], concatenate([start[1][None], records.ys]), state.y)
    status = where(records.stopped, 1, where(state.t == bound, 0, -1))
    if records.ts.size:
        sizes = where(used[1:], records.sizes, direction)
        sol = OdeSolution(ts, ys, sizes, records.coefficients, count)
    else:
        nothing = zeros((1, 1, ys.shape[1]), ys.dtype)
        sol = OdeSolution(concatenate([ts, ts]), concatenate([ys, ys]), direction[None], nothing, count + 1)
    t_events = y_events = None
    if records.event_ts.shape[1]:
        pairs = [_occurrences(records, k, known) for k in range(records.event_ts.shape[1])]
        t_events, y_events = (list(side) for side in zip(*pairs, strict=True))
    t, y, points = ts, ys.T, count + 1
    if wanted is not None:
        reached = wanted * direction <= state.t * direction
        points = reached.sum()
        if known:
            wanted = wanted[: int(points)]
            t, y = wanted, sol(wanted)
        else:
            t, y = wanted, where(reached, sol(wanted), nan)
    return OdeResult(
        t, y, sol if dense_output else None, t_events, y_events, *state.counts, status, status >= 0, points
    )


def _occurrences(records: Records, k: int, known: bool) -> tuple[Array, Array]:
    """Return the times and values of one event, in order: trimmed if known, else with NaN after them."""
    times, values = records.event_ts[:, k], records.event_ys[:, k]
    order = argsort(isnan(times), stable=True)
    if known:
        order = order[: int((~isnan(times)).sum())]
    return times[order], values[order]
