"""Notebooks of the examples: the pages of the gallery, each with the program that it is about.

    python tools/gallery_notebooks.py            # write notebooks/examples
    python tools/gallery_notebooks.py --check    # fail where one lacks or differs

A page runs in seconds, with fewer steps than its program takes by itself. So does its notebook, which has no stored
outputs: the documentation shows those of the pages.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ROOT / "docs" / "gallery"
PROGRAMS: Final = ROOT / "tracer" / "examples"
NOTEBOOKS: Final = ROOT / "notebooks" / "examples"
_FRONT: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_CELL: Final = re.compile(
    r"^```\{code-cell\}[^\n]*\n(?:---\n.*?\n---\n|(?::[^\n]*\n)*)(.*?)^```$", re.DOTALL | re.MULTILINE
)
_METADATA: Final[dict[str, Any]] = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
    "mystnb": {"execution_mode": "off"},  # the documentation runs the page
    "orphan": True,  # and has it in its contents
}


def notebook(name: str) -> str:
    """Return the text of an example's notebook: the cells of its page, and the source of its program."""
    page = _FRONT.sub("", (PAGES / f"{name}.md").read_text(encoding="utf-8"))
    cells: list[tuple[str, str]] = []
    for number, part in enumerate(_CELL.split(page)):
        if text := part.strip():
            cells.append(("code" if number % 2 else "markdown", text))
    program = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8").strip()
    cells.append(("markdown", f"## The program\n\n`tracer/examples/{name}.py`:\n\n```python\n{program}\n```"))
    written = [_cell(f"{name}-{number}", *cell) for number, cell in enumerate(cells)]
    found = {"cells": written, "metadata": _METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _cell(identity: str, kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": identity, "metadata": {}, "source": text.splitlines(keepends=True)}
    return {**cell, "execution_count": None, "outputs": []} if kind == "code" else cell


def names() -> list[str]:
    """Return the examples that have a page."""
    return sorted(path.stem for path in PAGES.glob("*.md") if (PROGRAMS / path.name).with_suffix(".py").exists())


def main() -> int:
    """Write the notebooks, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    NOTEBOOKS.mkdir(parents=True, exist_ok=True)
    wrong = []
    for name in names():
        path, text = NOTEBOOKS / f"{name}.ipynb", notebook(name)
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            wrong.append(name)
    wrong += sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb") if path.stem not in names())
    if wrong:
        print(f"run python tools/gallery_notebooks.py: {', '.join(wrong)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
