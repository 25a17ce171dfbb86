"""Sorts on a GPU: passes of which every element has a thread, with the CPU's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.cuda.simulator.running import outputs_of
from tests.schedule.algorithms.test_merge_sort import DTYPES, check, values
from tests.schedule.gpu.gpu_programs import program_of
from tests.schedule.gpu.test_mapping import extent, kernel_loops, mapped, run
from tests.schedule.running import flat, staged
from tracer.codegen.reference.interpreter import Order
from tracer.codegen.status import Status
from tracer.ir.program import Program
from tracer.ir.target import CUDA
from tracer.ir.types import storage_type
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.sorting import sort, top_k
from tracer.primitives.base.shapes import broadcasted_iota
from tracer.runtime.cuda.simulator.kernels import Order as Launched
from tracer.schedule.pipeline import gpu_schedule

Array = np.ndarray[Any, Any]


def on_gpu(program: Program, arrays: list[Array]) -> list[Array]:
    """The results of the mapped loops, equal in all orders of blocks and threads."""
    schedule = mapped(optimize(program, CUDA))
    assert schedule.left == ()
    results = []
    for order in Order:
        outcome, outputs = run(schedule.module, [flat(x) for x in arrays], order)
        assert outcome.status is Status.DONE
        results.append(outputs)
    assert all(len({array.tobytes() for array in each}) == 1 for each in zip(*results, strict=True))
    types = map(storage_type, program.output_types)
    return [x.view(t.dtype).reshape(t.shape) for x, t in zip(results[0], types, strict=True)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.rung("interpreter", of="sorts")
def test_arrays_of_any_length_sort(dtype: str) -> None:
    arrays = [values(dtype, n, seed=n) for n in (0, 1, 2, 31, 33, 70)]
    check(lambda *xs: [sort(x, 0) for x in xs], *arrays, backend=on_gpu)


@pytest.mark.parametrize("shape", [(3, 35, 2), (1, 40), (33, 1), (1, 1), (0, 3)])
def test_any_axis_sorts_and_others_follow_stably(shape: tuple[int, ...]) -> None:
    x, y, positions = (
        values("float32", *shape),
        values("int8", *shape, seed=1),
        np.arange(np.prod(shape)).reshape(shape),
    )
    check(lambda *xs: [r for d in range(len(shape)) for r in sort(xs, d)], x, y, positions, backend=on_gpu)


def test_several_keys_of_several_dtypes() -> None:
    a, b, c = values("bool", 80), values("float32", 80), values("complex64", 80)
    check(lambda *xs: sort(xs, 0, num_keys=3), a, b, c, values("bfloat16", 80), backend=on_gpu)
    check(lambda *xs: sort(xs, 0, num_keys=2), c, a, b, backend=on_gpu)


def test_positions_alone_and_the_greatest() -> None:
    x = values("float64", 3, 75)
    check(lambda x: sort((x, broadcasted_iota("int64", x.type.shape, 1)), 1)[1], x, backend=on_gpu)
    check(lambda x: tuple(top_k(x, 5, axis=1)), x, backend=on_gpu)
    check(lambda x: tuple(top_k(x, 2, axis=0)), x, backend=on_gpu)


@pytest.mark.parametrize("way", Launched)
@pytest.mark.rung("simulator", of="sorts")
def test_the_simulator_gives_the_reference_s_results(way: Launched) -> None:
    """Its checks find races, and what is read beyond an array or before it is written."""
    x = values("float32", 2, 40)
    program = optimize(staged(lambda x: sort((x, broadcasted_iota("int64", x.type.shape, 1)), 1), [x]), CUDA)
    ordered, places = outputs_of(gpu_schedule(program, CUDA)[1].module, [x.reshape(-1)], way)
    np.testing.assert_array_equal(places.reshape(x.shape), np.argsort(x, axis=1, kind="stable"))
    np.testing.assert_array_equal(ordered.reshape(x.shape), np.sort(x, axis=1))


@pytest.mark.parametrize(("shape", "axis", "kernels"), [((1 << 20,), 0, 16), ((4096, 1000), 1, 6), ((1000, 64), 0, 6)])
def test_every_element_has_a_thread_in_every_pass(shape: tuple[int, ...], axis: int, kernels: int) -> None:
    program = program_of(lambda x: [sort(x, axis)], [("float32", shape)])
    threads = [extent(blocks) * extent(threads) for _, blocks, threads in kernel_loops(mapped(program).module)]
    assert len(threads) == kernels
    assert min(threads) >= np.prod(shape)
