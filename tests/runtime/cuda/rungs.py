"""Table of the rung that each feature of the GPU backend reached, written from the tests that ran.

Tests say by a marker which rungs they show: `@pytest.mark.rung("NVRTC", "simulator", of="gathers")`. Without `of` the
feature is that of the program which the parameter `name` names. `python -m tests.runtime.cuda.rungs` runs the tests and
writes docs/gpu.md: a rung is reached where all its tests of the feature passed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

PAGE: Final = Path(__file__).parents[3] / "docs" / "gpu.md"
FOLDERS: Final = ("tests/schedule/gpu", "tests/codegen/cuda", "tests/runtime/cuda")
BEGIN, END = "<!-- rungs -->", "<!-- end -->"

RUNGS: Final = ("interpreter", "text", "NVRTC", "simulator", "PTX", "meter", "device", "card")


FEATURES: Final[Mapping[str, str]] = {
    "maps": "independent loops, fused: float16 to float64, bool, integers",
    "transposes": "broadcast reads; transposed reads, in tiles",
    "parts": "maps side by side: concatenation, padding, small arrays",
    "rows": "row programs: softmax, layernorm, argmax, their gradients, one kernel each",
    "reductions": "column and full reductions, in tiles and chunks",
    "accesses": "accesses of up to 16 bytes: maps, rows, totals",
    "cumulative": "cumulative operations, a block, a thread or a chunk a row or column",
    "scalars": "scalars between nests, through memory",
    "gathers": "checked gathers and their fault record",
    "scatters": "scatters, in order or in chunks",
    "sorts": "sorts and `top_k` of every dtype, in passes",
    "loops": "loops and branches in one block or thread, stacks of reverse loops",
    "callbacks": "callbacks, by copies to the host",
    "libraries": "library routines, played by NumPy's references",
    "primitives": "the kernels of every primitive that has them",
    "scalar operations": "every scalar operation on every dtype, at its edges",
    "math": "math functions, expanded (accuracy: tested on the CPU)",
    "arrays": "arrays on a device, `grad`, `vmap` and `jit` of them, donation",
    "CuPy": "CuPy's driver, with a stand-in for CuPy",
}
_PROGRAMS: Final = {
    "maps": "fused_f32, fused_f64, fused_f16, fused_bf16, integers_i64, choice_f32, converted, empty, chain, "
    "arithmetic, math, masked, triangle, taken, cast, flip, flip_rows",
    "transposes": "transposed, transpose, plus_transpose, swap_batches, moveaxis",
    "parts": "joined, concatenate, concatenate_rows, stack, pad, padded, pad_sectors, roll, roll_rows",
    "rows": "softmax, log_softmax, layernorm, rmsnorm, cross_entropy, argmax, row_sum, any_of_row, row_of_i64, "
    "short_rows, std, grad_softmax, grad_log_softmax, grad_layernorm, grad_rmsnorm",
    "reductions": "column_sums, few_column_sums, full_sum, two_axes, column_sum, column_std, total, sum, "
    "mean of columns, product",
    "cumulative": "running_sums, cumulative, cumsum_rows, cumsum_columns",
    "scalars": "with_scalar",
    "gathers": "gathered, checked",
    "scatters": "scatter",
    "sorts": "sort",
    "loops": "iterated, while, gradient of while, while of lanes, scan, gradient of scan, cond, slices in a loop",
    "callbacks": "callback",
    "libraries": "matrix product, convolution, factors, singular values, Fourier",
}
OF_PROGRAM: Final = {name: feature for feature, names in _PROGRAMS.items() for name in names.split(", ")}

Pair = tuple[str, str]  # a feature and a rung


def pairs_of(item: pytest.Item) -> Iterator[Pair]:
    """Yield what a test shows."""
    for marker in item.iter_markers("rung"):
        feature = marker.kwargs.get("of") or OF_PROGRAM[item.callspec.params["name"]]  # type: ignore[attr-defined]
        for rung in marker.args:
            assert feature in FEATURES, f"{item.nodeid}: no feature {feature!r}"
            assert rung in RUNGS, f"{item.nodeid}: no rung {rung!r}"
            yield feature, rung


def lines_of(reached: Iterable[Pair]) -> list[str]:
    """Return the lines of the table."""
    found = set(reached)
    rows = [
        " | ".join([text, *("✓" if (key, rung) in found else "–" for rung in RUNGS)]) for key, text in FEATURES.items()
    ]
    return [f"| feature | {' | '.join(RUNGS)} |", f"|{'---|' * (1 + len(RUNGS))}", *(f"| {row} |" for row in rows)]


def written(page: str) -> list[str]:
    """Return the table's lines on a page."""
    return page.partition(BEGIN)[2].partition(END)[0].strip().splitlines()


class Recorder:
    """Plugin that notes the pairs of tests that passed, and of tests that did not."""

    def __init__(self) -> None:
        self.passed: set[Pair] = set()
        self.failed: set[Pair] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        report = yield
        if report.when == "call" or report.failed:
            notes = self.passed if report.passed else self.failed
            notes.update(pairs_of(item))
        return report


def main() -> int:
    """Run the tests, and write the page. Returns the exit status: 1 where a test failed."""
    recorder = Recorder()
    status = pytest.main(["-q", "-p", "no:cacheprovider", "-m", "rung", *sys.argv[1:], *FOLDERS], plugins=[recorder])
    page = PAGE.read_text(encoding="utf-8")
    table = "\n".join(lines_of(recorder.passed - recorder.failed))
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
