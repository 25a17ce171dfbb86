"""Bandwidth of programs on a device, beside a copy in the same run: ten programs on four sizes.

    python benchmarks/gpu_bandwidth.py cuda

Bytes are those of arguments and results. On the simulated device, small sizes run once, and times say nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer import jit, nn

PROGRAMS: Final[dict[str, Callable[..., Any]]] = {
    "copy by a kernel": lambda x: x + 0.0,
    "2 x + 1": lambda x: 2.0 * x + 1.0,
    "gelu": nn.gelu,
    "sum": tnp.sum,
    "sum of rows": lambda x: tnp.sum(x, 1),
    "sum of columns": lambda x: tnp.sum(x, 0),
    "softmax": lambda x: nn.softmax(x, axis=1),
    "layernorm": lambda x: (x - tnp.mean(x, 1, keepdims=True)) / (tnp.std(x, 1, keepdims=True) + 1e-5),
    "argmax of rows": lambda x: tnp.argmax(x, 1),
    "transpose": lambda x: x.T + 0.0,
}
ROW: Final = 1024
MEGABYTES: Final = (8, 64, 256, 1024)


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """Return the mean of calls that are started one after the other, the least of three rounds."""
    tracer.block_until_ready(call())
    rounds = []
    for _ in range(3 if repeats > 1 else 1):
        start = time.perf_counter()
        results = [call() for _ in range(repeats)]
        tracer.block_until_ready(results)
        rounds.append((time.perf_counter() - start) / repeats)
    return min(rounds)


def copy_bandwidth(device: str) -> float:
    """Return the bytes a second that a card's own copy reads and writes."""
    cupy: Any = __import__("cupy")
    a = cupy.ones(1 << 28, "float32")
    b = cupy.empty_like(a)

    def copy() -> None:
        b[...] = a

    copy()
    cupy.cuda.runtime.deviceSynchronize()
    start = time.perf_counter()
    for _ in range(10):
        copy()
    cupy.cuda.runtime.deviceSynchronize()
    return 20 * a.nbytes / (time.perf_counter() - start)


def main(device: str) -> None:
    simulated = device == "cuda-sim"
    roof = 0.0 if simulated else copy_bandwidth(device)
    print("simulated: times say nothing" if simulated else f"a copy moves {roof / 1e9:,.0f} GB/s")
    print(f"{'program':<20}{'size':>10}{'time':>12}{'GB/s':>10}{'of a copy':>12}")
    for size in (0.02,) if simulated else MEGABYTES:
        rows = max(int(size * 1e6) // (4 * ROW), 1)
        x = tracer.device_put(np.random.default_rng(0).random((rows, ROW), np.float32), device)
        for name, function in PROGRAMS.items():
            compiled = jit(function)
            moved = x.nbytes + compiled(x).nbytes
            took = seconds(lambda compiled=compiled, x=x: compiled(x), 1 if simulated else 20)
            share = f"{moved / took / roof:>11.0%}" if roof else f"{'':>11}"
            print(f"{name:<20}{size:>7} MB{took * 1e6:>9,.0f} µs{moved / took / 1e9:>10,.0f} {share}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cuda")
