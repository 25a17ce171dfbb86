"""`python -m tracer`: the demo, a report on the installation, folders of compiled code, explorer, documentation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tracer.commands import cache, demo, docs, doctor, explore


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command named by the arguments. Returns its exit status."""
    options = _parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tracer", description="A functional array compiler.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for command in (demo, doctor, cache, explore, docs):
        command.add_to(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
