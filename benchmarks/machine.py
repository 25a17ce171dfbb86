"""The head of a benchmark's log: when, on what, with which versions; asked for `slug`, what to call its file."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

VECTORS = ("avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16", "asimd", "sve", "sve2", "bf16")
"""What a processor computes vectors and products with, by the system's names, the last four on ARM."""
PACKAGES = ("tracer", "numpy", "scipy", "llvmlite", "ml_dtypes", "optree")


def cpu_name() -> str:
    """The processor's name as the kernel gives it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def slug(cpu: str) -> str:
    """A processor's name in the names of files.

    >>> slug("AMD EPYC 9B45 128-Core Processor")
    'amd-epyc-9b45-128-core'
    """
    return "-".join(re.findall(r"[a-z0-9]+", re.sub(r"\(\w+\)|processor|cpu.*", "", cpu.lower())))


def extensions() -> list[str]:
    """Those of `VECTORS` that the processor has and the kernel shows."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = (line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features")))
    found = set(next(named, []))
    return [name for name in VECTORS if name in found]


def revision() -> str:
    """The commit that is measured, marked where files differ from it, logs of measurements left out."""
    try:
        commit = _git("describe", "--always", "--exclude=*")
        changed = _git("status", "--porcelain", "--", ".", ":!benchmarks/results", ":!tests/laws/results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}-dirty" if changed else commit


def _git(*arguments: str) -> str:
    asked = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return asked.stdout.strip()


def version_of(package: str) -> str:
    """The installed version of a package, or that there is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def head() -> str:
    """Date, machine, load, commit and versions, as the first lines of a log.

    >>> head().splitlines()[0].startswith("date")
    True
    """
    rows = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "machine": f"{cpu_name()}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.2f}",
        "vectors": ", ".join(extensions()) or "unknown",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "commit": revision(),
        "versions": ", ".join(f"{p} {version_of(p)}" for p in PACKAGES),
    }
    return "\n".join(f"{name:<9} {value}" for name, value in rows.items())


if __name__ == "__main__":
    print(slug(cpu_name()) if sys.argv[1:] == ["slug"] else head())
