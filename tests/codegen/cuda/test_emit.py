"""CUDA source: golden texts, NVRTC without spills, and the text itself run on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.grids import THOROUGH, covering
from tests.runtime.cuda.simulator.running import outputs_of
from tests.runtime.programs import take
from tests.schedule.gpu.gpu_programs import PROGRAMS, inputs_of, program_of
from tracer.codegen.cuda import nvrtc
from tracer.codegen.cuda.emit import emit_cuda
from tracer.codegen.cuda.source import CudaSource
from tracer.codegen.reference.interpreter import interpret
from tracer.errors import DeviceError, InternalError
from tracer.ir.dtypes import F16, F32, I16, U64, DType, short_name
from tracer.ir.loop import Block, Buffer, Function, Invoke, LoopKind, Module, ShuffleKind, Space, View
from tracer.ir.loop.build import Builder, address, carry, constant
from tracer.ir.primitive import Effect
from tracer.ir.program import Program
from tracer.ir.scalar import ScalarOp
from tracer.ir.target import CUDA
from tracer.lax import while_loop
from tracer.primitives.arrays.reductions.reductions import reduce_sum
from tracer.primitives.base.reference import run_reference
from tracer.runtime.cuda.simulator.kernels import Order
from tracer.schedule.pipeline import GPU_PIPELINE, gpu_schedule

CHECKED = (lambda x, i: [take(x, i)], [("float32", (9,)), ("int64", (600,))])
ARCHS = ("sm_80", "sm_90")
GOLDEN = (
    "fused_f32", "fused_f64", "fused_f16", "integers_i64", "choice_f32", "softmax", "column_sums", "full_sum",
    "transposed", "with_scalar",
)  # fmt: skip


def gpu_module(program: Program) -> Module:
    _, schedule = gpu_schedule(program, CUDA)
    assert schedule.left == ()
    return schedule.module


def source_of(name: str) -> CudaSource:
    function, types = CHECKED if name == "checked" else PROGRAMS[name]
    return emit_cuda(gpu_module(program_of(function, types)))


@pytest.mark.parametrize("name", [*GOLDEN, "checked"])
@pytest.mark.rung("text")
def test_source(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"cuda/{name}", source_of(name).text)


def test_equal_programs_give_equal_text() -> None:
    assert source_of("softmax").text == source_of("softmax").text


@pytest.mark.parametrize(("arch", "name"), covering(ARCHS, [*PROGRAMS, "checked"], least=22))
@pytest.mark.rung("NVRTC")
def test_nvrtc_compiles_every_program_without_spills_and_within_limits(name: str, arch: str) -> None:
    source = source_of(name)
    compiled = nvrtc.compile_cuda(source.text, arch)
    assert set(compiled.resources) == {kernel.name for kernel in source.kernels}
    for kernel in source.kernels:
        found = compiled.resources[kernel.name]
        assert (found.stack, found.spill_stores, found.spill_loads) == (0, 0, 0)
        assert found.registers * kernel.block <= 65536
        assert found.shared == kernel.shared <= 48 * 1024


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.rung("simulator")
def test_the_text_computes_what_the_reference_does(name: str, rng: np.random.Generator) -> None:
    program, inputs = program_of(*PROGRAMS[name]), inputs_of(name, rng)
    module = gpu_module(program)
    outputs = [outputs_of(module, inputs, order) for order in Order]
    for first, *others, wanted in zip(*outputs, run_reference(program, inputs), strict=True):
        assert all(other.tobytes() == first.tobytes() for other in others), "the order of threads shows in the result"
        close = 2e-2 if wanted.dtype.itemsize == 2 else 2e-5
        np.testing.assert_allclose(
            first.astype(np.float64).reshape(wanted.shape), wanted.astype(np.float64), rtol=close, atol=close
        )


TRANSLATED = [*PROGRAMS][:: 1 if THOROUGH else 2]


@pytest.mark.parametrize("name", TRANSLATED)
@pytest.mark.rung("PTX")
def test_what_nvrtc_made_of_the_text_computes_the_same_bits(name: str, rng: np.random.Generator) -> None:
    module, inputs = gpu_module(program_of(*PROGRAMS[name])), inputs_of(name, rng)
    archs = ARCHS if THOROUGH else [ARCHS[TRANSLATED.index(name) % len(ARCHS)]]
    compiled = [outputs_of(module, inputs, arch=arch) for arch in archs]
    for text, *ptx in zip(outputs_of(module, inputs), *compiled, strict=True):
        assert [array.tobytes() for array in ptx] == [text.tobytes()] * len(archs)


def test_a_checked_gather_takes_the_fault_record() -> None:
    assert Effect.FAULT in program_of(*CHECKED).effects
    assert [kernel.faults for kernel in source_of("checked").kernels] == [True]


def test_no_kernel_returns_or_takes_the_address_of_an_element() -> None:
    for name in PROGRAMS:
        kernels = source_of(name).text.split('extern "C"')[1:]
        assert not any("return" in text or "&" in text.replace(" & ", "") for text in kernels)


def test_the_host_s_part_stands_in_a_comment() -> None:
    function = lambda x: [while_loop(lambda y: reduce_sum(y, axes=(0,)) < 9.0, lambda y: y + 1.0, x)]  # noqa: E731
    passes = tuple(each for each in GPU_PIPELINE if each.name != "loops_to_kernels")
    source = emit_cuda(gpu_schedule(program_of(function, [("float64", (40,))]), CUDA, passes)[1].module)
    assert source.left == ()
    plan = source.text[source.text.index("// main:") :].splitlines()
    assert [line for line in plan if "while" in line] == ["// while {"]
    assert any(line.startswith("//     scalars") and "<<<1, 32>>>(" in line for line in plan)


def every_statement(dtype: DType) -> Module:
    """Exchanged carries, loops both ways, branches with results, masks, and shuffles: into four numbers a thread."""
    given = Buffer("given", dtype, 32, Space.ARGUMENT)
    out = Buffer("out", dtype, 4 * 64, Space.ARGUMENT, written=True)
    b = Builder()
    with b.for_("b", 0, 2, kind=LoopKind.BLOCK) as block, b.for_("t", 0, 32, kind=LoopKind.THREAD) as thread:
        place = address((block.index, 128), (thread.index, 4))
        x = b.load(given, thread.index)
        start = [carry(x), carry(constant(1, dtype))]
        with b.for_("k", thread.index, -3, step=-3, carries=start) as loop:
            loop.yields(b.compute(ScalarOp.ADD, *loop.carries), loop.carries[0])
        even = b.compute(ScalarOp.EQ, b.compute(ScalarOp.IREM, thread.index, 2), 0)
        with b.if_(even) as branch:
            branch.yields(loop.results[0], x)
        with branch.otherwise:
            branch.otherwise.yields(b.compute(ScalarOp.MUL, x, 3), loop.results[1])
        masked = b.load(given, address(thread.index, 1), mask=b.compute(ScalarOp.LT, thread.index, 31), fill=7)
        b.store(out, place, branch.results[0])
        b.store(out, address(place, 1), b.compute(ScalarOp.SUB, branch.results[1], masked))
        b.store(out, address(place, 2), b.shuffle(x, 3, ShuffleKind.DOWN))
        b.store(out, address(place, 3), b.shuffle(masked, 5))
        b.store(out, address(place, 3), 2, mask=even)
    outer = Buffer("given", dtype, 32, Space.INPUT), Buffer("out", dtype, 256, Space.OUTPUT, written=True)
    main = Function("main", outer, Block((Invoke("kernel", tuple(View(buffer) for buffer in outer)),)))
    return Module((Function("kernel", (given, out), b.finish()), main), "main")


@pytest.mark.parametrize("dtype", [I16, U64, F16, F32], ids=short_name)
def test_the_text_of_every_statement_means_what_the_interpreter_says(dtype: DType) -> None:
    module, given = every_statement(dtype), np.arange(1, 33).astype(dtype)
    wanted = np.zeros(256, dtype)
    interpret(module, [given, wanted])
    (got,) = outputs_of(module, [given])
    np.testing.assert_array_equal(got, wanted)


# -- what the schedule must not hand over ----------------------------------------------------------------


def kernel_of(body: Callable[[Builder, Buffer], None], blocks: int = 1, threads: int = 32) -> Module:
    out = Buffer("out", F32, 4, Space.ARGUMENT, written=True)
    b = Builder()
    with b.for_("b", 0, blocks, kind=LoopKind.BLOCK), b.for_("t", 0, threads, kind=LoopKind.THREAD):
        body(b, out)
    result = Buffer("result", F32, 4, Space.OUTPUT, written=True)
    main = Function("main", (result,), Block((Invoke("kernel", (View(result),)),)))
    return Module((Function("kernel", (out,), b.finish()), main), "main")


def test_a_grid_beyond_the_limit_is_refused() -> None:
    with pytest.raises(DeviceError) as caught:
        emit_cuda(kernel_of(lambda b, out: b.store(out, 0, 1.0), blocks=1 << 31))
    assert str(caught.value) == (
        "cuda: kernel needs too many blocks: 2,147,483,648 of at most 2,147,483,647\n  help: split the array"
    )


def test_a_kernel_that_calls_is_a_bug() -> None:
    with pytest.raises(InternalError) as caught:
        emit_cuda(kernel_of(lambda b, out: b.push(0, out, 4)))
    assert str(caught.value) == (
        "cuda: StackPush within a kernel, which the schedule leaves to the host, in function 'kernel'"
    )
