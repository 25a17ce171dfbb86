"""Pages of the documentation as text, which installed packages carry beside this file, and sections on errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_FOLDERS: Final = (Path(__file__).with_name("docs"), Path(__file__).parents[1] / "docs")  # installed, in a checkout


def folder() -> Path:
    """Return the folder of the pages, which may be missing in a copy of the package alone."""
    return next((folder for folder in _FOLDERS if (folder / "errors.md").exists()), _FOLDERS[0])


def section(name: str) -> str:
    """Return the section on an error, without its heading; "" if there is none.

    >>> print(section("AxisError").partition(".")[0])
    An axis out of range, or given twice
    """
    page = folder() / "errors.md"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    found = re.search(rf"^## {re.escape(name)}\n+(.*?)\s*(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return re.sub(r"  # doctest: .*", "", found[1]) if found else ""
