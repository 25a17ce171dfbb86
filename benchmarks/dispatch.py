"""What calls cost beside NumPy's addition: of a tiny jitted function, of eager operations, of an eager gradient.

Nanoseconds, the minimum and the median of alternating rounds. The bars, for the minimum: a jitted function of one array
0.5 µs, of ten 1 µs, of a tree of fifty 15 µs. Eager operations are here to compare; `benchmarks/eager.py` has their
budgets. Other load on the core can only add to a call's time, and doubles it at times: NumPy's addition and a Python
function show how much.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import timeit
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

import tracer.numpy as tnp
from tracer import grad, jit, jvp, lax, nn, random, value_and_grad, vmap
from tracer.primitives.elementwise.arithmetic import add
from tracer.runtime.native.capi import why_not
from tracer.trace.convert import as_array

ROUNDS = 25
FACTOR = 2.0  # a global that a jitted function reads
CALLS = 1000

Case = tuple[str, Callable[..., Any], tuple[Any, ...], float | None]  # the last is the bar in ns


def cases() -> list[Case]:
    """Name, function, arguments, bar."""
    x = np.arange(16.0)
    a, s, m = as_array(x), as_array(np.float64(2)), as_array(x.reshape(4, 4))
    double = jit(lambda v: add(v, v))
    ten = jit(lambda *vs: add(vs[0], vs[9]))
    tree = {f"layer{i:02}": [a, a] for i in range(25)}
    first = jit(lambda t: add(t["layer00"][0], t["layer24"][1]))
    factor = 2.0
    by_cell, by_global = jit(lambda v: tnp.multiply(v, factor)), jit(lambda v: tnp.multiply(v, FACTOR))
    static = jit(lambda v, mode: add(v, v), static_argnames="mode")
    donating = jit(lambda v: add(v, v), donate_argnums=0)
    return [
        ("numpy x + x", np.add, (x, x), None),
        ("python lambda", lambda v: v, (x,), None),
        ("jit, ndarray", double, (x,), 500),
        ("jit, Array", double, (a,), 500),
        ("jit, a closure variable", by_cell, (a,), 500),
        ("jit, a global", by_global, (a,), 500),
        ("jit, Array f64[]", double, (s,), 500),
        ("jit, Python float", double, (2.0,), 500),
        ("jit, ten Arrays", ten, (a,) * 10, 1000),
        ("jit, tree of fifty", first, (tree,), 15000),
        ("jit, tree in and out", jit(lambda t: t), (tree,), None),
        ("jit, static argument", static, (a, "fast"), None),
        ("by Python: OrderedDict", jit(lambda t: add(t["v"], t["v"])), (OrderedDict(v=a),), None),
        ("by Python: x[::2]", double, (np.arange(32.0)[::2],), None),
        ("jit, a copy that is donated", lambda v: donating(as_array(v)), (x,), None),
        ("eager add", tnp.add, (a, a), None),
        ("eager x + 1.0", lambda v: v + 1.0, (a,), None),
        ("eager where", tnp.where, (a > 3, a, a), None),
        ("eager exp", tnp.exp, (a,), None),
        ("eager sum", tnp.sum, (a,), None),
        ("eager argmax", tnp.argmax, (a,), None),
        ("eager reshape", lambda v: v.reshape(4, 4), (a,), None),
        ("eager transpose", lambda v: v.T, (m,), None),
        ("eager m @ m", lambda v: v @ v, (m,), None),
        ("eager stack", lambda v: tnp.stack([v, v]), (a,), None),
        ("eager x[2]", lambda v: v[2], (a,), None),
        ("eager x[i]", lambda v, i: v[i], (a, as_array(3)), None),
        ("eager x.at[2].set", lambda v: v.at[2].set(1.0), (a,), None),
        ("eager var", tnp.var, (a,), None),
        ("eager cumsum", tnp.cumsum, (a,), None),
        ("eager x[[3, 1]]", lambda v, i: v[i], (a, as_array(np.array([3, 1]))), None),
        ("eager x[mask]", lambda v, m: v[m], (a, a > 3), None),
        ("eager x[k], k varies", lambda v: v[next(_places)], (a,), None),
        ("eager x[k] = w, both vary", _write, (a,), None),
        ("eager float(x[2])", lambda v: float(v[2]), (a,), None),
        ("eager softmax", nn.softmax, (a,), None),
        ("eager normals", lambda k: random.normal(k, (16,)), (random.key(0),), None),
        ("eager gradient", grad(_small), (a,), None),
        ("eager gradient, an attribute", grad(_with_attribute), (a,), None),
        ("eager jvp", lambda v: jvp(_small, (v,), (v,)), (a,), None),
        ("eager vmap", vmap(lambda v: tnp.sin(v) * 2.0), (a,), None),
        ("eager gradient, layers", value_and_grad(_network), ([m, m, m], m), None),
        ("eager scan", lambda v: lax.scan(_step, 0.0, v), (a,), None),
        ("eager while_loop", lambda v: lax.while_loop(_is_small, _twice, v), (s,), None),
        ("eager scan, a new function", lambda v: lax.scan(lambda c, x: (c + x, c), 0.0, v), (a,), None),
    ]


def _small(v: Any) -> Any:
    return tnp.sum(tnp.tanh(v) * v)


class _Settings:
    """An attribute that a function reads."""

    rate = 2.0


def _with_attribute(v: Any) -> Any:
    return tnp.sum(tnp.tanh(v) * _Settings.rate)


_places = itertools.cycle(range(16))


def _write(v: Any) -> Any:
    v = v.copy()
    place = next(_places)
    v[place] = 0.5 * place
    return v


def _step(carry: Any, x: Any) -> Any:
    return carry + tnp.sin(x), carry * x


def _is_small(v: Any) -> Any:
    return v < 100.0


def _twice(v: Any) -> Any:
    return 2.0 * v


def _network(weights: list[Any], x: Any) -> Any:
    for w in weights[:-1]:
        x = tnp.tanh(x @ w)
    return tnp.sum((x @ weights[-1]) ** 2)


def measure(all_cases: list[Case]) -> dict[str, tuple[float, float]]:
    """Nanoseconds a call, least and median, all cases in turns."""
    times: dict[str, list[float]] = {name: [] for name, *_ in all_cases}
    timers = [(n, timeit.Timer("f(*a)", globals={"f": f, "a": a})) for n, f, a, _ in all_cases]
    for _, timer in timers:
        timer.timeit(1000)  # compiles
    for _ in range(ROUNDS):
        for name, timer in timers:
            times[name].append(timer.timeit(CALLS) / CALLS * 1e9)
    return {name: (min(values), statistics.median(values)) for name, values in times.items()}


def main() -> int:
    """Measure and print; returns 1 where a bar is missed."""
    print(f"compiled entry: {why_not() or 'in use'}; nanoseconds a call, f(*args) included")
    print(f"{'':<30}{'least':>10}{'median':>10}")
    all_cases = cases()
    found = measure(all_cases)
    missed = 0
    for name, _, _, bar in all_cases:
        least, median = found[name]
        over = bar is not None and least > bar
        missed += over
        said = "" if bar is None else f"   bar {bar:.0f}{'  MISSED' * over}"
        print(f"{name:<30}{least:>10.0f}{median:>10.0f}{said}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
