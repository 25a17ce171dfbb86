"""Kernels at the roof: bytes and sectors that programs move beside the least possible, and blocks for a whole GPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.grids import covering
from tests.runtime.cuda.simulator.roof import COLUMNS, DTYPES, FORWARD, GRADIENTS, MULTIPROCESSORS, measured, program_of
from tracer.codegen.cuda import nvrtc
from tracer.codegen.cuda.emit import emit_cuda
from tracer.ir.target import CUDA
from tracer.schedule.pipeline import gpu_schedule

ROWS = ("softmax", "log_softmax", "layernorm", "rmsnorm", "cross_entropy", "argmax", "row_sum")


@pytest.mark.parametrize(("name", "dtype", "columns"), covering((*ROWS, *GRADIENTS), DTYPES, COLUMNS))
@pytest.mark.rung("meter")
def test_rows_are_read_and_written_once_by_one_kernel(name: str, dtype: str, columns: int) -> None:
    found = measured(name, dtype, columns)
    assert found.kernels == 1
    assert found.bytes <= (1.10 if name in GRADIENTS else 1.02)
    if columns * np.dtype(dtype).itemsize % 32 == 0:  # rows that begin within a sector share it with others
        assert found.sectors <= 1 / 0.95
    if columns < 16384:  # 8 MB are 128 such rows or fewer: a block each
        assert found.blocks >= MULTIPROCESSORS


@pytest.mark.parametrize(
    ("name", "dtype", "columns"), covering(("column_sum", "total", "row_sum"), DTYPES, (3, 64, 257, 1024, 5000, 16384))
)
@pytest.mark.rung("meter")
def test_long_reductions_have_work_for_every_multiprocessor(name: str, dtype: str, columns: int) -> None:
    found = measured(name, dtype, columns)
    assert found.kernels <= 2
    assert found.bytes <= 1.02
    if columns * np.dtype(dtype).itemsize % 32 == 0:
        assert found.sectors <= 1 / 0.95
    if name != "row_sum" or columns == 16384:
        assert found.blocks >= MULTIPROCESSORS


@pytest.mark.parametrize(("dtype", "columns"), covering(DTYPES, COLUMNS))
@pytest.mark.rung("meter", of="cumulative")
def test_cumulative_sums_read_and_write_whole_sectors(dtype: str, columns: int) -> None:
    found = measured("cumsum_rows", dtype, columns)
    assert found.kernels <= 2
    assert found.bytes <= (1.02 if found.kernels == 1 else 1.52)  # chunks are read twice
    if columns * np.dtype(dtype).itemsize % 32 == 0:
        assert found.sectors <= 1 / 0.95
    assert found.blocks >= MULTIPROCESSORS


MOVES = (
    "concatenate", "concatenate_rows", "stack", "pad", "pad_sectors", "roll", "roll_rows", "flip", "flip_rows",
)  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "columns"), covering(MOVES, DTYPES, (64, 256, 1008)))
def test_moves_of_parts_read_and_write_once_by_one_kernel(name: str, dtype: str, columns: int) -> None:
    found = measured(name, dtype, columns, 16)
    assert found.kernels == 1
    assert found.bytes <= 1.02
    assert found.sectors <= (1.5 if name == "pad" else 1 / 0.95)  # rows padded by one begin within a sector
    assert found.blocks >= MULTIPROCESSORS


@pytest.mark.parametrize(("dtype", "columns"), covering(DTYPES, (64, 128)))
def test_cumulative_sums_of_columns_share_long_ones(dtype: str, columns: int) -> None:
    found = measured("cumsum_columns", dtype, columns, (1 << 16) // columns)
    assert found.kernels == 2
    assert found.bytes <= 1.6  # chunks are read twice, and totals of float16 are float32
    assert found.sectors <= 1 / 0.95
    assert found.blocks >= MULTIPROCESSORS


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    covering(
        ("transpose", "plus_transpose", "swap_batches", "moveaxis"),
        DTYPES,
        ((34, 64), (66, 34), (64, 96), (96, 64), (100, 256), (32, 1024), (32, 4096), (1024, 32)),
    ),
)
@pytest.mark.rung("meter", of="transposes")
def test_transposes_read_and_write_whole_sectors(name: str, dtype: str, shape: tuple[int, int]) -> None:
    found = measured(name, dtype, shape[1], shape[0])
    assert found.kernels == 1
    assert found.bytes == 1
    aligned = all(n * np.dtype(dtype).itemsize % 64 == 0 for n in shape)  # also by halves
    assert found.sectors <= (1 / 0.95 if aligned else 1.5)  # else rows begin within a sector, and share it
    assert found.blocks >= MULTIPROCESSORS


@pytest.mark.parametrize(("name", "dtype"), covering(("softmax", "grad_layernorm", "cross_entropy"), DTYPES))
@pytest.mark.rung("NVRTC")
def test_the_longest_rows_lie_in_registers_without_spills(name: str, dtype: str) -> None:
    source = emit_cuda(gpu_schedule(program_of(name, dtype, (64, 16384)), CUDA)[1].module)
    (kernel,) = source.kernels
    found = nvrtc.compile_cuda(source.text, "sm_90").resources[kernel.name]
    assert (found.stack, found.spill_stores, found.spill_loads) == (0, 0, 0)
    assert found.registers * kernel.block <= 65536


def test_programs_of_the_table_have_names_of_their_own() -> None:
    assert not set(FORWARD) & set(GRADIENTS)
