"""Write docs/as_jax.md: which libraries written for JAX run on tracer, and what each lacks.

Run:  python -m tools.as_jax [--python PYTHON] [LIBRARY ...]

Installs JAX, the libraries and tracer's dependencies in a temporary environment, unless PYTHON has them. Runs each
program of this folder with JAX and with tracer in its place, and compares their numbers; then the libraries' own tests,
where a wheel has them, with tracer, and those that fail with JAX. Takes some 20 minutes, so continuous integration does
not run it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
TARGET = ROOT / "docs" / "as_jax.md"
HERE = Path(__file__).parent
JAX = "jax==0.10.2"
LIBRARIES = ("optax", "jaxopt", "jmp", "equinox", "diffrax", "blackjax")
TESTED = {"optax": ("optax", "flax", "chex", "scikit-learn")}
"""Libraries whose wheels have tests, and what these import."""
STANDING_IN = "import sys, runpy; sys.argv = sys.argv[1:]; from tracer.interop import as_jax; as_jax(); "
TOLERANCE = 1e-6
LIMIT = 900  # seconds for one program, or one file of tests

HEAD = """# Libraries written for JAX

Written by `python -m tools.as_jax`. It runs programs with JAX and with tracer in its place, and the tests that come
with a library with tracer, and those that fail with JAX; always with 64 bits.

Call `tracer.interop.as_jax()` before anything imports JAX: `import jax` of a library such as Optax then means tracer.
`as_jax` registers tracer's modules under JAX's names in this process, and raises if the real JAX is imported already.
Indices out of bounds then mean what they mean in JAX: reads take the nearest element, writes are dropped
(`config.index_errors`). Numbers have 64 bits unless a dtype says otherwise, as after
`jax.config.update("jax_enable_x64", True)`; False makes the default dtypes those of 32 bits, and narrows nothing else.

| library | programs that agree with JAX | its own tests that pass | that fail, and pass with JAX |
|---|---|---|---|
"""


def environment(folder: Path) -> Path:
    """Return the Python of a new environment with JAX, the libraries and tracer's dependencies."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    more = {name for names in TESTED.values() for name in names}
    packages = [JAX, "pytest", *sorted({*LIBRARIES, *more}), str(ROOT)]
    subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    return python


