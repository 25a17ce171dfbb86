"""`python -m tracer docs`: the built documentation in the browser, at a page or at the section on an error.

Where it is not built, sections on errors are printed.
"""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path
from typing import Any, Final

from tracer import errors
from tracer.error_sections import section

BUILT: Final = Path(__file__).parents[2] / "build" / "docs"  # where scripts/docs writes, in a checkout


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "docs",
        help="open the documentation, or its section on an error",
        description="Open the documentation that scripts/docs built, or its section on an error. "
        "Where nothing is built, the section is printed.",
    )
    parser.add_argument("name", nargs="?", help="an error, as CarryTypeError, or a page, as guide/jit")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the page in a browser and print its address. Returns 1, with the reason, where it is not there."""
    page, anchor = _place(options.name or "index")
    if not (BUILT / "index.html").exists():
        if anchor:
            print(f"{anchor}\n\n{section(anchor)}")
            return 0
        has_source = (BUILT.parents[1] / "docs").exists()
        problem = (
            f"the documentation is not built in {BUILT}" if has_source else "installed packages carry no documentation"
        )
        return _fail(problem, f'{"" if has_source else "in a checkout: "}pip install -e ".[docs]" && scripts/docs')
    if not (BUILT / f"{page}.html").exists():
        return _fail(
            f"no error and no page {options.name!r}", "name an error, as CarryTypeError, or a page, as guide/jit"
        )
    address = (BUILT / f"{page}.html").resolve().as_uri() + (f"#{anchor.lower()}" if anchor else "")
    print(address)
    webbrowser.open(address)
    return 0


def _place(name: str) -> tuple[str, str]:
    """Return the page of a name and the section within it."""
    last = name.rpartition(".")[2]  # tracebacks print tracer.errors.ShapeError
    found = vars(errors).get(last)
    if isinstance(found, type) and issubclass(found, errors.TracerError):
        return "errors", last
    return name.removesuffix(".html").removesuffix(".md"), ""


def _fail(problem: str, remedy: str) -> int:
    print(f"python -m tracer docs: {problem}\n  help: {remedy}", file=sys.stderr)
    return 1
