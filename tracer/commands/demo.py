"""`python -m tracer demo`: a network that learns handwritten digits."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tracer.commands.gpu import why_no_cuda
from tracer.errors import DeviceError
from tracer.examples import digits_demo
from tracer.runtime.system.devices import default_device


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="train a two-layer network on handwritten digits",
        description="Train a two-layer network on 1,437 handwritten digits and test it on 360 others.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--device", choices=("cpu", "cuda", "cuda-sim"), default="cpu", help="where to run")
    parser.add_argument("--epochs", type=_positive, default=digits_demo.EPOCHS, help="passes over the training images")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the order of the images")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train and test, or take some steps on the simulated device.

    Returns the exit status: 2 if the device is not available, or lacks an operation.
    """
    if options.device == "cuda-sim":
        return _simulate(options.seed)
    try:
        with default_device(options.device):
            digits_demo.print_report(digits_demo.run(epochs=options.epochs, seed=options.seed))
    except DeviceError as error:
        why = why_no_cuda() or f"  {error}"
        print(f"tracer demo: cannot run on CUDA\n{why}", file=sys.stderr)
        return 2
    return 0


def _simulate(seed: int) -> int:
    print("cuda-sim: the CPU plays a GPU. It runs the CUDA source of each kernel, thread by thread, and checks every")
    print("access. Matrix products are NumPy's. It is slow, and says nothing of speed.")
    pairs = zip(*[digits_demo.few_steps(device, seed=seed) for device in ("cuda-sim", "cpu")], strict=True)
    for step, (there, here) in enumerate(pairs, 1):
        print(f"step {step}   loss {there:.6f}   on the CPU {here:.6f}")
    return 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number
