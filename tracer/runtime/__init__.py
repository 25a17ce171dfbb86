"""The jit decorator, devices, executables and dispatch."""

import time
from typing import Final

IMPORTED: Final = time.time_ns()
"""Time of import: files that changed later are not the files that this process runs."""
