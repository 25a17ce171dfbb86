"""Scatters on a GPU: threads share windows and destinations, and each cell takes its updates in order, as on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.schedule.gpu.test_mapping import extent, kernel_loops, mapped, run
from tracer.codegen.reference.interpreter import Order
from tracer.codegen.status import Status
from tracer.ir.program import Program
from tracer.ir.target import CUDA
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference
from tracer.trace.stage import stage


def scatter(function: Callable[..., Any], *types: tuple[str, tuple[int, ...]]) -> Program:
    """The program of a function of arrays, without constants."""
    made = [array_type(np.dtype(d), shape) for d, shape in types]
    return optimize(stage(lambda xs: [function(*xs)], made).program, CUDA)


def threads_of(program: Program) -> int:
    """The threads of the kernel with the most of them."""
    loops = kernel_loops(mapped(program).module)
    return max(extent(blocks) * extent(threads) for _, blocks, threads in loops)


CASES: dict[str, tuple[Callable[..., Any], int, int]] = {
    "sum_of_rows": (lambda a, i, x: a.at[i].add(x), 50, 16),
    "last_row_wins": (lambda a, i, x: a.at[i].set(x), 50, 16),
    "products": (lambda a, i, x: a.at[i].mul(x), 7, 3),
    "minima": (lambda a, i, x: a.at[i].min(x), 33, 1),
    "maxima": (lambda a, i, x: a.at[i].max(x), 1, 5),
}


@pytest.mark.parametrize("name", CASES)
def test_duplicates_are_applied_in_order(name: str, rng: np.random.Generator) -> None:
    function, rows, columns = CASES[name]
    shapes = (("float32", (rows, columns)), ("int64", (200,)), ("float32", (200, columns)))
    program = scatter(function, *shapes)
    given = [
        rng.standard_normal((rows, columns)).astype(np.float32),
        rng.integers(-rows, rows, 200),
        rng.standard_normal((200, columns)).astype(np.float32),
    ]
    module = mapped(program).module
    (wanted,) = run_reference(program, given)
    for order in Order:
        outcome, (got,) = run(module, given, order)
        assert outcome.status is Status.DONE
        assert got.tobytes() == np.asarray(wanted).tobytes(), "not the reference's bits"


def test_a_histogram_shares_its_cells(rng: np.random.Generator) -> None:
    program = scatter(lambda a, i, x: a.at[i].add(x), ("int32", (64,)), ("int64", (3000,)), ("int32", (3000,)))
    i = rng.integers(0, 64, 3000)
    _, (got,) = run(mapped(program).module, [np.zeros(64, np.int32), i, np.ones(3000, np.int32)])
    np.testing.assert_array_equal(got, np.bincount(i, minlength=64))


@pytest.mark.parametrize(
    ("rows", "columns", "dtype", "threads"),
    [(50257, 768, "float32", 16 * 768), (64, 1, "int32", 64), (1 << 20, 1, "float32", 1 << 14), (3, 5, "float64", 32)],
)
def test_many_threads_share_a_scatter(rows: int, columns: int, dtype: str, threads: int) -> None:
    shapes = ((dtype, (rows, columns)), ("int64", (4096,)), (dtype, (4096, columns)))
    assert threads <= threads_of(scatter(lambda a, i, x: a.at[i].add(x), *shapes))


def test_a_fault_is_the_first_in_the_program_s_order(rng: np.random.Generator) -> None:
    shapes = (("float32", (9, 4)), ("int64", (60,)), ("float32", (60, 4)))
    program = scatter(lambda a, i, x: a.at[i].add(x), *shapes)
    i = rng.integers(0, 9, 60)
    i[[40, 17]] = 9, 12
    outcome, _ = run(mapped(program).module, [np.zeros((9, 4), np.float32), i, np.ones((60, 4), np.float32)])
    assert outcome.fault is not None
    assert outcome.fault.position == 17  # the window
