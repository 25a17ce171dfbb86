"""The memory that the derivative of a long loop takes: a scalar ODE of 10^3 to 10^6 steps, with a limit and without.

y' = -y^2 by Euler's method from y(0) = x, in a `while_loop` under jit. Each variant runs in a fresh process, which
reports the peak of its resident memory above what it had when the function was compiled, the time of a call (the least
of three), and the derivative of the last value in x; the product of 1 - 2 h y over the steps is the exact one.
"""

from __future__ import annotations

import json
import subprocess
import sys

RUNS = ((1, 1_000), (1, 10_000), (1, 100_000), (1, 1_000_000), (2, 1_000_000))  # order of the derivative, steps
START = 1.5
LIMITS = (None, 2**24, 2**20, 2**16)
ROUNDS = 3

PROGRAM = """
import json, resource, sys, time
import tracer
steps, start, limit, order = json.loads(sys.argv[1])
h = 1.0 / steps

def peak():
    with open("/proc/self/status") as lines:
        fields = dict(line.split(":", 1) for line in lines)
    return int(fields["VmHWM"].split()[0]) * 1024

def solve(x, n):
    step = lambda c: (c[0] + 1, c[1] - h * c[1] ** 2)
    return tracer.lax.while_loop(lambda c: c[0] < n, step, (0, x))[1]

derivative = tracer.grad(solve)
if order == 2:
    derivative = tracer.grad(derivative)
with tracer.config.using(loop_memory=limit):
    f = tracer.jit(derivative)
    float(f(start, 10))
    forward = tracer.jit(solve)
    float(forward(start, 10))
    before = peak()
    found = float(f(start, steps))
    grown = peak() - before

    def least(function):
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            float(function(start, steps))
            times.append(time.perf_counter() - begin)
        return min(times)

    alone, seconds = least(forward), least(f)
print(json.dumps([found, grown, seconds, alone]))
"""


def exact(order: int, steps: int) -> float:
    """The first or second derivative of the last value, by the chain rule over the steps."""
    h, y, first, second = 1.0 / steps, START, 1.0, 0.0
    for _ in range(steps):
        second = second * (1 - 2 * h * y) - 2 * h * first * first
        first, y = first * (1 - 2 * h * y), y - h * y * y
    return second if order == 2 else first


def measured(limit: int | None, order: int, steps: int) -> tuple[float, int, float, float]:
    """The derivative, the peak above the start in bytes, and the seconds of a call and of the loop alone."""
    arguments = json.dumps([steps, START, limit, order])
    finished = subprocess.run([sys.executable, "-c", PROGRAM, arguments], capture_output=True, text=True, check=True)
    found, peak, seconds, alone = json.loads(finished.stdout)
    return found, peak, seconds, alone


def main() -> int:
    """Measure and print; returns 1 where a derivative is wrong, or a limit is passed by more than a page or two."""
    failed = 0
    print(f"medians of {ROUNDS} processes each, taken in turns")
    print(f"{'order':<7}{'steps':>10}{'limit':>12}{'peak':>16}{'seconds':>10}{'/ forward':>11}{'relative error':>17}")
    for order, steps in RUNS:
        wanted = exact(order, steps)
        runs = {limit: [] for limit in LIMITS}  # type: ignore[var-annotated]
        for _ in range(ROUNDS):
            for limit in LIMITS:
                runs[limit].append(measured(limit, order, steps))
        for limit, results in runs.items():
            found, peak, seconds, alone = sorted(results, key=lambda run: run[2])[ROUNDS // 2]
            error = abs(found / wanted - 1)
            shown = "none" if limit is None else f"{limit / 2**10:,.0f} KiB"
            memory, times = f"{peak / 2**10:>12,.0f} KiB", f"{seconds:>10.4f}{seconds / alone:>11.1f}"
            print(f"{order:<7}{steps:>10,}{shown:>12}{memory}{times}{error:>17.1e}")
            failed |= error > 1e-9 or (limit is not None and peak > order * limit + 2**20)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
