"""Roofline: the speed of programs beside the memory bandwidth and the peak of this machine, both measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

from tracer.errors import message
from tracer.ir.program import Program
from tracer.once import once
from tracer.runtime.analysis.cost import bytes_of, program_cost
from tracer.runtime.jit.jit import jit
from tracer.schedule.terms.cost import FUNCTION
from tracer.trace.convert import as_array
from tracer.trace.source import here

_REPEATS: Final = 5
_SIDE: Final = 1024  # of the matrices whose product measures the peak
_ELEMENTS: Final = 1 << 23  # of each array that measures the bandwidth, 64 MiB


class Machine(NamedTuple):
    """Measured limits. bandwidth: bytes a second from and to memory. peak: operations a second on float64."""

    bandwidth: float
    peak: float


class Point(NamedTuple):
    """Program on the roofline. intensity: operations for each byte of its arguments and results. speed: a second."""

    name: str
    intensity: float
    speed: float
    unknown_trips: bool


@once
def machine() -> Machine:
    """Measure the limits, in about a second: 2 x + y over 64 MiB arrays, and a product of float64 matrices."""
    x, y = (as_array(np.ones(_ELEMENTS)) for _ in range(2))
    a = as_array(np.ones((_SIDE, _SIDE)))
    sums, product = jit(lambda x, y: 2.0 * x + y), jit(lambda a: a @ a)
    bandwidth = 3 * 8 * _ELEMENTS / _least(lambda: sums(x, y))
    return Machine(bandwidth, 2 * _SIDE**3 / _least(lambda: product(a)))


def _least(call: Callable[[], Any]) -> float:
    call()
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def points(calls: Sequence[tuple[Program, float]]) -> list[Point]:
    """Return a point for each program that computes, at its fastest call. calls: programs with their seconds."""
    fastest: dict[int, tuple[Program, float]] = {}
    for program, seconds in calls:
        known = fastest.get(id(program))
        if seconds and (known is None or seconds < known[1]):
            fastest[id(program)] = program, seconds
    found = []
    for program, seconds in fastest.values():
        cost = program_cost(program)
        operations = cost.flops + FUNCTION * cost.functions
        moved = sum(map(bytes_of, (*program.input_types, *program.output_types)))
        if operations and moved:
            found.append(Point(program.name, operations / moved, operations / seconds, cost.unknown_trips))
    return found


def draw(calls: Sequence[tuple[Program, float]], axes: Any = None) -> Any:
    """Draw the points under the roof; return the axes. Programs with loops of unknown length have hollow points."""
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError:
        text = f"profile.roofline{here()} draws by matplotlib"
        raise ImportError(message(text, help="pip install matplotlib")) from None
    axes = pyplot.subplots(layout="constrained")[1] if axes is None else axes  # which notebooks show
    limits, shown = machine(), points(calls)
    ridge = limits.peak / limits.bandwidth
    intensities = np.geomspace(
        min([ridge / 64, *(p.intensity / 2 for p in shown)]), max([ridge * 64, *(p.intensity * 2 for p in shown)]), 200
    )
    axes.loglog(intensities, np.minimum(limits.peak, limits.bandwidth * intensities), color="0.5")
    for point in shown:
        hollow = {"markerfacecolor": "none"} if point.unknown_trips else {}
        axes.plot(point.intensity, point.speed, "o", label=point.name, **hollow)
    axes.set_xlabel("operations for each byte of arguments and results")
    axes.set_ylabel("operations a second")
    axes.set_title(f"{limits.bandwidth / 1e9:.3g} GB/s, {limits.peak / 1e9:.3g} GFLOP/s")
    if shown:
        axes.legend()
    return axes
