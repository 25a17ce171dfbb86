"""What `import tracer` adds to `import numpy`: medians over fresh interpreters, the two taken in turns.

The bar is 0.15 s, with bytecode kept, as every Python does that is not told otherwise. What must not be imported at all
is a test: tests/test_import_cost.py.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 15
BAR = 0.15  # seconds


def seconds(statement: str, bytecode: str) -> float:
    """How long a fresh interpreter takes for `statement`, without its own start; `bytecode`: where it keeps its own."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    program = f"import time; start = time.perf_counter()\n{statement}\nprint(time.perf_counter() - start)"
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    return float(finished.stdout)


def main() -> int:
    """Measure and print; returns 1 where the bar is missed."""
    start = time.perf_counter()
    alone, together = [], []
    with tempfile.TemporaryDirectory() as bytecode:
        seconds("import numpy, tracer", bytecode)  # so that neither side pays for cold files
        for _ in range(ROUNDS):
            alone.append(seconds("import numpy", bytecode))
            together.append(seconds("import numpy, tracer", bytecode))
    numpy_time, both_time = statistics.median(alone), statistics.median(together)
    added = both_time - numpy_time
    print(f"import numpy          {1e3 * numpy_time:7.1f} ms")
    print(f"import numpy, tracer  {1e3 * both_time:7.1f} ms")
    print(f"added by tracer       {1e3 * added:7.1f} ms, at most {1e3 * BAR:.0f} ms allowed")
    print(f"medians of {ROUNDS} rounds, {time.perf_counter() - start:.0f} s")
    return int(added > BAR)


if __name__ == "__main__":
    sys.exit(main())
