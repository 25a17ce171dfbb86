"""Run the public suite of the array API standard on tracer.numpy, eagerly, and on array_api_strict; log what comes out.

    python tools/array_api_suite.py PATH [ROUNDS]      PATH: a checkout of data-apis/array-api-tests, submodules too

Every test of the suite runs, with ten examples each, none skipped by us. The suite draws at random, so it runs for some
rounds, and a test that failed in one of them counts as failed. Writes tests/numpy/results/DATE-array-api-suite.txt,
and exits with 1 where a test outside the extensions fails here that array_api_strict passes.

Needs, beside what the tests need: pytest-json-report, array-api-strict, ndindex.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "tests" / "numpy" / "results"
PACKAGES = ("numpy", "ml_dtypes", "llvmlite", "array-api-strict", "hypothesis", "pytest")
EXAMPLES = 10
VERSION = "2025.12"
Outcomes = dict[str, str]  # of each test

# What the names of failed tests contain, and why the failure is the suite's.
WHY = {
    "floor": "of quotients by and of infinity the standard notes that libraries may return NaN, or -1, to match "
    "Python: NumPy and array_api_strict do, and so do we; the suite knows the other choice alone",
    "expm1((real(x_i) is +0 or": "of -0 + 0j it wants a real part of +0; of the real -0 the standard wants -0",
    "tanh(real(x_i) is +infinity and isfinite": "it wants an imaginary part of +0, which C99 gives the sign of sin(2y)",
}

# Tests that fail or pass by what is drawn, on array_api_strict as here, since they want one sign of a zero that C99
# gives the sign of sin(2y), and of x.
BY_CHANCE = ("test_unary[tanh(real(x_i) is +infinity and isfinite(imag(x_i))", "test_unary[expm1((real(x_i) is +0 or")


def outcomes(suite: Path, module: str) -> Outcomes:
    """What became of every test of the suite, on a module."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        environment = os.environ | {
            "ARRAY_API_TESTS_MODULE": module, "ARRAY_API_TESTS_VERSION": VERSION,
            "ARRAY_API_STRICT_API_VERSION": VERSION, "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:warnings", "-p", "no:cacheprovider", "-n", "2",
            "--max-examples", str(EXAMPLES), "--disable-deadline", "--json-report", f"--json-report-file={report}",
            "array_api_tests",
        ]  # fmt: skip
        ran = subprocess.run(command, cwd=suite, env=environment, check=False, stdout=subprocess.PIPE, text=True)
        if ran.returncode > 1 or not report.exists():  # 1: tests failed
            sys.exit(f"{ran.stdout[-2000:]}\nnot all of the suite ran on {module}; is PATH a whole checkout?")
        tests = json.loads(report.read_text(encoding="utf-8"))["tests"]
    return {test["nodeid"].partition("/")[2]: test["outcome"] for test in tests}


def worst(rounds: list[Outcomes]) -> Outcomes:
    """A test's outcome over the rounds: failed, where it ever failed."""
    rank = ("passed", "skipped", "xfailed", "xpassed", "failed", "error")
    return {test: max((r.get(test, "error") for r in rounds), key=rank.index) for test in rounds[0]}


def of_extension(test: str) -> bool:
    """Whether a test is about the extensions linalg and fft."""
    return test.startswith(("test_linalg", "test_fft")) or "[linalg" in test or "[fft" in test


def failed(test: str, found: Outcomes) -> bool:
    """Whether a test did not pass, and was not skipped by the suite itself."""
    return found.get(test) in ("failed", "error")


def by_chance(test: str) -> bool:
    """Whether a test is one of those that fail on either module, as luck has it."""
    return any(name in test for name in BY_CHANCE)


def git(folder: Path, *arguments: str) -> str:
    """What git answers about a checkout."""
    asked = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return asked.stdout.strip()


def counted(found: Outcomes) -> str:
    """How many there are of each outcome, the most first."""
    counts = Counter(found.values())
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in sorted(counts, key=lambda o: -counts[o]))


def lines(suite: Path, ours: Outcomes, strict: Outcomes, rounds: int) -> Iterator[str]:
    """The log."""
    dirty = "-dirty" if git(ROOT, "status", "--porcelain", "--", "tracer") else ""
    yield f"date      {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    yield f"commit    {git(ROOT, 'rev-parse', '--short', 'HEAD')}{dirty}"
    yield f"suite     data-apis/array-api-tests {git(suite, 'log', '-1', '--format=%H of %as')}"
    yield f"standard  {VERSION}, data-apis/array-api {git(suite / 'array-api', 'rev-parse', 'HEAD')}"
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in PACKAGES)
    yield f"versions  Python {platform.python_version()}, {versions}"
    yield f"run       {rounds} rounds, {EXAMPLES} examples a test; a test that failed once has failed\n"
    for title, wanted in (("outside the extensions linalg and fft", False), ("the extensions", True)):
        yield f"{title}\n"
        for module, found in (("tracer.numpy", ours), ("array_api_strict", strict)):
            chosen = {test: outcome for test, outcome in found.items() if of_extension(test) is wanted}
            yield f"  {module:17} {counted(chosen)}"
        lost = sorted(test for test in ours if failed(test, ours) and of_extension(test) is wanted)
        both = [test for test in lost if failed(test, strict) or by_chance(test)]
        yield f"\n  fail on both, or by chance on either: {len(both)}"
        yield from (f"    {test}" for test in both)
        for part, why in WHY.items():
            if any(part in test for test in both):
                yield f"  why {part!r}: {why}"
        yield f"\n  fail here, pass on array_api_strict: {len(lost) - len(both)}"
        yield from (f"    {test}" for test in lost if test not in both)
        yield ""


def main() -> int:
    """Run, write, and say whether something is ours."""
    suite, rounds = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    ours, strict = (worst([outcomes(suite, m) for _ in range(rounds)]) for m in ("tracer.numpy", "array_api_strict"))
    TARGET.mkdir(exist_ok=True)
    path = TARGET / f"{datetime.now(UTC):%Y-%m-%d}-array-api-suite.txt"
    path.write_text("\n".join(lines(suite, ours, strict, rounds)), encoding="utf-8")
    print(f"tracer.numpy: {counted(ours)}; array_api_strict: {counted(strict)}; see {path}")
    left = [
        test
        for test in ours
        if failed(test, ours) and not (failed(test, strict) or by_chance(test) or of_extension(test))
    ]
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
