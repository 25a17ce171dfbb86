"""Full runs of the examples that train, each over three seeds, with the figure that each reports.

    python benchmarks/training_examples.py NAME ... [--model NAME] [--seeds 3] [--steps N]

An example's `main(steps=..., seed=...)` prints what it reaches; its defaults are the full run.
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module

import machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--model", help="of the examples that have several")
    arguments = parser.parse_args()
    print(machine.head())
    given = {name: value for name in ("model", "steps") if (value := getattr(arguments, name)) is not None}
    for name in arguments.names:
        for seed in range(arguments.seeds):
            print(f"\n{name}, seed {seed}", flush=True)
            begun, used = time.perf_counter(), time.process_time()
            import_module(f"tracer.examples.{name}").main(**given, seed=seed)
            print(f"{time.perf_counter() - begun:.1f} s, {time.process_time() - used:.1f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
