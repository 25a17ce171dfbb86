"""Training steps of the examples beside PyTorch's: same model, same batches, weights copied by name.

    python benchmarks/training_beside_torch.py [NAME ...]     # all files of benchmarks/beside_torch by default

For each example: the largest difference of the losses over 20 steps, the CPU time of a step of both on one thread, and
the lines of code of both. Every example runs in a process of its own; rounds of both libraries alternate.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import machine

STEPS, ROUNDS, SECONDS = 20, 7, 0.5  # compared steps; timed rounds, and how long one of them lasts
FOLDER = Path(__file__).parent / "beside_torch"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "pair"))


def seconds(step: Callable[..., float], batches: list[Any]) -> float:
    """The CPU time of a step, over a round of steps."""
    begun = time.process_time()
    for count, batch in enumerate(cycle(batches), 1):
        step(*batch)
        if (spent := time.process_time() - begun) > SECONDS and count >= 3:
            return spent / count
    raise ValueError("an example needs batches")


def measure(label: str, make: Callable[[], Any]) -> dict[str, Any]:
    """One row, measured in this process."""
    pairs, pair = import_module("beside_torch.pair"), make()
    both = pair.ours, pair.theirs
    if pair.batches is None:
        batches, steps = [()], STEPS
        losses = [[value.item() for value in run()] for run in both]
    else:
        batches, steps = list(islice(cycle(pair.batches), STEPS)), 1
        losses = [[step(*batch) for batch in batches] for step in both]
    rounds = [[seconds(step, batches) / steps for step in both] for _ in range(ROUNDS)]
    return {
        "label": label,
        "difference": max(abs(a - b) for a, b in zip(*losses, strict=True)),
        "first": losses[0][0],
        "last": losses[0][-1],
        "ms": [1e3 * min(times) for times in zip(*rounds, strict=True)],
        "ratio": statistics.median(ours / theirs for ours, theirs in rounds),
        "lines": [pairs.code_lines(objects) for objects in pair.lines],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        import_module("torch").set_num_threads(1)
        for label, make in import_module(f"beside_torch.{arguments.one}").PAIRS.items():
            print(json.dumps(measure(label, make)), flush=True)
        return
    print(machine.head())
    print(f"{'':<9} torch {machine.version_of('torch')}; one thread, CPU time; least of {ROUNDS} rounds\n")
    print(
        f"{'example':<28} {'loss, 20 steps':>18} {'difference':>11} {'ms tracer':>10} {'torch':>8}  ratio  {'lines':>7}"
    )
    threads = dict.fromkeys(("TRACER_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    for name in arguments.names or NAMES:
        command = [sys.executable, __file__, "--one", name]
        done = subprocess.run(command, env={**os.environ, **threads}, stdout=subprocess.PIPE, text=True, check=True)
        for row in map(json.loads, done.stdout.splitlines()):
            ours, theirs = row["ms"]
            print(
                f"{row['label']:<28} {row['first']:>8.4f} → {row['last']:>7.4f} {row['difference']:>11.1e} "
                f"{ours:>10.3f} {theirs:>8.3f} {row['ratio']:>6.2f}  {row['lines'][0]:>3} {row['lines'][1]:>3}",
                flush=True,
            )


if __name__ == "__main__":
    main()
