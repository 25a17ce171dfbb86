"""What `import tracer` leaves for the first compilation."""

from __future__ import annotations

import subprocess
import sys

COMPILER = ("tracer.codegen", "tracer.schedule", "tracer.passes", "tracer.ir.loop", "llvmlite")


def test_the_compiler_is_imported_at_its_first_use() -> None:
    program = f"import sys, tracer; print([name for name in {COMPILER} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
