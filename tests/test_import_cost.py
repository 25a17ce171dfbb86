"""`import tracer` is cheap: what it must not import is tested here, how long it takes is benchmarks/import_time.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tracer

# Each is needed by some backend or transform only, and is slow to import or optional.
HEAVY = (
    "cupy", "llvmlite", "opt_einsum", "scipy", "html.parser", "concurrent.futures", "multiprocessing", "IPython",
    "hashlib", "pathlib", "tempfile", "importlib.metadata", "importlib.resources", "bdb", "tracer.runtime.jit.lowered",
    "tracer.debug", "tracer.explorer", "tracer.markup",
)  # fmt: skip


def modules_after(statement: str) -> set[str]:
    """The names of all modules that a fresh interpreter holds after running `statement`."""
    program = f"import sys\n{statement}\nprint(*sys.modules, sep='\\n')"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(finished.stdout.splitlines())


@pytest.fixture(scope="module")
def added() -> set[str]:
    """What `import tracer` imports beyond what `import numpy` does."""
    return modules_after("import tracer") - modules_after("import numpy")


@pytest.mark.parametrize("name", HEAVY)
def test_import_tracer_leaves_heavy_modules_for_later(added: set[str], name: str) -> None:
    dragged = sorted(module for module in added if module == name or module.startswith(f"{name}."))
    assert not dragged


def test_the_version_is_that_of_the_distribution() -> None:
    """It is written in the code, since to ask for it imports the package of e-mail."""
    project = Path(__file__).parent.parent / "pyproject.toml"
    assert f'\nversion = "{tracer.__version__}"\n' in project.read_text(encoding="utf-8")


def test_import_tracer_does_not_import_the_examples(added: set[str]) -> None:
    assert not [module for module in added if module.startswith("tracer.examples")]
    assert "tracer" in added


CHAPTERS = ("fft", "linalg", "signals", "polynomials", "histograms", "quantiles", "storing", "vectorizing", "sets")


def test_import_tracer_leaves_namespaces_and_chapters_for_their_first_use(added: set[str]) -> None:
    later = [f"tracer.{name}" for name in ("lax", "nn", "optim", "random", "scipy", *(f"numpy.{c}" for c in CHAPTERS))]
    assert not added.intersection(later)
    after = modules_after("import tracer; tracer.numpy.polyval; tracer.random.key; tracer.lax.scan; tracer.numpy.fft")
    assert {"tracer.numpy.chapters.polynomials", "tracer.random", "tracer.lax", "tracer.numpy.fft"} <= after
