"""Schedules: functions of a count of updates, computed in float64. See `scale_by_schedule` for their use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from os import PathLike
from typing import Any, Final

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.runtime.jit.jit import jit
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.transforms.vectorize import vmap

Schedule = Callable[[Any], Any]

_POINTS: Final = 1000  # of a plot


def _steps(count: Any) -> Array:
    return tnp.asarray(count).astype("float64")


def _wrong(name: str, reason: str, got: Any) -> ArgumentError:
    return ArgumentError(message(f"{name}{here()}: {reason}", f"got {got!r}"))


def constant_schedule(value: Any) -> Schedule:
    """Return the schedule that is `value` at every count.

    >>> tracer.optim.constant_schedule(0.5)(7)
    0.5
    """
    return lambda count: value


def polynomial_schedule(
    init_value: Any, end_value: Any, power: Any, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """Return the schedule from one value to another as (1 - t)^power falls from 1 to 0.

    transition_steps: the count of steps that it takes; none keep `init_value`. transition_begin: the first of them.

    >>> f = tracer.optim.polynomial_schedule(1.0, 0.0, power=2, transition_steps=10)
    >>> [float(f(n)) for n in (0, 5, 10, 20)]
    [1.0, 0.25, 0.0, 0.0]
    """
    if transition_steps <= 0:
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count: Any) -> Array:
        rest = 1 - tnp.clip(_steps(count) - begin, 0, transition_steps) / transition_steps
        return (init_value - end_value) * rest**power + end_value

    return schedule


def linear_schedule(init_value: Any, end_value: Any, transition_steps: int, transition_begin: int = 0) -> Schedule:
    """Return the schedule along a line from one value to another.

    transition_steps, transition_begin: as of `polynomial_schedule`.

    >>> f = tracer.optim.linear_schedule(0.0, 1.0, 10)
    >>> [float(f(n)) for n in (0, 5, 20)]
    [0.0, 0.5, 1.0]
    """
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def piecewise_constant_schedule(init_value: Any, boundaries_and_scales: Mapping[int, float] | None = None) -> Schedule:
    """Return the schedule of steps: the value is multiplied at each boundary.

    boundaries_and_scales: from the first count of a piece to its factor, at least 0. ArgumentError otherwise.

    >>> f = tracer.optim.piecewise_constant_schedule(1.0, {10: 0.5, 20: 0.1})
    >>> [round(float(f(n)), 3) for n in (9, 10, 20)]
    [1.0, 0.5, 0.05]
    """
    pieces = sorted((boundaries_and_scales or {}).items())
    if any(factor < 0 for _, factor in pieces):
        raise _wrong("piecewise_constant_schedule", "factors are at least 0", boundaries_and_scales)

    def schedule(count: Any) -> Any:
        value = init_value
        for boundary, factor in pieces:
            value = value * tnp.where(_steps(count) >= boundary, factor, 1.0)
        return value

    return schedule


def exponential_decay(
    init_value: Any, transition_steps: int, decay_rate: Any, transition_begin: int = 0, staircase: bool = False,
    end_value: Any = None,
) -> Schedule:  # fmt: skip
    """Return the schedule init_value decay_rate^(count / transition_steps).

    transition_begin: the count at which the decay begins. staircase: whether the exponent is rounded down. end_value:
    bound of the value. A decay rate of 0, or no steps, keep `init_value`.

    >>> f = tracer.optim.exponential_decay(1.0, 10, 0.5)
    >>> [float(f(n)) for n in (0, 10, 20)]
    [1.0, 0.5, 0.25]
    """
    if transition_steps <= 0 or (isinstance(decay_rate, int | float) and decay_rate == 0):
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count: Any) -> Array:
        past = _steps(count) - begin
        exponent = past / transition_steps
        power = tnp.power(decay_rate, tnp.floor(exponent) if staircase else exponent)
        value = tnp.where(past <= 0, init_value, init_value * power)
        if end_value is None:
            return value
        return tnp.maximum(value, end_value) if decay_rate < 1.0 else tnp.minimum(value, end_value)

    return schedule


def cosine_decay_schedule(init_value: Any, decay_steps: Any, alpha: Any = 0.0, exponent: Any = 1.0) -> Schedule:
    """Return the schedule along half a period of a cosine, from a value to `alpha` times it.

    decay_steps: a positive count; ArgumentError otherwise. exponent: power of the cosine. Loshchilov & Hutter 2017,
    arXiv:1608.03983.

    >>> f = tracer.optim.cosine_decay_schedule(1.0, 10)
    >>> [round(float(f(n)), 3) for n in (0, 5, 10, 20)]
    [1.0, 0.5, 0.0, 0.0]
    """
    if isinstance(decay_steps, int | float) and decay_steps <= 0:
        raise _wrong("cosine_decay_schedule", "decay_steps is positive", decay_steps)

    def schedule(count: Any) -> Array:
        part = tnp.minimum(_steps(count), decay_steps) / decay_steps
        height = 0.5 * (1 + tnp.cos(math.pi * part))
        return init_value * ((1 - alpha) * (height if exponent == 1.0 else height**exponent) + alpha)

    return schedule


def piecewise_interpolate_schedule(
    interpolate_type: str, init_value: Any, boundaries_and_scales: Mapping[int, float] | None = None
) -> Schedule:
    """Return the schedule between values at boundaries, each the last one times its factor.

    interpolate_type: "linear" or "cosine". boundaries_and_scales: from counts to factors of at least 0. ArgumentError
    otherwise.

    >>> f = tracer.optim.piecewise_interpolate_schedule("linear", 1.0, {10: 2.0, 20: 0.5})
    >>> [float(f(n)) for n in (0, 5, 10, 15, 30)]
    [1.0, 1.5, 2.0, 1.5, 1.0]
    """
    if interpolate_type not in ("linear", "cosine"):
        raise _wrong("piecewise_interpolate_schedule", "interpolate_type is 'linear' or 'cosine'", interpolate_type)
    pieces = sorted((boundaries_and_scales or {}).items())
    if any(factor < 0 for _, factor in pieces):
        raise _wrong("piecewise_interpolate_schedule", "factors are at least 0", boundaries_and_scales)

    def schedule(count: Any) -> Any:
        n, begin, start = _steps(count), 0, init_value
        value = init_value
        for boundary, factor in pieces:
            part, end = (n - begin) / max(boundary - begin, 1), start * factor
            if interpolate_type == "cosine":
                between = end + (start - end) / 2.0 * (tnp.cos(math.pi * part) + 1)
            else:
                between = (end - start) * part + start
            value = tnp.where(n >= begin, tnp.where(n >= boundary, end, between), value)
            begin, start = boundary, end
        return value

    return schedule


def linear_onecycle_schedule(
    transition_steps: int, peak_value: Any, pct_start: float = 0.3, pct_final: float = 0.85, div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:  # fmt: skip
    """Return the one-cycle schedule along lines: up to a peak, down to the start, and on down.

    transition_steps: all steps, positive. peak_value: the highest. pct_start, pct_final: parts of the steps before the
    peak and before the last descent. div_factor, final_div_factor: the peak over the start, the start over the end.
    Smith & Topin 2018, arXiv:1708.07120.

    >>> f = tracer.optim.linear_onecycle_schedule(100, 1.0)
    >>> [round(float(f(n)), 3) for n in (0, 30, 85)]
    [0.04, 1.0, 0.04]
    """
    if transition_steps <= 0:
        raise _wrong("linear_onecycle_schedule", "transition_steps is positive", transition_steps)
    turns = {int(pct_start * transition_steps): div_factor, int(pct_final * transition_steps): 1.0 / div_factor}
    start = peak_value / div_factor
    return piecewise_interpolate_schedule("linear", start, {**turns, transition_steps: 1.0 / final_div_factor})


def cosine_onecycle_schedule(
    transition_steps: int, peak_value: Any, pct_start: float = 0.3, div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:  # fmt: skip
    """Return the one-cycle schedule along cosines: up to a peak, and down.

    transition_steps: all steps, positive. peak_value: the highest. pct_start: part of the steps before the peak.
    div_factor, final_div_factor: the peak over the start, the start over the end. Smith & Topin 2018, arXiv:1708.07120.

    >>> f = tracer.optim.cosine_onecycle_schedule(100, 1.0)
    >>> [round(float(f(n)), 3) for n in (0, 30, 100)]
    [0.04, 1.0, 0.0]
    """
    if transition_steps <= 0:
        raise _wrong("cosine_onecycle_schedule", "transition_steps is positive", transition_steps)
    turns = {int(pct_start * transition_steps): div_factor, transition_steps: 1.0 / (div_factor * final_div_factor)}
    return piecewise_interpolate_schedule("cosine", peak_value / div_factor, turns)


def warmup_constant_schedule(init_value: Any, peak_value: Any, warmup_steps: int) -> Schedule:
    """Return the schedule along a line to `peak_value`, where it stays.

    >>> f = tracer.optim.warmup_constant_schedule(0.0, 1.0, 10)
    >>> [float(f(n)) for n in (0, 5, 20)]
    [0.0, 0.5, 1.0]
    """
    return linear_schedule(init_value, peak_value, warmup_steps)


def warmup_cosine_decay_schedule(
    init_value: Any, peak_value: Any, warmup_steps: int, decay_steps: int, end_value: Any = 0.0, exponent: Any = 1.0
) -> Schedule:
    """Return the schedule along a line to a peak and along a cosine down to `end_value`.

    warmup_steps: steps of the line. decay_steps: steps of the line and the cosine together. exponent: power of the
    cosine.

    >>> f = tracer.optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 110)
    >>> [round(float(f(n)), 3) for n in (5, 10, 60, 110)]
    [0.5, 1.0, 0.5, 0.0]
    """
    free = isinstance(peak_value, int | float) and peak_value == 0
    alpha = 0.0 if free else end_value / peak_value
    fall = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps), fall], [warmup_steps])


def warmup_exponential_decay_schedule(
    init_value: Any, peak_value: Any, warmup_steps: int, transition_steps: int, decay_rate: Any,
    transition_begin: int = 0, staircase: bool = False, end_value: Any = None,
) -> Schedule:  # fmt: skip
    """Return the schedule along a line to a peak, followed by `exponential_decay`.

    warmup_steps: steps of the line. The other arguments are as in `exponential_decay`, from the peak on.

    >>> f = tracer.optim.warmup_exponential_decay_schedule(0.0, 1.0, 10, 10, 0.5)
    >>> [float(f(n)) for n in (5, 10, 20)]
    [0.5, 1.0, 0.5]
    """
    fall = exponential_decay(peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value)
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps), fall], [warmup_steps])


def wsd_schedule(peak: Any, warmup: int, stable: int, decay: int, end: Any = 0.0) -> Schedule:
    """Return the schedule of warm-up, stable rate and decay, along lines.

    peak: the stable rate. warmup, stable, decay: counts of steps. end: the last rate. Hu et al. 2024, arXiv:2404.06395.

    >>> f = tracer.optim.wsd_schedule(1.0, warmup=10, stable=80, decay=10)
    >>> [float(f(n)) for n in (5, 10, 90, 95, 100)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    rise = linear_schedule(0.0, peak, warmup) if warmup else constant_schedule(peak)
    return join_schedules([rise, linear_schedule(peak, end, decay)], [warmup + stable])


def sgdr_schedule(cosine_kwargs: Iterable[Mapping[str, Any]]) -> Schedule:
    """Return the schedule of cosine decays with restarts.

    cosine_kwargs: the arguments of `warmup_cosine_decay_schedule` for each period. Loshchilov & Hutter 2017,
    arXiv:1608.03983.

    >>> period = dict(init_value=0.0, peak_value=1.0, warmup_steps=0, decay_steps=10)
    >>> f = tracer.optim.sgdr_schedule([period, period])
    >>> [round(float(f(n)), 3) for n in (0, 5, 10, 15)]
    [1.0, 0.5, 1.0, 0.5]
    """
    periods = list(cosine_kwargs)
    ends = np.cumsum([period["decay_steps"] for period in periods]).tolist()
    return join_schedules([warmup_cosine_decay_schedule(**period) for period in periods], ends[:-1])


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Return one schedule after the other, each from 0 at its boundary.

    schedules: one more than boundaries; ArgumentError otherwise. boundaries: the counts at which the next one begins.

    >>> f = tracer.optim.join_schedules([lambda n: 1.0, lambda n: 0.1 * n], [10])
    >>> [float(f(n)) for n in (9, 10, 20)]
    [1.0, 0.0, 1.0]
    """
    if len(schedules) != len(boundaries) + 1:
        counts = f"{len(schedules)} schedules and {len(boundaries)} boundaries"
        raise ArgumentError(
            message(f"join_schedules{here()}: one boundary stands between two schedules", f"got {counts}")
        )

    def schedule(count: Any) -> Any:
        value = schedules[0](count)
        for boundary, following in zip(boundaries, schedules[1:], strict=True):
            value = tnp.where(tnp.asarray(count) < boundary, value, following(count - boundary))
        return value

    return schedule


def plot(schedule: Schedule, steps: int, *, path: str | PathLike[str] | None = None) -> Any:
    """Return a figure of matplotlib with the values of a schedule from 0 to `steps`.

    schedule: from a count, int32, to a scalar; path: of a picture to write, in the format of its suffix. Notebooks show
    the figure. Raises ArgumentError for no steps, ImportError without matplotlib.

    >>> figure = tracer.optim.plot(tracer.optim.cosine_decay_schedule(1e-3, 100), 100)  # doctest: +SKIP
    """
    if steps < 1:
        raise _wrong("plot", "there must be 1 step or more", steps)
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError:
        raise ImportError(message(f"plot{here()} draws by matplotlib", help="pip install matplotlib")) from None
    counts = np.unique(np.linspace(0, steps, min(steps + 1, _POINTS)).round().astype(np.int32))
    values = np.broadcast_to(np.asarray(jit(vmap(lambda n: tnp.asarray(schedule(n))))(counts)), counts.shape)
    figure, axis = pyplot.subplots(figsize=(6, 2.2), layout="constrained")
    pyplot.close(figure)  # notebooks show it as the result of a cell, not once more at its end
    axis.plot(counts, values)
    axis.set_xlabel("update")
    if path is not None:
        figure.savefig(path)
    return figure
