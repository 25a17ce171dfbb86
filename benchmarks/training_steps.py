"""Training steps beside PyTorch's and JAX's with Optax, and what else training asks of the library.

    JAX_PYTHON=... python benchmarks/training_steps.py [--rows ROW ...] [--peers PEER ...] [--rounds N]

Steps: models of the examples and AdamW alone, on one thread, CPU time, the least of alternating rounds. PyTorch runs as
its user writes it, with fused updates ("fused"), grouped ones ("foreach"), and with the model or update compiled
("compile", where a C++ compiler is there). JAX needs `JAX_PYTHON`, a Python with JAX and Optax. A bar is 1.05.

Then three ratios within the library: calls of a module by calls of a dict of its 150 arrays (the bar is 1.5), a loop of
steps by an epoch as one scan, and a loop that loads while it trains by the longer of both (1.1).

The scan cannot take half of the loop, which was the aim while a call took 30 µs. Measured are 50 µs a step in the loop,
33 in the scan: a call and its trees take 13, NumPy's gathers of the batch 4. The five matrix products alone take 25.

Loading overlaps with steps on one thread. With two, steps and loader have work for more than two cores: 1.16 on idle
ones, as they take in two processes. On busy cores this row shows the machine: 1.6 there, 1.07 by real-time priority.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import machine

SECONDS, ROUNDS = 0.3, 5
STEPS = ("MLP 64-128-10", "CNN on 8x8 digits", "LSTM 256", "GPT 4x128", "AdamW, 144 arrays", "AdamW, one array")
PEERS = ("tracer", "torch", "torch fused", "torch foreach", "torch compile", "jax")
_THREADS = ("TRACER_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def _serve(peer: str) -> None:
    """Measure one round of the row that each line names, and answer with its CPU seconds a step."""
    if peer == "jax" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # it takes as many threads as there are cores
    make = import_module(f"steps.in_{peer.split()[0]}").step
    made: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        row = line.strip()
        if row not in made:
            made.clear()
            made[row] = make(row, peer)
            for _ in range(3):
                made[row]()
        begun, count = time.process_time(), 0
        while (spent := time.process_time() - begun) < SECONDS or count < 3:
            made[row]()
            count += 1
        print(json.dumps(spent / count), flush=True)


def _start(peer: str) -> subprocess.Popen[str]:
    python = os.environ["JAX_PYTHON"] if peer == "jax" else sys.executable
    environment = {**os.environ, **dict.fromkeys(_THREADS, "1")}
    if peer == "jax":
        environment.pop("PYTHONPATH", None)
    command = [python, __file__, "--serve", peer]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _available(peers: list[str]) -> list[str]:
    missing = {
        "jax": "JAX_PYTHON" not in os.environ,
        "torch compile": not any(map(shutil.which, ("g++", "clang++", "c++"))),
    }
    for peer in peers:
        if missing.get(peer):
            print(f"{peer} is left out")
    return [peer for peer in peers if not missing.get(peer)]


def _ask(worker: subprocess.Popen[str], row: str) -> float | None:
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(f"{row}\n")
        worker.stdin.flush()
    except BrokenPipeError:
        return None
    line = worker.stdout.readline()
    return json.loads(line) if line else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="*", default=[""], help="beginnings of names")
    parser.add_argument("--peers", nargs="*", default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        _serve(given.serve)
        return
    print(machine.head())
    peers = _available(given.peers)
    print(f"\n{'ms of CPU a step':<20} " + " ".join(f"{peer:>14}" for peer in peers) + "   ours / best other")
    wanted = tuple(given.rows)
    workers = {peer: _start(peer) for peer in peers}
    for row in (row for row in STEPS if row.startswith(wanted)):
        times: dict[str, list[float]] = {peer: [] for peer in peers}
        for _ in range(given.rounds):
            for peer in peers:
                found = _ask(workers[peer], row)
                if found is not None:
                    times[peer].append(1e3 * found)
        best = {peer: min(found) for peer, found in times.items() if found}
        others = [value for peer, value in best.items() if peer != "tracer"]
        ratio = f"{best['tracer'] / min(others):>8.2f}" if others and "tracer" in best else ""
        shown = " ".join(f"{best[peer]:>14.3f}" if peer in best else f"{'-':>14}" for peer in peers)
        print(f"{row:<20} {shown} {ratio}", flush=True)
    for worker in workers.values():
        worker.communicate()
    print()
    ratios = import_module("steps.in_tracer").RATIOS
    for row in (row for row in ratios if row.startswith(wanted)):
        above, below = ratios[row]()
        print(f"{row:<30} {1e3 * above:>9.3f} ms / {1e3 * below:>9.3f} ms = {above / below:.2f}", flush=True)


if __name__ == "__main__":
    main()
