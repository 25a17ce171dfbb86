"""Why rows are behind a peer, as found in their loops, their machine code, or by profiling."""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "not profiled yet"
REASONS: Final[dict[str, str]] = {
    "argmax": "two passes over a row, the second one in cache",
    "pow": "some 100 instructions a vector, the logarithm being in two parts; NumPy's has tables",
    "sort": "it is NumPy's sort, behind a copy of the row, before a pass that looks for -0",
    "where": "which parts of the array a core takes differs from call to call; in two fixed halves it is 7% faster",
    "matvec": "memory: 16 MB at 63 GB/s, 95 where rows begin cache lines; twice that if two threads get a core each",
    "tanh f8": "33 instructions and a division, for an error of 1.84 ulp at most; JAX's rational function errs by 7",
    "scatter add": "updates follow one another through memory, 0.7 ns each; checking the indices costs nothing",
}
"""By the beginning of a row's name."""


def reason(row: str) -> str:
    """Why a row is behind; the longest beginning counts."""
    found = [name for name in REASONS if row.startswith(f"{name} ")]
    return REASONS[max(found, key=len)] if found else UNKNOWN
