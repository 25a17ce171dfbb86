"""Names of notebook cells: `In[7]`, as IPython's own tracebacks say, for the files that it invents for them."""

from __future__ import annotations

import sys


def cell_name(file: str) -> str | None:
    """Return the name of the cell that IPython compiled under a file's name; None for any other file."""
    running = getattr(sys.modules.get("IPython"), "get_ipython", None)  # absent while IPython is being imported
    shell = None if running is None else running()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = None if named is None else named(file)
    return found[1] if found else None
