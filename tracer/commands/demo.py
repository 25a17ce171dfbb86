"""`python -m tracer demo`: a network that learns handwritten digits."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tracer.commands.gpu import why_no_cuda
from tracer.examples import digits_demo


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="train a two-layer network on handwritten digits",
        description="Train a two-layer network on 1,437 handwritten digits and test it on 360 others.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where to run")
    parser.add_argument("--epochs", type=_positive, default=digits_demo.EPOCHS, help="passes over the training images")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the order of the images")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Train and test. Returns the exit status: 2 if the device is not available."""
    if options.device == "cuda":
        print(f"tracer demo: cannot run on CUDA\n{why_no_cuda()}", file=sys.stderr)
        return 2
    digits_demo.print_report(digits_demo.run(epochs=options.epochs, seed=options.seed))
    return 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number
