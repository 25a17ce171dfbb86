"""What `import tracer` leaves for the first compilation."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("name", ["tracer.codegen", "tracer.schedule", "tracer.passes", "tracer.ir.loop", "llvmlite"])
def test_the_compiler_is_imported_at_its_first_use(name: str) -> None:
    program = f"import sys, tracer; sys.exit({name!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
