"""`python -m tracer docs`: the built documentation in the browser, at a page or at the section on an error.

Where it is not built, as beside an installed package, pages and sections are shown as text.
"""

from __future__ import annotations

import argparse
import pydoc
import re
import sys
import webbrowser
from pathlib import Path
from typing import Any, Final

from tracer import errors
from tracer.error_sections import folder, section

BUILT: Final = Path(__file__).parents[2] / "build" / "docs"  # where scripts/docs writes, in a checkout
_OF_SPHINX: Final = re.compile(
    r"\A---\n.*?\n---\n+|^```\{(?:toctree|glue)\}.*?^```\n+|^:tags: .*\n+|  # doctest: .*?$", re.DOTALL | re.MULTILINE
)


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "docs",
        help="open the documentation, or its section on an error",
        description="Open the documentation that scripts/docs built, or its section on an error. "
        "Where nothing is built, pages and sections are shown as text.",
    )
    parser.add_argument("name", nargs="?", help="an error, as CarryTypeError, or a page, as guide/jit")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open the page in a browser and print its address, or show its text. Returns 1 where it is not there."""
    page, anchor = _place(options.name or "index")
    if page is None:
        help = "name an error, as CarryTypeError, or a page, as guide/jit"
        print(f"python -m tracer docs: no error and no page {options.name!r}\n  help: {help}", file=sys.stderr)
        return 1
    if (BUILT / f"{page}.html").exists():
        address = (BUILT / f"{page}.html").resolve().as_uri() + (f"#{anchor.lower()}" if anchor else "")
        print(address)
        webbrowser.open(address)
    elif anchor:
        pydoc.pager(f"{anchor}\n\n{section(anchor)}\n")
    else:
        pydoc.pager(_contents() if page == "index" else _text(folder() / f"{page}.md"))
    return 0


def _place(name: str) -> tuple[str | None, str]:
    """Return the page of a name, None where there is none, and the section within it."""
    last = name.rpartition(".")[2]  # tracebacks print tracer.errors.ShapeError
    found = vars(errors).get(last)
    if isinstance(found, type) and issubclass(found, errors.TracerError):
        return "errors", last
    name = name.removesuffix(".html").removesuffix(".md")
    for page in (name, *(f"{part}/{name}" for part in ("guide", "gallery", "api", "notebooks"))):
        if page == "index" or (BUILT / f"{page}.html").exists() or (folder() / f"{page}.md").exists():
            return page, ""
    return None, ""


def _contents() -> str:
    """Return the list of pages, with the name of each before its title."""
    order = ("guide", folder().name, "gallery", "design")
    pages = sorted(folder().rglob("*.md"), key=lambda page: (order.index(page.parent.name), page))
    lines = ["Pages of the documentation. python -m tracer docs NAME shows one.", ""]
    for page in pages:
        title = re.search(r"^# (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        lines.append(f"  {page.relative_to(folder()).with_suffix('')!s:<24} {title[1] if title else ''}")
    lines += ["", 'In a checkout, pip install -e ".[docs]" && scripts/docs builds them for the browser.', ""]
    return "\n".join(lines)


def _text(page: Path) -> str:
    """Return a page's Markdown without Sphinx's directives."""
    return _OF_SPHINX.sub("", page.read_text(encoding="utf-8")).replace("```{code-cell}", "```python")
