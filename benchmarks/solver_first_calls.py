"""CPU time of first calls of solvers and optimizers, each in a fresh process: tracing, passes, schedule, LLVM, one run.

The least of some processes, once without kept programs, and once where an earlier process has kept the object code, as
`config.cache_dir` asks. Imports, and the kernels that programs share, are there before the call. The issues ask for
60 ms for a solver and 300 for AdamW.

    python benchmarks/solver_first_calls.py [ROUNDS] [NAME ...]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer import optim
from tracer.experimental.ode import odeint
from tracer.scipy.integrate import solve_ivp
from tracer.scipy.optimize import least_squares, minimize, root

Call = tuple[Callable[..., Any], tuple[Any, ...]]
_TIMES = np.linspace(0, 20, 100)
_SAMPLES = np.linspace(0, 3, 1000)


def _pendulum(t: Any, y: Any) -> Any:
    return [y[1], -tnp.sin(y[0]) - 0.1 * y[1]]


def _robertson(t: Any, y: Any) -> Any:
    slow, fast, square = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return [fast - slow, slow - fast - square, square]


def _ivp(method: str, tolerance: float, function: Any = _pendulum, until: float = 20.0) -> Call:
    def run(y: Any) -> Any:
        return solve_ivp(function, (0.0, until), y, method, _TIMES * until / 20, rtol=tolerance, atol=tolerance).y

    return run, (np.array([1.0, 0.0, 0.0][: 3 if function is _robertson else 2]),)


def _odeint(y: Any, times: Any) -> Any:
    return odeint(lambda y, t: tnp.stack(_pendulum(t, y)), y, times, rtol=1e-9, atol=1e-9)


def _rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def _minimum(method: str) -> Call:
    return lambda x: minimize(_rosenbrock, x, method=method).x, (np.linspace(0.5, 0.9, 10),)


def _equations(x: Any, a: Any) -> Any:
    return tnp.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - a, 0.5 * (x[1] - x[0]) ** 3 + x[1]])


def _decay(p: Any, t: Any) -> Any:
    return p[0] * tnp.exp(-p[1] * t) + p[2]


def _fit(t: Any, y: Any) -> Any:
    return least_squares(lambda p: _decay(p, t) - y, np.ones(3), method="lm").x


def _adamw(width: int = 64, layers: int = 12) -> Call:
    """An update of 144 arrays, in the shapes of a GPT's blocks."""
    w = width
    block = [(w,), (w,), (w, 3 * w), (3 * w,), (w, w), (w,), (w,), (w,), (w, 4 * w), (4 * w,), (4 * w, w), (w,)]
    tx = optim.adamw(1e-3, weight_decay=1e-4)
    params = {f"p{n}": tnp.ones(shape, "float32") for n, shape in enumerate(block * layers)}

    def step(gradients: Any, state: Any, params: Any) -> Any:
        updates, state = tx.update(gradients, state, params)
        return optim.apply_updates(params, updates), state

    return step, (params, tx.init(params), params)


CALLS: dict[str, Callable[[], Call]] = {
    "solve_ivp RK45": partial(_ivp, "RK45", 1e-6),
    "solve_ivp DOP853": partial(_ivp, "DOP853", 1e-9),
    "solve_ivp Radau": partial(_ivp, "Radau", 1e-6, _robertson, 1e4),
    "odeint": lambda: (_odeint, (np.array([1.0, 0.0]), _TIMES)),
    "odeint gradient": lambda: (
        tracer.grad(lambda y, times: (_odeint(y, times) ** 2).sum()), (np.array([1.0, 0.0]), _TIMES)
    ),
    "minimize BFGS": partial(_minimum, "BFGS"),
    "minimize L-BFGS-B": partial(_minimum, "L-BFGS-B"),
    "root": lambda: (lambda x, a: root(lambda x: _equations(x, a), x).x, (np.array([0.5, 0.2]), np.array(1.0))),
    "least_squares": lambda: (_fit, (_SAMPLES, 3 * np.exp(-1.5 * _SAMPLES) + 0.2)),
    "AdamW of 144 arrays": _adamw,
}  # fmt: skip


def first_call(name: str) -> float:
    """Return the milliseconds of CPU of a first call in this process."""
    function, operands = CALLS[name]()
    tracer.jit(tracer.grad(lambda x: tnp.prod(x - 1))).lower(np.linspace(0.1, 1.0, 16)).compile()  # imports
    tracer.jit(lambda x: x + 1)(1.0)  # LLVM's start
    jitted = tracer.jit(function)
    start = time.process_time()
    jitted(*operands)
    return 1e3 * (time.process_time() - start)


def of_processes(name: str, rounds: int, cache_dir: str) -> float:
    """Return the least of the first calls of some processes. cache_dir: where programs are kept, if not empty."""
    environment = {**os.environ, "TRACER_CACHE_DIR": cache_dir}
    command = [sys.executable, __file__, "--child", name]
    took = [subprocess.run(command, env=environment, check=True, capture_output=True).stdout for _ in range(rounds + 1)]
    return min(map(float, took[1:]))  # the first of a machine compiles kernels, and keeps the program


def main() -> int:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"least CPU of {rounds} processes, ms\n{'':<24}{'first call':>12}{'kept code':>12}")
    for name in sys.argv[2:] or CALLS:
        with tempfile.TemporaryDirectory() as kept:
            first, again = (of_processes(name, rounds, folder) for folder in ("", kept))
        print(f"{name:<24}{first:12.0f}{again:12.0f}", flush=True)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(first_call(sys.argv[2]))
    else:
        sys.exit(main())
