"""Library routines: SciPy's modules are loaded alone, and are the ones that SciPy has."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys
from tracer.primitives.linalg.lapack_calls import capsule_address
before = {name: capsule_address(f"scipy.linalg.cython_{name}", routine) for name, routine in ROUTINES}
assert "scipy.linalg" not in sys.modules
import scipy.linalg.cython_blas
import scipy.linalg.cython_lapack
assert before == {name: capsule_address(f"scipy.linalg.cython_{name}", routine) for name, routine in ROUTINES}
assert scipy.linalg.cython_blas.__spec__.name == "scipy.linalg.cython_blas"
print(*scipy.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 8.0]))
""".replace("ROUTINES", '(("blas", "dtrsm"), ("lapack", "dpotrf"))')


def test_routines_are_found_without_their_package_which_may_be_imported_later() -> None:
    run = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    assert run.stdout.split() == ["1.0", "2.0"], run.stderr
