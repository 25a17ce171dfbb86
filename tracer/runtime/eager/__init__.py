"""Execution of operations outside `jit`, one at a time."""

import time
from typing import Final

IMPORTED: Final = time.time_ns()
"""Time of import: files that changed later are not the files that this process runs."""
