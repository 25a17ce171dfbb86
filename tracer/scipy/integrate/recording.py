"""Recorded steps of an initial value problem, and its events, in arrays of a fixed capacity."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tracer.lax import cond, custom_root, while_loop
from tracer.numpy import absolute, asarray, finfo, inf, isnan, min, nan, stack, where, zeros
from tracer.scipy.integrate.stepping import Method, Slope, State, Tolerances, advance, interpolated, moves, real
from tracer.scipy.optimize.scalars import brent_root
from tracer.trace.array import Array


class Event(NamedTuple):
    """Function of time and value whose roots are found: rising (1), falling (-1) or both (0).

    limit: the number of roots that ends the solution, inf for none.
    """

    function: Callable[[Array, Array], Array]
    direction: float
    limit: float


class Records(NamedTuple):
    """Ends, values and sizes of accepted steps, coefficients of their interpolants, and events in each of them.

    levels: the events' values at the current time; hits: how many roots each had; steps: rows in use.
    """

    state: State
    ts: Array
    ys: Array
    sizes: Array
    coefficients: Array
    event_ts: Array
    event_ys: Array
    levels: Array
    hits: Array
    steps: Array
    stopped: Array


class Recorder(NamedTuple):
    """Steps of a method towards the bound of the tolerances, with events, and interpolants if they are wanted."""

    method: Method
    f: Slope
    tolerances: Tolerances
    direction: Array
    events: tuple[Event, ...]
    interpolating: bool

    def empty(self, state: State, capacity: int) -> Records:
        """Return records without rows."""
        n, k = state.y.size, len(self.events)
        powers = self.method.coefficients(self.f, state.last)[0].shape[0] if self.interpolating else 0
        times, values = zeros((capacity, k), state.t.dtype), zeros((capacity, k, n), state.y.dtype)
        levels = [event.function(state.t, state.y) for event in self.events]
        return Records(
            state, zeros(capacity, state.t.dtype), zeros((capacity, n), state.y.dtype),
            zeros(capacity, state.t.dtype), zeros((capacity, powers, n), state.y.dtype), times + nan, values + nan,
            stack(levels) if levels else zeros(0, state.t.dtype), zeros(k, int), asarray(0, int), zeros((), bool),
        )  # fmt: skip

    def again(self, records: Records) -> Records:
        """Return records of the same capacity without rows, from which the solution continues."""
        fresh = self.empty(records.state, records.ts.size)
        return fresh._replace(levels=records.levels, hits=records.hits, stopped=records.stopped)

    def unfinished(self, records: Records) -> Array:
        """Return whether there are further steps."""
        state = records.state
        left = (self.tolerances.bound - state.t) * self.direction > 0
        return left & ~state.failed & ~records.stopped & moves(state)

    def run(self, records: Records) -> Records:
        """Take steps until the bound, a terminal event, or the capacity."""
        return while_loop(lambda r: self.unfinished(r) & (r.steps < r.ts.size), self._step, records)

    def _step(self, records: Records) -> Records:
        state = advance(self.method, self.f, records.state, self.tolerances)
        accepted = ~state.rejected
        row = where(accepted, records.steps, records.ts.size)
        if self.interpolating:
            coefficients, evaluations = self.method.coefficients(self.f, state.last)
            counts = state.counts._replace(nfev=state.counts.nfev + where(accepted, evaluations, 0))
            state = state._replace(counts=counts)
            records = records._replace(coefficients=_put(records.coefficients, row, coefficients))
            if self.events:
                state, records = self._with_events(state, records, coefficients, accepted, row)
        return records._replace(
            state=state, ts=_put(records.ts, row, state.t), ys=_put(records.ys, row, state.y),
            sizes=_put(records.sizes, row, state.last.h), steps=records.steps + accepted,
        )  # fmt: skip

    def _with_events(
        self, state: State, records: Records, coefficients: Array, accepted: Array, row: Array
    ) -> tuple[State, Records]:  # fmt: skip
        last, old = state.last, records.levels

        def value(t: Array) -> Array:
            return interpolated(last.y, coefficients, ((t - last.t) / last.h).astype(real(last.y.dtype)))

        new = stack([event.function(state.t, state.y) for event in self.events])
        rising, falling = (old <= 0) & (new >= 0), (old >= 0) & (new <= 0)
        wanted = asarray([event.direction for event in self.events])
        active = accepted & ((rising & (wanted >= 0)) | (falling & (wanted <= 0)))
        roots = stack([
            cond(on, partial(_root, event.function, value, last.t, state.t), lambda: last.t * 0 + nan)
            for event, on in zip(self.events, active, strict=True)
        ])  # fmt: skip
        hits = records.hits + active
        ending = active & (hits >= asarray([event.limit for event in self.events]))
        first = min(where(ending, roots * self.direction, inf))
        ended = first < inf
        found = where(active & (roots * self.direction <= first), roots, nan)
        known = ~isnan(found)
        inside = where(known, found, last.t)  # NaN would reach derivatives
        values = where(known[:, None], stack([value(t) for t in inside]), nan)
        t = where(ended, where(ended, first, 0) * self.direction, state.t)
        y = where(ended, value(t), state.y)
        return state._replace(t=t, y=y), records._replace(
            event_ts=_put(records.event_ts, row, found), event_ys=_put(records.event_ys, row, values),
            levels=where(accepted, new, old), hits=hits, stopped=records.stopped | ended,
        )  # fmt: skip


def _put(rows: Array, row: Array, value: Array) -> Array:
    return rows.at[row].set(value, mode="drop")


def _root(
    event: Callable[[Array, Array], Array], value: Callable[[Array], Array], low: Array, high: Array
) -> Array:  # fmt: skip
    """Return the time of an event within a step, differentiable by the implicit function theorem."""
    small = 4 * finfo(low.dtype).eps

    def level(t: Array) -> Array:
        return event(t, value(t)).astype(t.dtype)

    def solve(function: Callable[[Array], Array], _: Array) -> Array:
        found = brent_root(function, stack([low, high]), lambda t: small * (1 + absolute(t)), 100)
        return found[0]

    return custom_root(level, high, solve, lambda g, y: y / g(asarray(1, y.dtype)))
