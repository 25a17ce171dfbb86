"""`python -m tracer`: the demo, and the installed versions."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Sequence

from tracer.examples import digits_demo


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command named by the arguments. Returns the exit status: 2 if the device is not available."""
    options = _parser().parse_args(arguments)
    if options.device == "cuda":
        print(f"tracer demo: cannot run on CUDA\n{why_no_cuda()}", file=sys.stderr)
        return 2
    digits_demo.print_report(digits_demo.run(epochs=options.epochs, seed=options.seed))
    return 0


def why_no_cuda() -> str:
    """Return the reasons that keep the demo off a GPU, with remedies, as indented lines."""
    if importlib.util.find_spec("cupy") is None:
        return '  CuPy is not installed\n  help: pip install -e ".[cuda]" (CUDA 13), or ".[cuda12]", in the checkout'
    cupy = importlib.import_module("cupy")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"  CuPy {cupy.__version__} finds no usable CUDA driver: {error}\n  help: nvidia-smi should list a GPU"
    if count == 0:
        return "  the CUDA driver lists no GPU\n  help: see CUDA_VISIBLE_DEVICES and nvidia-smi"
    return (
        f"  {count} GPU found, but this version compiles single kernels for CUDA, not yet whole programs\n"
        "  help: --device cpu; jit(f).lower(x).cuda() shows the kernels"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tracer", description="A functional array compiler.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    demo = commands.add_parser(
        "demo",
        help="train a two-layer network on handwritten digits",
        description="Train a two-layer network on 1,437 handwritten digits and test it on 360 others.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    demo.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where to run")
    demo.add_argument("--epochs", type=_positive, default=digits_demo.EPOCHS, help="passes over the training images")
    demo.add_argument("--seed", type=int, default=0, help="of the weights and the order of the images")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


if __name__ == "__main__":
    sys.exit(main())
