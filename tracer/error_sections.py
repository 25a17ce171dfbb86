"""Sections of docs/errors.md, the documentation on errors, which installed packages carry beside this file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_PAGES: Final = (Path(__file__).parents[1] / "docs" / "errors.md", Path(__file__).with_name("errors.md"))


def section(name: str) -> str:
    """Return the section on an error, without its heading; "" if there is none.

    >>> print(section("AxisError").partition(".")[0])
    An axis out of range, or given twice
    """
    page = next((page for page in _PAGES if page.exists()), None)
    text = page.read_text(encoding="utf-8") if page else ""
    found = re.search(rf"^## {re.escape(name)}\n+(.*?)\s*(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return re.sub(r"  # doctest: .*", "", found[1]) if found else ""
