"""Bytes and sectors that the kernels of programs move: what a device's memory sees, beside the least possible."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.cuda.test_emit import gpu_module
from tests.runtime.cuda.simulator.families import TEXT, runs
from tests.runtime.cuda.simulator.running import traffic_of
from tests.schedule.gpu.gpu_programs import PROGRAMS, inputs_of, program_of
from tracer.runtime.cuda.simulator.kernels import built

MOST = {
    "fused_f32": (1.00, 1.00), "integers_i64": (1.00, 1.00), "choice_f32": (1.00, 1.00), "softmax": (1.00, 1.12),
    "column_sums": (1.00, 1.12), "few_column_sums": (1.00, 1.09), "full_sum": (1.00, 1.00), "two_axes": (1.00, 1.68),
    "short_rows": (1.00, 3.06), "row_of_i64": (1.00, 1.00), "transposed": (1.00, 1.15), "joined": (1.00, 1.40),
}  # fmt: skip
"""By program: bytes beside those of its operands and results, and sectors beside those of as many bytes side by side.

The numbers are what the schedule reaches: they may only fall.
"""


@pytest.mark.parametrize("name", MOST)
@pytest.mark.rung("meter")
def test_kernels_move_no_more_than_before(name: str, rng: np.random.Generator) -> None:
    program, inputs = program_of(*PROGRAMS[name]), inputs_of(name, rng)
    counts = traffic_of(gpu_module(program), inputs).values()
    ideal = sum(t.dtype.itemsize * int(np.prod(t.shape)) for t in (*program.input_types, *program.output_types))
    found = sum(c.distinct for c in counts) / ideal, sum(c.sectors for c in counts) / sum(c.least for c in counts)
    assert all(f <= most + 0.005 for f, most in zip(found, MOST[name], strict=True)), found


def test_the_meter_counts_elements_once_and_sectors_by_warp() -> None:
    scaled, turned = runs("scaled")[0], runs("turned")[0]
    counts = built(TEXT).launch("scaled", scaled.grid, scaled.block, scaled.arguments(), meter=True)
    assert counts.requested == counts.distinct == 3 * 4 * 1037
    assert counts.sectors == counts.least == 3 * 130 + 3  # 16 bytes a thread; the last element's loop asks for one
    counts = built(TEXT).launch("turned", turned.grid, turned.block, turned.arguments(), meter=True)
    assert counts.requested == counts.distinct == 2 * 4 * 70 * 45
    assert counts.least < counts.sectors < 1.25 * counts.least  # rows of 45 numbers begin within sectors
