"""Times of first calls: of jitted functions after warm-up, and of the first call of a process, eager ones included.

Each jitted function is compiled once in this process; no program is kept in files. Bar: 30 ms. The very first call of a
process also imports the compiler, and loads the kernels that programs share, which the first program of a machine
compiles: the median of several processes, with the kernels in files and without. The bars of eager first calls, with
kernels in files: 30 ms for an operation, 100 ms for the gradient of sum(sin(x)**2). What a call imports counts, `import
tracer` does not: see `import_time.py`. Functions with kernels of ours, such as sin, miss their bar: to load object code
they import `llvmlite.binding`, which takes 34 to 42 ms by itself on the machine of 2026-11-28.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, lax

BAR = 30.0  # milliseconds
EAGER = {
    "x + x": 30.0, "tnp.sin(x)": 30.0, "tnp.sum(x)": 30.0, "x[2]": 30.0, "x.reshape(2, 4)": 30.0, "x @ x": 30.0,
    "gradient(x)": 100.0,
}  # fmt: skip
X = np.linspace(0.1, 1.0, 16)


def functions() -> dict[str, Callable[[Any], Any]]:
    """Tiny functions of sixteen numbers, by name."""
    return {
        "2 x + 1": lambda x: 2 * x + 1,
        "sum of squares": lambda x: tnp.sum(x * x),
        "its gradient": grad(lambda x: tnp.sum(x * x)),
        "tanh": tnp.tanh,
        "gradient of tanh": grad(lambda x: tnp.sum(tnp.tanh(x))),
        "softmax": lambda x: tnp.exp(x - tnp.max(x)) / tnp.sum(tnp.exp(x - tnp.max(x))),
        "sort": tnp.sort,
        "cond": lambda x: lax.cond(tnp.sum(x) > 1, lambda v: v, lambda v: -v, x),
        "while_loop": lambda x: lax.while_loop(lambda v: tnp.sum(v) < 100, lambda v: 2 * v, x),
        "scan": lambda x: lax.scan(lambda c, v: (c + v, c * v), 0.0, x),
    }


_PROCESS = """
import time
import numpy as np
import tracer
import tracer.numpy as tnp
gradient = tracer.grad(lambda v: tnp.sum(tnp.sin(v) ** 2))
x = {array}
start = time.perf_counter()
{call}
print(1e3 * (time.perf_counter() - start))
"""


def of_a_process(call: str, array: str, kernels: bool, rounds: int = 9) -> float:
    """Return the milliseconds of a first call in a fresh process. Bytecode is kept, and with `kernels` their code."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    text = _PROCESS.format(call=call, array=array)
    with tempfile.TemporaryDirectory() as bytecode:
        kept |= {"PYTHONPYCACHEPREFIX": bytecode, "TRACER_CACHE_DIR": ""}
        kept["TRACER_KERNEL_DIR"] = os.path.join(bytecode, "kernels") if kernels else ""
        times = [
            float(subprocess.run([sys.executable, "-c", text], env=kept, check=True, capture_output=True).stdout)
            for _ in range(rounds + 1)
        ]
    return statistics.median(times[1:])


def main() -> int:
    """Measure and print; returns 1 where the bar is missed."""
    compiled = "tracer.jit(lambda v: 2 * v + 1)(x)", "np.ones(16)"
    print(f"{'the first of a process':<24}{of_a_process(*compiled, kernels=True):8.1f} ms")
    print(f"{'and of a machine':<24}{of_a_process(*compiled, kernels=False):8.1f} ms")
    missed = 0
    for call, bar in EAGER.items():
        took = of_a_process(call, "tnp.asarray(np.linspace(0.1, 1.0, 8))", kernels=True)
        missed += took > bar
        print(f"{'eager ' + call:<24}{took:8.1f} ms   bar {bar:.0f}{'  MISSED' * (took > bar)}")
    tracer.config.cache_dir = None
    jit(grad(lambda x: tnp.prod(x - 1)))(X)  # imports, and the code that all programs share
    for name, function in functions().items():
        jitted = jit(function)
        start = time.perf_counter()
        jitted(X)
        took = 1e3 * (time.perf_counter() - start)
        missed += took > BAR
        print(f"{name:<24}{took:8.1f} ms{'  MISSED' if took > BAR else ''}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
