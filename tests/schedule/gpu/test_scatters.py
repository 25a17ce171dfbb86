"""Scatters on a GPU: threads share windows and destinations, and each cell takes its updates in order, as on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.runtime.cuda.simulator.running import outputs_of
from tests.schedule.gpu.test_mapping import extent, kernel_loops, mapped, run
from tracer import vmap
from tracer.codegen.reference.interpreter import Order
from tracer.codegen.status import Status
from tracer.ir.loop import Block, Constant, For, LoopKind, Module
from tracer.ir.loop.walk import blocks_of
from tracer.ir.program import Program
from tracer.ir.target import CUDA
from tracer.ir.types import array_type
from tracer.ops import segment_sum
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference
from tracer.runtime.cuda.simulator.kernels import Order as Turns
from tracer.schedule.gpu.scatter_chunks import chunk_scatters
from tracer.schedule.pipeline import GPU_PIPELINE, LoopPass
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
@pytest.mark.rung("interpreter", of="scatters")
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
    [
        (50257, 768, "float32", 16 * 768),
        (64, 1, "complex64", 128),
        (64, 1, "int32", 64),
        (1 << 20, 1, "float32", 1 << 14),
        (3, 5, "float64", 32),
    ],
)
def test_many_threads_share_a_scatter(rows: int, columns: int, dtype: str, threads: int) -> None:
    shapes = ((dtype, (rows, columns)), ("int64", (4096,)), (dtype, (4096, columns)))
    assert threads <= threads_of(scatter(lambda a, i, x: a.at[i].add(x), *shapes))


IN_SHORT_CHUNKS = tuple(
    LoopPass(each.name, partial(chunk_scatters, chain=64)) if each.name == "chunk_scatters" else each
    for each in GPU_PIPELINE[:-1]
)
LONG: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], str]] = {
    "sums": (lambda a, i, x: a.at[i].add(x), (40,), (), "float32"),
    "sums_of_integers": (lambda a, i, x: a.at[i].add(x), (40, 3), (3,), "int32"),
    "products": (lambda a, i, x: a.at[i].mul(x), (3,), (), "float64"),
    "maxima_in_a_stack": (vmap(lambda a, i, x: a.at[i].max(x), in_axes=(0, None, None)), (2, 40), (), "float16"),
    "last_row_wins": (lambda a, i, x: a.at[i].set(x), (40, 3), (3,), "float32"),
    "sums_of_complex_numbers": (lambda a, i, x: a.at[i].add(x), (40,), (), "complex64"),
    "last_complex_number_wins": (lambda a, i, x: a.at[i].set(x), (40,), (), "complex128"),
    "last_of_a_stack_wins": (vmap(lambda a, i, x: a.at[i].set(x), in_axes=(0, None, None)), (2, 40), (), "int8"),
    "some_are_left_out": (lambda a, i, x: a.at[i].set(x, mode="drop"), (35,), (), "float32"),
}
"""Functions of an array of few cells, 4,500 indices and updates: shapes of the array and a window, a dtype."""


@pytest.mark.parametrize("name", LONG)
def test_long_scatters_run_in_chunks(name: str, rng: np.random.Generator) -> None:
    function, shape, window, dtype = LONG[name]
    program = scatter(function, (dtype, shape), ("int64", (300,)), (dtype, (300, *window)))
    a, x = (9 * rng.standard_normal(s) for s in (shape, (300, *window)))
    i = rng.integers(0, 40 if "left" in name else min(shape[-1 - len(window)], 37), 300)
    given = [a.astype(dtype), i, (x / 1e4 + 1 if name == "products" else x).astype(dtype)]
    module = mapped(program, IN_SHORT_CHUNKS).module
    assert chain_of(module) < 100
    (wanted,) = run_reference(program, given)
    found = [run(module, [x.view(x.real.dtype) for x in given], order)[1][0] for order in Order]
    assert len({array.tobytes() for array in found}) == 1
    if name in ("sums", "sums_of_complex_numbers", "products"):
        np.testing.assert_allclose(found[0].view(dtype).reshape(shape), wanted, rtol=1e-4, atol=1e-4)
    else:
        assert found[0].tobytes() == np.asarray(wanted).tobytes()


@pytest.mark.rung("simulator", "PTX", of="scatters")
def test_a_simulated_device_runs_chunks_as_the_interpreter_does(rng: np.random.Generator) -> None:
    """Its own text in three orders of threads, and what NVRTC made of it."""
    for op in ("add", "set"):
        program = scatter(
            lambda a, i, x, op=op: getattr(a.at[i], op)(x),
            ("float32", (40, 2)),
            ("int64", (300,)),
            ("float32", (300, 2)),
        )
        module = mapped(program, IN_SHORT_CHUNKS).module
        given = [np.ones((40, 2), np.float32), rng.integers(-40, 40, 300), rng.random((300, 2)).astype(np.float32)]
        (wanted,) = run(module, given)[1]
        found = [outputs_of(module, given, turns)[0] for turns in Turns]
        found.append(outputs_of(module, given, arch="sm_90")[0])
        assert {array.tobytes() for array in found} == {wanted.tobytes()}


def chain_of(module: Module) -> int:
    """The longest of the loops that a thread runs in order, loops within counted."""
    return max(_chain(f.body) for f in module.functions if f.name != module.entry)


def _chain(block: Block) -> int:
    found = 1
    for s in block.statements:
        inner = max(map(_chain, blocks_of(s)), default=1)
        is_serial = isinstance(s, For) and s.kind is LoopKind.SERIAL and isinstance(s.stop, Constant)
        found = max(found, inner * (int(s.stop.value) if is_serial else 1))  # type: ignore[union-attr]  # a For
    return found


@pytest.mark.parametrize(
    ("function", "cells", "dtype", "count"),
    [
        (lambda a, i, x: a.at[i].add(x), (10,), "float32", 1_000_000),
        (lambda a, i, x: a.at[i].set(x), (1000, 8), "float32", 300_000),
        (lambda a, i, x: a + segment_sum(x, i, num_segments=500), (500,), "int32", 2_000_000),
        (lambda a, i, x: a + tnp.bincount(i, length=256), (256,), "int64", 1_000_000),
    ],
)
def test_no_thread_walks_many_updates(
    function: Callable[..., Any], cells: tuple[int, ...], dtype: str, count: int
) -> None:
    updates = (count, *cells[1:])
    module = mapped(scatter(function, (dtype, cells), ("int64", (count,)), (dtype, updates))).module
    assert chain_of(module) <= 4096


def test_memory_of_chunks_is_bounded() -> None:
    """A million cells and updates have four chunks; of more cells than that, each thread walks all updates."""
    shapes = ("int64", (1 << 20,)), ("float32", (1 << 20,))
    for cells, chunks in ((1 << 20, 4), (1 << 22, 1)):
        module = mapped(scatter(lambda a, i, x: a.at[i].add(x), ("float32", (cells,)), *shapes)).module
        assert chain_of(module) == (1 << 20) // chunks
        assert module.arena < 1 << 25


def test_a_fault_is_the_first_in_the_program_s_order(rng: np.random.Generator) -> None:
    shapes = (("float32", (9, 4)), ("int64", (60,)), ("float32", (60, 4)))
    program = scatter(lambda a, i, x: a.at[i].add(x), *shapes)
    i = rng.integers(0, 9, 60)
    i[[40, 17]] = 9, 12
    outcome, _ = run(mapped(program).module, [np.zeros((9, 4), np.float32), i, np.ones((60, 4), np.float32)])
    assert outcome.fault is not None
    assert outcome.fault.position == 17  # the window
