"""The mapping to a GPU, checked by the interpreter of loop IR: bounds, races, barriers, and the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.primitives import structural, structural_cases
from tests.runtime.programs import call_host, count_to, take
from tests.schedule.gpu.gpu_programs import PROGRAMS, inputs_of, program_of
from tracer.codegen.reference.interpreter import Order, Outcome, interpret
from tracer.codegen.status import Status
from tracer.errors import DeviceError
from tracer.ir.dtypes import BF16, short_name
from tracer.ir.loop import Block, Callback, Constant, For, Function, Library, LoopKind, Module, Space, View
from tracer.ir.loop.build import Builder
from tracer.ir.loop.check import check_module
from tracer.ir.loop.text import loop_text
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Program
from tracer.ir.target import CUDA
from tracer.ir.types import array_type
from tracer.lax import while_loop
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.reductions.reductions import reduce_sum
from tracer.primitives.base.reference import run_reference
from tracer.primitives.control.cumulative import cumsum
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.exponential import exp
from tracer.primitives.linalg.dot_general import dot_general
from tracer.schedule.gpu import mapping
from tracer.schedule.gpu.mapping import GpuSchedule, map_to_gpu
from tracer.schedule.math.legalise import expand_math
from tracer.schedule.pipeline import GPU_PIPELINE, LoopPass, gpu_schedule
from tracer.trace.stage import stage

# relative to 1, by the bytes of an element: sums are split differently from the reference's
_TOLERANCE = {1: 0.0, 2: 2e-2, 4: 2e-5, 8: 1e-12}


HOST_LOOPS = tuple(each for each in GPU_PIPELINE[:-1] if each.name != "loops_to_kernels")


def mapped(program: Program, passes: Sequence[LoopPass] = GPU_PIPELINE[:-1]) -> GpuSchedule:
    _, schedule = gpu_schedule(program, CUDA, passes)
    check_module(schedule.module)
    return schedule


def run(module: Module, inputs: list[Any], order: Order = Order.FORWARD) -> tuple[Outcome, list[Any]]:
    entry = next(f for f in module.functions if f.name == module.entry)
    outputs = [np.zeros(p.size, p.dtype) for p in entry.parameters if getattr(p, "space", None) is Space.OUTPUT]
    outcome = interpret(expand_math(module), [*(x.reshape(-1) for x in inputs), *outputs], order=order)
    return outcome, outputs


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.rung("interpreter")
def test_mapped_programs_equal_the_reference_in_any_order_of_blocks(name: str, rng: np.random.Generator) -> None:
    program = program_of(*PROGRAMS[name])
    schedule, inputs = mapped(program), inputs_of(name, rng)
    assert schedule.left == ()
    results = []
    for order in Order:
        outcome, outputs = run(schedule.module, inputs, order)
        assert outcome.status is Status.DONE
        results.append(outputs)
    for wanted, *got in zip(run_reference(program, inputs), *results, strict=True):
        close = _TOLERANCE[wanted.dtype.itemsize] if wanted.dtype.kind not in "biu" else 0.0
        np.testing.assert_allclose(
            got[0].astype(np.float64).reshape(wanted.shape), wanted.astype(np.float64), rtol=close, atol=close
        )
        assert len({array.tobytes() for array in got}) == 1


def kernel_loops(module: Module) -> Iterator[tuple[Function, For, For]]:
    """Every kernel with its loop over blocks and its loop over threads."""
    for function in module.functions:
        found = [s for s in statements_of(function.body) if isinstance(s, For)]
        blocks = [s for s in found if s.kind is LoopKind.BLOCK]
        threads = [s for s in found if s.kind is LoopKind.THREAD]
        if function.name != module.entry:
            assert len(blocks) == len(threads) == 1
            yield function, blocks[0], threads[0]


def extent(loop: For) -> int:
    assert isinstance(loop.stop, Constant)
    return int(loop.stop.value)


@pytest.mark.parametrize("name", PROGRAMS)
def test_blocks_are_whole_warps(name: str) -> None:
    for _, _, threads in kernel_loops(mapped(program_of(*PROGRAMS[name])).module):
        assert extent(threads) % 32 == 0
        assert 32 <= extent(threads) <= 512


@pytest.mark.parametrize(
    ("shape", "axes", "grid"),
    [
        ((1000, 7), (1,), (4, 256)),  # short rows: a thread each
        ((8, 300), (1,), (8, 128)),  # rows: a block each
        ((2000, 4000), (1,), (2000, 256)),
        ((40, 1100), (0,), (35, 256)),  # columns: a block for 32 of them
        ((600, 3), (0,), (1, 256)),  # few columns: one block
        ((60, 100), (0,), (1, 224)),  # two threads a column
        ((20, 1100), (0,), (5, 256)),  # short columns: a thread each
        ((64, 100), (0, 1), (1, 512)),
        ((5,), (0,), (1, 32)),
        ((0, 5), (1,), (0, 32)),
        ((5, 0), (1,), (1, 32)),
    ],
)
def test_shapes_alone_decide_how_a_sum_is_split(
    shape: tuple[int, ...], axes: tuple[int, ...], grid: tuple[int, int]
) -> None:
    module = mapped(program_of(lambda x: [reduce_sum(x, axes=axes)], [("float32", shape)])).module
    ((_, blocks, threads),) = kernel_loops(module)
    assert (extent(blocks), extent(threads)) == grid


def halved(values: Any) -> Any:
    while len(values) > 1:
        values = values[: len(values) // 2] + values[len(values) // 2 :]
    return values[0]


def test_a_row_is_summed_in_the_documented_order(rng: np.random.Generator) -> None:
    x = (rng.standard_normal(300) * 10.0 ** rng.integers(-6, 6, 300)).astype(np.float32)
    module = mapped(program_of(lambda v: [reduce_sum(v, axes=(1,))], [("float32", (20, 300))])).module
    _, (got,) = run(module, [np.tile(x, 20)])
    threads, width = 128, 4  # neighbouring columns of a thread, 16 bytes
    parts = np.full(threads, -0.0, np.float32)
    for start in range(0, 300 // width, threads):
        for element in range(width):
            chunk = x[element::width][start : start + threads]
            parts[: len(chunk)] += chunk
    warps = np.array([halved(warp) for warp in parts.reshape(-1, 32)])
    assert got[0] == np.float32(0.0) + halved(warps)
    assert got[0] != np.sum(x.astype(np.float64)).astype(np.float32), "a sum that any order gives shows nothing"


def test_softmax_as_loops(golden: Callable[[str, str], None]) -> None:
    golden("schedule/gpu_softmax", loop_text(mapped(program_of(*PROGRAMS["softmax"])).module))


def test_scalars_between_nests_are_kernels_of_one_thread(golden: Callable[[str, str], None]) -> None:
    golden("schedule/gpu_scalars", loop_text(mapped(program_of(*PROGRAMS["with_scalar"])).module))


# -- faults ----------------------------------------------------------------------------------------------


@pytest.mark.rung("interpreter", of="gathers")
def test_a_checked_gather_records_its_first_fault() -> None:
    program = program_of(lambda x, i: [take(x, i)], [("float32", (9,)), ("int64", (600,))])
    indices = np.arange(600) % 9
    indices[[400, 77]] = 9, -10
    outcome, _ = run(mapped(program).module, [np.ones(9, np.float32), indices])
    assert outcome.status is Status.FAULT
    assert outcome.fault is not None
    assert (outcome.fault.site, outcome.fault.position) == (0, 77)


# -- what has no kernel ----------------------------------------------------------------------------------

VECTOR = [("float32", (40,))]
MATRICES = [("float32", (60, 50)), ("float32", (50, 70))]


def product(x: Any, y: Any) -> list[Any]:
    return [dot_general(exp(x), y, (((1,), (0,)), ((), ())))]


@pytest.mark.parametrize(
    ("function", "types", "on_host"),
    [
        (product, MATRICES, ("main: the library routine gemm_f32",)),
        (lambda x: [call_host(np.sort, x)], VECTOR, ("main: a callback into Python",)),
        (lambda x: [count_to(9.0)(reduce_sum(x, axes=(0,)))], VECTOR, ()),
        (lambda x: [cumsum(x, axis=0)], VECTOR, ()),
    ],
)
def test_steps_that_no_kernel_does_are_named(function: Any, types: Any, on_host: tuple[str, ...]) -> None:
    schedule = mapped(program_of(function, types))
    assert (schedule.reasons, schedule.on_host) == ((), on_host)
    assert schedule.require("f") is schedule.module


def test_nests_without_a_kernel_are_named_with_the_reason() -> None:
    b = Builder()
    with b.for_("i", 0, 4):
        b.add(Callback(0, (), ()))
    schedule = map_to_gpu(Module((Function("nest0", (), b.finish()), Function("main", (), Block(()))), "main"))
    assert schedule.reasons == schedule.left == ("nest0: a callback step within a loop",)
    with pytest.raises(DeviceError, match="f: this program does not run on a GPU yet"):
        schedule.require("f")


def test_each_nest_is_mapped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    mapped: list[str] = []
    kernel = mapping._kernel
    monkeypatch.setattr(mapping, "_kernel", lambda nest: (mapped.append(nest.name), kernel(nest))[1])
    _, schedule = gpu_schedule(program_of(lambda x: [exp(x)], VECTOR), CUDA)
    assert schedule.left == ()
    assert len(mapped) == len(set(mapped)) > 0


def test_the_host_s_part_keeps_no_scalars(rng: np.random.Generator) -> None:
    program = program_of(
        lambda x: [while_loop(lambda y: reduce_sum(y, axes=(0,)) < 99.0, lambda y: y + 1.0, x)], VECTOR
    )
    module, x = mapped(program, HOST_LOOPS).module, rng.standard_normal(40).astype(np.float32)
    entry = next(f for f in module.functions if f.name == module.entry)
    kinds = {type(s).__name__ for s in statements_of(entry.body)}
    assert kinds == {"Copy", "Invoke", "Leave", "Load", "While"}
    _, outputs = run(module, [x])
    np.testing.assert_allclose(outputs[0], run_reference(program, [x])[0], rtol=1e-6)


def test_loops_in_order_run_in_one_thread(rng: np.random.Generator) -> None:
    program = program_of(lambda x: [mul(x, x), cumsum(add(x, 1.0), axis=0)], VECTOR)
    schedule, x = mapped(program), rng.standard_normal(40).astype(np.float32)
    kinds = {s.kind for f in schedule.module.functions for s in statements_of(f.body) if isinstance(s, For)}
    assert kinds == {LoopKind.BLOCK, LoopKind.THREAD, LoopKind.SERIAL}
    _, outputs = run(schedule.module, [x])
    for got, wanted in zip(outputs, run_reference(program, [x]), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


# -- breadth ---------------------------------------------------------------------------------------------

CASES = {case.label: case for case in (*structural_cases.CASES, *structural_cases.OURS)}


@pytest.mark.parametrize("label", CASES)
@pytest.mark.rung("interpreter", of="primitives")
def test_structural_programs_keep_their_meaning_as_far_as_they_are_mapped(label: str) -> None:
    case = CASES[label]
    program = optimize(structural.program_of(case), CUDA)
    schedule = mapped(program)
    entry = next(f for f in schedule.module.functions if f.name == schedule.module.entry)
    inputs = [
        np.ascontiguousarray(x).reshape(-1).view(p.dtype) for x, p in zip(case.operands, entry.parameters, strict=False)
    ]
    _, outputs = run(schedule.module, inputs)
    for got, wanted in zip(outputs, run_reference(program, case.operands), strict=True):
        wanted = np.asarray(wanted)
        np.testing.assert_allclose(got.view(wanted.dtype).reshape(wanted.shape), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "sums"), [("float16", "float32"), ("bfloat16", "float32"), ("int8", "int32"), ("float32", "float32")]
)
def test_products_reach_the_gpu_in_the_dtypes_it_multiplies(dtype: str, sums: str) -> None:
    """Operands of the routine are the arguments of the program: nothing is widened before."""
    type = array_type(BF16 if dtype == "bfloat16" else np.dtype(dtype), (64, 64))
    numbers = (((1,), (0,)), ((), ()))
    program = stage(lambda xs: [dot_general(*xs, numbers, preferred_element_type=np.dtype(sums))], [type, type]).program
    module = gpu_schedule(optimize(program, CUDA), CUDA)[1].module
    (call,) = (s for f in module.functions for s in f.body.statements)
    assert isinstance(call, Library)
    assert call.name == f"gemm_{short_name(type.dtype)}"
    views = call.arguments[:3]
    assert [view.buffer.dtype for view in views if isinstance(view, View)] == [type.dtype, type.dtype, np.dtype(sums)]
    x, y = (np.arange(64 * 64).reshape(64, 64) % k - 2 for k in (5, 7))
    result = np.empty(64 * 64, sums)
    interpret(module, [x.astype(type.dtype).ravel(), y.astype(type.dtype).ravel(), result])
    np.testing.assert_array_equal(result.reshape(64, 64), x @ y)