def run(python: Path, arguments: list[str], *, standing_in: bool) -> subprocess.CompletedProcess[str]:
    """Run a module or a script with JAX, or with tracer in its place."""
    settings = {**os.environ, "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    if not standing_in:
        command = [str(python), *arguments]
    elif arguments[0] == "-m":
        start = STANDING_IN + f"runpy.run_module({arguments[1]!r}, run_name='__main__', alter_sys=True)"
        command = [str(python), "-c", start, *arguments[1:]]
    else:
        start = STANDING_IN + f"runpy.run_path({arguments[0]!r}, run_name='__main__')"
        command = [str(python), "-c", start, *arguments]
    return subprocess.run(
        command, env=settings, capture_output=True, text=True, timeout=LIMIT, check=False, cwd=tempfile.gettempdir()
    )


def programs(python: Path, library: str) -> tuple[int, int, list[str]]:
    """Return how many of a library's programs agree, how many there are, and a line for each that does not."""
    results: list[dict[str, Any]] = []
    for standing_in in (False, True):
        done = run(python, [str(HERE / f"{library}_programs.py")], standing_in=standing_in)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        results.append({line["name"]: line for line in lines})
    theirs, ours = results
    wrong = []
    for name, line in theirs.items():
        mine = ours.get(name, {"error": "the program ended before it"})
        if "error" in line:
            wrong.append(f"{name}: JAX raises {line['error']}")
        elif "error" in mine:
            wrong.append(f"{name}: {mine['error']}")
        elif not close(line["value"], mine["value"]):
            wrong.append(f"{name}: other numbers")
    return len(theirs) - len(wrong), len(theirs), wrong


def close(theirs: list[float], ours: list[float]) -> bool:
    """Return whether two lists of numbers agree; NaN agrees with NaN."""
    pairs = zip(theirs, ours, strict=False)
    return len(theirs) == len(ours) and all(a == b or abs(a - b) <= TOLERANCE * (1 + abs(a)) for a, b in pairs)


def own_tests(python: Path, library: str, folder: Path) -> tuple[int, list[str]]:
    """Return how many of a library's tests pass, and the names of those that fail though they pass with JAX."""
    place = subprocess.run(
        [python, "-c", f"import importlib.util as u; print(u.find_spec({library!r}).submodule_search_locations[0])"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    passed, missing = 0, []
    for file in sorted(Path(place).rglob("*_test.py")):
        ours = tested(python, file, folder, standing_in=True)
        theirs = tested(python, file, folder, standing_in=False) if "failed" in ours.values() else {}
        passed += list(ours.values()).count("passed")
        failed = [name for name, outcome in ours.items() if outcome == "failed"]
        passes = {name for name, outcome in theirs.items() if outcome == "passed"}
        missing += [name for name in failed if name in passes or (name == file.stem and passes)]
    return passed, missing


def tested(python: Path, file: Path, folder: Path, *, standing_in: bool) -> dict[str, str]:
    """Return the outcome of each test of a file with tracer; with JAX, of tests that failed with tracer."""
    report = folder / f"{file.parent.name}-{file.stem}-{standing_in}.xml"
    cache = folder / file.parent.name / file.stem
    options = ["-q", "--import-mode=importlib", "-W", "ignore", "-o", f"cache_dir={cache}"]
    again = [] if standing_in else ["--last-failed", "--last-failed-no-failures=none"]
    run(python, ["-m", "pytest", *options, *again, f"--junitxml={report}", str(file)], standing_in=standing_in)
    return dict(outcomes(report))


def outcomes(report: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the outcome of each test of a report; of a file by its name, if its import failed."""
    for case in ET.parse(report).getroot().iter("testcase"):
        tags = {child.tag for child in case}
        outcome = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        group, name = str(case.get("classname")).rpartition(".")[2], str(case.get("name"))
        yield f"{group}.{name}" if group else name.rpartition(".")[2], outcome


def grouped(names: list[str]) -> list[str]:
    """Return a line for each test function, with the count of its cases."""
    found: dict[str, int] = {}
    for name in names:
        root = name.rstrip("0123456789")
        found[root] = found.get(root, 0) + 1
    return [f"`{name}`" + (f" ({count} cases)" if count > 1 else "") for name, count in found.items()]


def version(python: Path, library: str) -> str:
    """Return the version of an installed library."""
    start = f"from importlib.metadata import version; print(version({library!r}))"
    return subprocess.run([python, "-c", start], capture_output=True, text=True, check=True).stdout.strip()


def page(python: Path, folder: Path, libraries: list[str]) -> str:
    """Return the text of docs/as_jax.md."""
    rows, lacking = [], []
    for library in libraries:
        agree, total, wrong = programs(python, library)
        row = f"| {library} {version(python, library)} | {agree} of {total} |"
        if library in TESTED:
            passed, missing = own_tests(python, library, folder)
            row += f" {passed} | {len(missing)} |"
        else:
            missing, row = [], row + " | |"
        rows.append(row)
        if wrong or missing:
            lines = [f"- {line}" for line in [*wrong, *grouped(missing)]]
            lacking.append(f"\n## What {library} lacks\n\n" + "\n".join(lines) + "\n")
    return HEAD + "\n".join(rows) + "\n" + "".join(lacking)


def main() -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", type=Path)
    parser.add_argument("libraries", nargs="*", default=LIBRARIES)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        python = given.python or environment(Path(name) / "venv")
        text = page(python, Path(name), list(given.libraries))
    if tuple(given.libraries) == LIBRARIES:
        TARGET.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
