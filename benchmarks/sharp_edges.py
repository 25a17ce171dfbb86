"""Programs that once were slow beside JAX and Numba, in two minutes: sweeps, windows, short loops, trees of classes.

python benchmarks/sharp_edges.py [arguments of compare.py]     scripts/bench --keep sharp_edges

Behind them, times of ours alone: of a donated copy, with no other array for its result, and of the first gradient of a
process, outside `jit`, with kernels in files.
"""

from __future__ import annotations

import sys

import compare
import first_call
import numpy as np
from peers.worker import seconds_a_call

import tracer
import tracer.numpy as tnp

ROWS = (
    "a @ x, a.T @ y", "sweeps by columns", "solves by one matrix", "floyd-warshall", "sparse rows by windows",
    "edit distance", "newton, one call", "scatter add", "call with a tree", "registered classes",
)  # fmt: skip


def donation() -> str:
    """Return the times of a copy of 1e6 numbers, and of the copy and a call that takes it, donated or not."""
    x = np.ones(10**6)
    programs = {
        "alone": lambda v: v,
        "donated to x + 1": tracer.jit(lambda v: v + 1, donate_argnums=0),
        "given to x + 1": tracer.jit(lambda v: v + 1),
    }
    times = [f"{name} {1e3 * seconds_a_call(lambda f=f: f(tnp.asarray(x, copy=True)), 1.0):.2f} ms"
             for name, f in programs.items()]  # fmt: skip
    return f"asarray(x, copy=True) f8 1e6: {', '.join(times)}"


def main() -> int:
    """Print the rows, then our own times."""
    sys.argv[1:] = ["--peers", "jax", "numba", "--rounds", "7", "--rows", *ROWS, *sys.argv[1:]]
    status = compare.main()
    print(donation())
    first = first_call.of_a_process("gradient(x)", "tnp.asarray(np.linspace(0.1, 1.0, 8))", kernels=True)
    print(f"the first gradient of a process, outside jit: {first:.0f} ms")
    return status


if __name__ == "__main__":
    sys.exit(main())
