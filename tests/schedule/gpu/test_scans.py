"""Cumulative operations on a GPU, by blocks of threads: results equal the reference in any order of blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.runtime.cuda.simulator.running import outputs_of
from tests.schedule.gpu.gpu_programs import program_of
from tests.schedule.gpu.test_mapping import extent, kernel_loops, mapped, run
from tracer.codegen.reference.interpreter import Order
from tracer.primitives.base.reference import run_reference
from tracer.primitives.control.cumulative import cummax, cummin, cumprod, cumsum
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.runtime.cuda.simulator.kernels import Order as Turns
from tracer.schedule.gpu.reduction_chunks import chunk_reductions
from tracer.schedule.pipeline import GPU_PIPELINE, LoopPass

_TOLERANCE = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "float16": 2e-2}


def grids(function: Callable[..., Any], shape: tuple[int, ...], dtype: str = "float32") -> list[int]:
    """Blocks of each kernel."""
    module = mapped(program_of(lambda x: [function(x)], [(dtype, shape)])).module
    return [extent(blocks) for _, blocks, _ in kernel_loops(module)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("function", "dtype", "shape", "axis"),
    [
        (cumsum, "float32", (9011,), 0),  # two chunks, the second one shorter
        (cumsum, "complex64", (2, 130), 1),
        (cumsum, "float16", (3, 64), 1),
        (cumsum, "int8", (700,), 0),
        (cumsum, "float64", (300, 2), 0),
        (cummax, "float32", (2, 3, 97), 2),
        (cummin, "int32", (8200,), 0),
        (cumprod, "int64", (2, 70), 1),
        (cumprod, "float32", (2, 70), 1),
        (cumsum, "float32", (0, 40), 1),
    ],
)
@pytest.mark.rung("interpreter", of="cumulative")
def test_rows_equal_the_reference(
    function: Any, dtype: str, shape: tuple[int, ...], axis: int, reverse: bool, rng: np.random.Generator
) -> None:
    program = program_of(lambda x: [add(function(mul(x, x), axis, reverse), x)], [(dtype, shape)])
    x = (rng.standard_normal(shape) + 1).astype(dtype)
    module = mapped(program).module
    given = x.view(np.float32) if dtype == "complex64" else x
    (wanted,) = run_reference(program, [x])
    found = [run(module, [given], order)[1][0] for order in Order]
    assert len({array.tobytes() for array in found}) == 1
    limit = _TOLERANCE.get(dtype, 0.0)
    np.testing.assert_allclose(found[0].view(wanted.dtype).reshape(wanted.shape), wanted, rtol=limit, atol=limit)


IN_SHORT_CHUNKS = tuple(
    LoopPass(each.name, partial(chunk_reductions, small=0)) if each.name == "chunk_reductions" else each
    for each in GPU_PIPELINE[:-1]
)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("function", "dtype", "shape", "axis"),
    [
        (cumsum, "float32", (103, 33), 0),  # four chunks, the last one shorter
        (cummin, "int16", (70, 40), 0),
        (cummax, "float64", (2, 48, 20), 1),
        (cumsum, "complex64", (60, 33), 0),
    ],
)
def test_columns_in_chunks_equal_the_reference(
    function: Any, dtype: str, shape: tuple[int, ...], axis: int, reverse: bool, rng: np.random.Generator
) -> None:
    program = program_of(lambda x: [add(function(mul(x, x), axis, reverse), x)], [(dtype, shape)])
    x = (9 * rng.standard_normal(shape) + 1).astype(dtype)
    module = mapped(program, IN_SHORT_CHUNKS).module
    assert module.functions[0].name == "nest0_chunks"
    (wanted,) = run_reference(program, [x])
    found = [run(module, [x.view(x.real.dtype)], order)[1][0] for order in Order]
    assert len({array.tobytes() for array in found}) == 1
    limit = 40 * _TOLERANCE.get(dtype, 0.0)
    np.testing.assert_allclose(found[0].view(wanted.dtype).reshape(wanted.shape), wanted, rtol=limit, atol=limit)


@pytest.mark.rung("simulator", "PTX", of="cumulative")
def test_a_simulated_device_runs_chunks_of_columns_as_the_interpreter_does(rng: np.random.Generator) -> None:
    """Its own text in three orders of threads, and what NVRTC made of it."""
    module = mapped(program_of(lambda x: [cumsum(x, 0, False)], [("float32", (103, 33))]), IN_SHORT_CHUNKS).module
    x = rng.standard_normal((103, 33)).astype(np.float32)
    (wanted,) = run(module, [x])[1]
    found = [outputs_of(module, [x], turns)[0] for turns in Turns]
    found.append(outputs_of(module, [x], arch="sm_90")[0])
    assert {array.tobytes() for array in found} == {wanted.tobytes()}


@pytest.mark.parametrize(
    ("shape", "axis", "blocks"),
    [
        ((1 << 20,), 0, [256, 256]),
        ((40, 1 << 14), 1, [160, 160]),
        ((2000, 100), 1, [2000]),
        ((1 << 20, 2), 0, [256, 256]),  # columns that would not fill a warp
        ((100, 512), 0, [2]),  # a thread a column reads neighbours already
        ((4096, 4096), 0, [256, 256]),
        ((1 << 20, 200), 0, [264, 264]),
        ((2000, 31), 1, [8]),
    ],
)
def test_shapes_alone_decide_the_blocks(shape: tuple[int, ...], axis: int, blocks: list[int]) -> None:
    assert grids(lambda x: cumsum(x, axis, False), shape) == blocks


def test_products_of_floats_stay_in_order(rng: np.random.Generator) -> None:
    """Parts of them may overflow, and the whole not."""
    x = np.full((2, 64), 10.0, np.float32)
    x[:, 0] = 1e-37
    _, (found,) = run(mapped(program_of(lambda x: [cumprod(x, 1, False)], [("float32", x.shape)])).module, [x])
    assert np.isfinite(found).all()


@pytest.mark.parametrize("shape", [(1000,), (8300,), (200, 32)])
def test_sums_of_non_negative_values_never_decrease(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x = (rng.random(shape) * 10.0 ** rng.integers(-9, 3, shape)).astype(np.float32)
    program = program_of(lambda x: [cumsum(x, 0, False)], [("float32", shape)])
    _, (found,) = run(mapped(program, IN_SHORT_CHUNKS).module, [x])
    assert (np.diff(found.reshape(shape), axis=0) >= 0).all()
