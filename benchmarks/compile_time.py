"""What it takes to trace, differentiate and compile, by the size of the program: all of it is to be linear.

Sizes are equations, nested programs included; they are asserted in tests/transforms/test_program_sizes.py. Times are
the least of some rounds in one process, each round with a program of its own, so that nothing is remembered.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import tracer
import tracer.numpy as tnp
from tracer.ir.program import Program
from tracer.ir.visit import equations

ROUNDS = 3
BARS = {  # seconds; JAX takes 2.0 s for the steps and 3.7 s for the branches
    "trace 10,000 equations": 2.0, "grad of 300 steps, compiled": 1.0, "grad of 300 branches, compiled": 3.7,
}  # fmt: skip

_different = itertools.count(1)


def chain(steps: int) -> Callable[[Any], Any]:
    """A scalar function of so many steps of three operations, unlike every other that this process made."""
    shift = 1e-6 * next(_different)

    def run(x: Any) -> Any:
        for _ in range(steps):
            x = tnp.sin(x) * x + shift
        return x

    return run


def rollout(steps: int) -> Callable[[Any], Any]:
    """A state of eight numbers moved by a small network, step by step in Python."""
    shift = 1e-6 * next(_different)

    def run(w: Any) -> Any:
        state = tnp.ones(8) + shift
        for _ in range(steps):
            state = tnp.tanh(w @ state) + 0.1 * state
        return (state**2).sum()

    return run


def branches(steps: int) -> Callable[[Any], Any]:
    """So many branches in a row, by a predicate that the one before made."""
    shift = 1e-6 * next(_different)

    def run(x: Any) -> Any:
        for _ in range(steps):
            x = tracer.lax.cond(x > 0.5, lambda v: 0.9 * v, lambda v: tnp.sin(v) + (0.5 + shift), x)
        return x

    return run


def numbered(steps: int) -> Callable[[Any], Any]:
    """So many branches over vectors in a row, each with numbers of its own, as steps have that know their time."""
    shift = 1e-6 * next(_different)

    def run(x: Any) -> Any:
        for n in range(steps):
            low = 0.1 * n + shift
            x = tracer.lax.cond(x.sum() > low, lambda v, a=low: 0.9 * v + a, lambda v, a=low: tnp.sin(v) - a, x)
        return x

    return run


def tangled(operations: int) -> Callable[[Any], Any]:
    """So many operations of all sorts over vectors, each of values made long before or not read so far."""
    shift = 1e-6 * next(_different)

    def run(x: Any) -> Any:
        draw, values, unread = random.Random(0), [x + shift, tnp.sin(x)], list[int]()

        def value() -> Any:
            fresh = unread and draw.random() < 0.6
            return values[unread.pop(draw.randrange(len(unread))) if fresh else draw.randrange(len(values))]

        makers: list[Callable[[], Any]] = [
            lambda: value() + value(), lambda: value() * value(), lambda: tnp.maximum(value(), value()),
            lambda: tnp.tanh(value()), lambda: tnp.sin(value()), lambda: tnp.exp(-(value() ** 2)),
            lambda: value() * tnp.sum(value()), lambda: value() - tnp.max(value()), lambda: value()[::-1],
            lambda: tnp.outer(value(), value()) @ value(), lambda: tnp.roll(value(), 4),
            lambda: tnp.where(value() > 0, value(), value()),
            lambda: value().at[draw.randrange(16)].set(tnp.mean(value())),
        ]  # fmt: skip
        while len(values) < operations:
            values.append(draw.choice(makers)())
            unread.append(len(values) - 1)
        return sum(values[n] for n in unread)

    return run


def size(program: Program) -> int:
    """How many equations, nested ones included."""
    return sum(1 for _ in equations(program))


def least(make: Callable[[], Callable[[], Any]]) -> float:
    """The seconds of the fastest round; `make` prepares one."""
    best = float("inf")
    for _ in range(ROUNDS):
        run = make()
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def derivative(function: Callable[..., Any], order: int) -> Callable[..., Any]:
    """`grad` so many times."""
    for _ in range(order):
        function = tracer.grad(function)
    return function


def main() -> int:
    """Measure and print; returns 1 where a bar is missed."""
    print(f"least of {ROUNDS} rounds\n")
    print(f"{'steps':>6}{'order':>7}{'equations':>11}{'optimized':>11}{'trace':>10}{'compile':>10}")
    for order in range(4):
        for steps in (25, 50, 100):
            lowered = tracer.jit(derivative(chain(steps), order)).lower(1.3)
            traced = least(lambda s=steps, o=order: lambda: tracer.jit(derivative(chain(s), o)).lower(1.3).program())

            def compiling(steps: int = steps, order: int = order) -> Callable[[], Any]:
                fresh = tracer.jit(derivative(chain(steps), order)).lower(1.3)
                return fresh.compile

            sizes = f"{size(lowered.program()):>11,}{size(lowered.optimized()):>11,}"
            print(f"{steps:>6}{order:>7}{sizes}{1e3 * traced:>7.0f} ms{1e3 * least(compiling):>7.0f} ms", flush=True)
    w, vector = tnp.eye(8) * 0.5, tnp.linspace(0.1, 1.0, 16)
    measured = {
        "trace 10,000 equations": least(lambda: lambda: tracer.make_program(chain(3334))(1.3)),
        "grad of 300 steps, compiled": least(lambda: lambda: tracer.jit(tracer.grad(rollout(300)))(w)),
        "grad of 300 branches, compiled": least(lambda: lambda: tracer.jit(tracer.grad(branches(300)))(1.0)),
        "300 branches with numbers of their own": least(lambda: lambda: tracer.jit(numbered(300))(vector)),
        "900 tangled operations, compiled": least(lambda: lambda: tracer.jit(tangled(900))(vector)),
        "grad of 300 steps, define by run": least(lambda: lambda: tracer.grad(rollout(300))(w)),
    }
    print()
    for name, seconds in measured.items():
        bar = f", at most {BARS[name]:.1f} s" if name in BARS else ""
        print(f"{name:<40}{seconds:6.2f} s{bar}")
    return int(any(measured[name] > bar for name, bar in BARS.items()))


if __name__ == "__main__":
    sys.exit(main())
