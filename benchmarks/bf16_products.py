"""Products of bf16 matrices on this machine: in AMX's tiles, by pairs in registers, and PyTorch's, which are oneDNN's.

First what the products are checked by: how far they lie from float64, relative to the sum of the products' magnitudes,
over shapes with edges, and whether one and two threads give the same bits. Then GF/s, medians of alternating rounds of
programs `a @ b` on one thread and on two, each in a process of its own, and the time of PyTorch's in ours. TORCH_PYTHON
names the interpreter that has PyTorch, if there is one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from typing import Any

from tracer.codegen.llvm.kernels.gemm.amx import in_use
from tracer.codegen.llvm.kernels.gemm.bf16_dot import has_dots

SIZES = (64, 256, 512, 1024, 2048)
THREADS = (1, 2)
ROUNDS = 7
BOUND = 8 * 2.0**-23  # of tests/laws/tolerances.py
SHAPES = ((1, 1, 32), (5, 64, 1000), (31, 33, 65), (100, 257, 513), (520, 300, 1100), (1000, 1000, 1000))

WORKER = """
import json, sys, time
import numpy as np
way = sys.argv[1]
if way == "torch":
    import torch
else:
    import ml_dtypes, tracer
    from tracer.codegen.llvm import tiles
    if way == "pairs":
        tiles._WRONG.append("left out here")
    product = tracer.jit(lambda a, b: a @ b)
    summed = tracer.jit(lambda a, b: tracer.lax.dot_general(a, b, (((1,), (0,)), ((), ())), None, np.float32))

def operands(m, n, k):
    rng = np.random.default_rng(m + n + k)
    return rng.standard_normal((m, k), "f4"), rng.standard_normal((k, n), "f4")

def run(n, threads):
    a, b = operands(n, n, n)
    if way == "torch":
        torch.set_num_threads(threads)
        a, b = (torch.from_numpy(x).to(torch.bfloat16) for x in (a, b))
        call = lambda: a @ b
    else:
        tracer.config.update("threads", threads)
        a, b = (tracer.numpy.asarray(x.astype(ml_dtypes.bfloat16)) for x in (a, b))
        call = lambda: product(a, b)
    call()
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < 0.03 or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]

def check(m, n, k):
    a, b = (x.astype(ml_dtypes.bfloat16) for x in operands(m, n, k))
    exact, scale = a.astype("f8") @ b.astype("f8"), np.abs(a).astype("f8") @ np.abs(b).astype("f8")
    found = []
    for threads in (1, 2):
        tracer.config.update("threads", threads)
        found.append(np.asarray(summed(a, b)))
    return float(np.max(np.abs(found[0] - exact) / scale)), found[0].tobytes() == found[1].tobytes()

for line in sys.stdin:
    name, *given = json.loads(line)
    print(json.dumps(run(*given) if name == "run" else check(*given)), flush=True)
"""


class Worker:
    """A process that multiplies in one way."""

    def __init__(self, way: str) -> None:
        python = os.environ.get("TORCH_PYTHON", sys.executable) if way == "torch" else sys.executable
        self.process = subprocess.Popen(
            [python, "-c", WORKER, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *request: Any) -> Any:
        """One request and its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def checked(way: str, worker: Worker) -> bool:
    """Print what a way's products are; whether they are right."""
    right = True
    print(f"{way}: m, n, k; error relative to the magnitudes, of {BOUND:.1e}; the same bits on one and two threads")
    for sizes in SHAPES:
        error, equal = worker.ask("check", *sizes)
        print(f"    {sizes!s:<20}{error:>10.1e}   {equal}")
        right &= error <= BOUND and equal
    return right


def main() -> int:
    """Check, measure and print; returns 1 where a product is wrong."""
    if not has_dots():
        print("the processor multiplies no bf16")
        return 0
    ways = ["tiles", "pairs"] if in_use() else ["pairs"]
    workers = {way: Worker(way) for way in ways}
    print("tiles are in use" if in_use() else "there are no tiles, or the system gives none")
    found = [checked(way, worker) for way, worker in workers.items()]
    if "TORCH_PYTHON" in os.environ:
        workers["torch"] = Worker("torch")
    print(f"\nGF/s, medians of {ROUNDS} alternating rounds, and times as long as by the first way")
    for threads in THREADS:
        for n in SIZES:
            seconds: dict[str, list[float]] = {way: [] for way in workers}
            for _ in range(ROUNDS):
                for way, worker in workers.items():
                    seconds[way].append(worker.ask("run", n, threads))
            speeds = {way: 2 * n**3 / statistics.median(taken) / 1e9 for way, taken in seconds.items()}
            first = seconds[next(iter(seconds))]
            ratios = {w: statistics.median(x / y for x, y in zip(t, first, strict=True)) for w, t in seconds.items()}
            shown = "   ".join(f"{way} {speeds[way]:>6.0f} ({ratios[way]:.2f})" for way in workers)
            print(f"{threads} threads{n:>6}   {shown}", flush=True)
    return int(not all(found))


if __name__ == "__main__":
    sys.exit(main())
