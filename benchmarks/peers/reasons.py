"""Why rows are behind a peer or miss a bar, as found in their loops, their machine code, or by profiling.

Each names the processor that it was found on, or is of a Zen 5; figures of another processor differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

UNKNOWN: Final = "not profiled yet"
REASONS: Final[dict[str, str]] = {
    "argmax": "two passes over a row, the second one in cache",
    "pow": "some 100 instructions a vector, the logarithm being in two parts; NumPy's has tables",
    "sort": "it is NumPy's sort, behind a copy of the row, before a pass that looks for -0",
    "matvec": "Sapphire Rapids: memory; in C 447 µs at least by one row at a time, 435 by eight; medians 569 and 516",
    "tanh f8": "29 operations, of which a quotient takes 16 cycles, for 1.83 ulp at most; JAX's function errs by 7",
    "arccos": "Sapphire Rapids: 21 cycles of the divider for the roots of a vector of 8, 16 of all else beside them",
    "arcsin": "Sapphire Rapids: 21 cycles of the divider for the roots of a vector of 8, 14 of all else beside them",
    "erf f8": "Sapphire Rapids: 14.5 ns for 8 numbers in cache; 14 of 32 operations are lookups, which have one port",
    "tan": "Sapphire Rapids: 13.5 ns for 8 numbers in cache, of 51 operations with a quotient",
    "log2": "Sapphire Rapids: 39 instructions a vector of 8, two a cycle, 20 of them for the polynomial",
    "cumsum f8 1e7": "Sapphire Rapids: each thread reads one stretch, and all is written to and read from the second "
    "cache besides; on one thread 14 ms, a copy 8.4",
    "sum f8 1e7": "Sapphire Rapids: what only reads gets 27 GB/s of two threads (C, four stretches), copies past the "
    "caches 41",
    "newton, one call": "Sapphire Rapids: 0.3 µs, most of it the call and its array; Numba returns a float",
    "call with one array": "Sapphire Rapids: 0.25 to 0.36 µs where nobody else has the core (the log of dispatch), "
    "twice that where somebody has: then NumPy's addition takes 0.7 and not 0.36",
    "polynomial f4 1e7": "Sapphire Rapids: 3.9 ms where axpy takes 3.1; in C, of 11 operations and not 14, "
    "as long as axpy",
    "take f8 1e7": "Sapphire Rapids: strands end with each row of 20 kB; rows in order on lines 6.6 ms, shuffled 7.4, "
    "beside lines 8.3, where a copy takes 5.5",
    "concatenate f8 1e7": "Sapphire Rapids: strands end with each row of 10 kB from either place: 7.0 ms, on lines "
    "6.4, in rows of 100 kB 5.8, where a copy takes 5.3",
    "pad f8 1e7": "Sapphire Rapids: strands end with each row of 20 kB: 6.5 ms, on lines 5.8, in rows of 2 MB 5.6, "
    "where a copy takes 5.3",
    "scatter add": "updates follow one another through memory, 0.7 ns each; checking the indices costs nothing",
    "equation of state": "Sapphire Rapids: 17 ns for 8 numbers in cache are the divider's 36 cycles; on two threads "
    "beside neighbours 52 sums and products count, too, which JAX contracts, and so does the next row, by a setting",
    "lorenz f8, 1e4 steps": "Sapphire Rapids: a step of 26 ns is 21 operations of 4 cycles that wait for each other; "
    "with config.fp_contract 20 ns",
    "matmul f4 256": "Sapphire Rapids: 93 GF/s at best on one thread, PyTorch's 100; 180 and 184 to 233 on two",
    "matmul f4 1024": "Sapphire Rapids: 121 GF/s at best on one thread, PyTorch's 119; on two 171, 176 and 241 in "
    "three processes in turns, PyTorch's 190, 224 and 230",
    "matmul f8 512": "Sapphire Rapids: 87 to 96 GF/s at best in three processes in turns, PyTorch's 79 to 93",
    "matmul f4 2048": "Sapphire Rapids: 102 GF/s a thread of 133, 127 without its traffic with memory, of 7 to 15 GB/s",
}
"""Of times, by the beginning of a row's name."""
FIRST_CALLS: Final[dict[str, str]] = {
    "copy f8 1e7": "260 ms of 290: the system clears 76 MiB of new memory, where huge pages are scarce; so for np.copy",
    "sum f4": "Sapphire Rapids: of 12 to 15 ms 5 or 6 load kept code",
    "sum f8": "Sapphire Rapids: of 16 to 20 ms 5 or 6 load kept code, the sum of 1e7 itself 4",
    "argmax f4": "Sapphire Rapids: 38 to 43 ms alone, JAX's 71; LLVM takes 24, most for two searches in 64 lanes, of "
    "which one has a rest",
    "attention f4 8x1024x64": "Sapphire Rapids: 64 to 80 ms alone, JAX's 86 to 94; attention itself takes 28 on two "
    "cores, which others slow down, LLVM 18, the schedule 6",
    "batched matmul": "Sapphire Rapids: 13 to 22 ms alone, JAX's 22 to 25; LLVM takes 7 to 12 for a loop of eight sums",
    "matmul f8 512": "Sapphire Rapids: of 15 to 18 ms the product takes 3.5 to 6, 6 load kept code",
}
"""Of first calls."""
PEAKS: Final[dict[str, str]] = {
    "where": "the result is 3.8 MiB; compiling takes 0.9 before it, of JAX 4.6 in a process of its own",
}
"""Of peaks of memory."""


def reason(row: str, reasons: Mapping[str, str] = REASONS) -> str:
    """Why a row is behind; the longest beginning counts."""
    found = [name for name in reasons if f"{row} ".startswith(f"{name} ")]
    return reasons[max(found, key=len)] if found else UNKNOWN
