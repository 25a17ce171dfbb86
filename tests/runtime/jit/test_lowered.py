"""`f.lower(x)`: every stage, its cost and its memory, before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.programs import arange, count_to, double
from tracer import lax
from tracer.errors import ArgumentError, DeviceError
from tracer.ir.loop import Module
from tracer.ir.program import Program
from tracer.passes import pipeline
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.exponential import exp
from tracer.runtime.jit.jit import jit
from tracer.runtime.jit.trace_call import eval_shape, make_program
from tracer.runtime.values.shape_dtype_struct import ShapeDtypeStruct
from tracer.schedule.pipeline import LOOP_PIPELINE


def polynomial(x: Any) -> Any:
    return add(mul(x, x), exp(x))


def test_every_stage_is_shown() -> None:
    lowered = jit(polynomial).lower(ShapeDtypeStruct((4,), "float32"))
    assert isinstance(lowered.program(), Program)
    assert [e.primitive.name for e in lowered.optimized().equations] == ["mul", "exp", "add"]
    assert isinstance(lowered.loops(), Module)
    assert "define i32 @tracer_main(" in lowered.llvm()
    assert "tracer_main" in lowered.asm()
    assert repr(lowered) == "<lowered polynomial(f32[4])>"


def test_stages_lists_the_passes_that_changed_the_program_and_every_loop_pass() -> None:
    lowered = jit(lambda x: add(polynomial(x), polynomial(x))).lower(ShapeDtypeStruct((4,), "float32"))
    stages = lowered.stages()
    assert [stage.name for stage in stages] == ["traced", "cse", "loops", *(step.name for step in LOOP_PIPELINE)]
    assert [*stages.unchanged, "cse"] == sorted(pipeline.names(), key=lambda name: name == "cse")
    assert str(stages).endswith(f"unchanged by {', '.join(stages.unchanged)}")
    assert stages[0].text == str(lowered.program())
    assert stages[1].text == str(lowered.optimized())
    assert stages[-1].text == str(lowered.loops())
    assert str(stages[2]) == f"# loops\n{stages[2].text}"


def test_cost_counts_arithmetic_functions_and_bytes() -> None:
    cost = jit(polynomial).lower(np.zeros(100)).cost()
    assert (cost.flops, cost.total.functions) == (200, 100)
    assert (cost.bytes_read, cost.bytes_written) == (4 * 800 + 800, 3 * 800)
    assert str(cost).splitlines()[0].split() == ["equation", "flops", "functions", "read", "written", "source"]
    assert str(cost).splitlines()[-1].split()[:4] == ["in", "all", "200", "100"]


def test_cost_of_a_loop_says_that_its_rounds_are_unknown() -> None:
    cost = jit(count_to(3.0)).lower(np.float64(0)).cost()
    assert cost.total.unknown_trips
    assert str(cost).endswith("a while_loop is counted as one iteration")


def test_memory_counts_buffers() -> None:
    memory = jit(polynomial).lower(np.zeros(100)).memory()
    assert (memory.arguments, memory.results, memory.constants) == (800, 800, 0)
    assert memory.peak == 1600 + memory.arena
    assert str(memory).splitlines()[0] == "arguments              800 B"


@pytest.mark.parametrize("captured", [False, True])
def test_memory_counts_copies_of_arrays_that_lie_otherwise(captured: bool) -> None:
    plain, turned = np.zeros((10, 10)), np.zeros((10, 10)).T
    for x, copies in ((plain, 0), (turned, 800), (np.zeros(100)[::-1], 800), (plain.astype(">f8"), 800)):
        f = jit(lambda y, x=x: x * y) if captured else jit(lambda x: x * 2.0)
        memory = f.lower(2.0 if captured else x).memory()
        assert memory.copies == copies
        assert memory.peak == memory.arguments + copies + memory.results + memory.arena
        assert ("copies" in str(memory)) == (copies > 0)


def test_a_compiled_function_takes_its_types_alone(way: str) -> None:
    captured = arange(3)
    compiled = jit(lambda x: {"y": add(x, captured)}).lower(ShapeDtypeStruct((3,), "float64")).compile()
    np.testing.assert_array_equal(compiled(np.ones(3))["y"], [1.0, 2.0, 3.0])
    with pytest.raises(ArgumentError) as error:
        compiled(np.ones(4))
    assert str(error.value).splitlines()[1:] == [
        "  compiled for (f64[3])",
        "  got          (f64[4])",
        "  help: jit(f)(...) compiles for every kind of arguments that it meets",
    ]


def test_cuda_shows_kernels() -> None:
    text = jit(polynomial).lower(np.zeros(100, "float32")).cuda(arch="sm_80")
    assert text.startswith("// polynomial for sm_80: 1 kernel, not yet run on a device\n")
    assert "__global__" in text
    with pytest.raises(DeviceError, match=r"^cuda: no architecture 'gfx90a'\n  help: name one such as"):
        jit(polynomial).lower(1.0).cuda(arch="gfx90a")


def test_make_program_puts_captured_arrays_first() -> None:
    captured = arange(3)
    program = make_program(lambda x: add(captured, x))(ShapeDtypeStruct((3,), "float64"))
    assert list(map(str, program.input_types)) == ["f64[3]", "f64[3]"]
    assert program.equations[0].inputs == program.inputs


def test_make_program_takes_static_arguments() -> None:
    program = make_program(lambda x, n: x if n else double(x), static_argnums=1)(1.0, False)
    assert len(program.equations) == 1


def test_eval_shape_gives_the_tree_of_types() -> None:
    shapes = eval_shape(lambda x, y: (double(x), {"y": y}), ShapeDtypeStruct((2,), "int32"), 1.0)
    assert shapes == (ShapeDtypeStruct((2,), "int32"), {"y": ShapeDtypeStruct((), "float64", weak_type=True)})
    assert shapes[0].ndim == 1
    assert shapes[0].size == 2
    assert shapes[0].dtype == np.int32
    assert shapes[1]["y"].weak_type


def test_make_program_takes_batch_axes_and_gives_shapes() -> None:
    program, shape = make_program(lambda x: {"y": lax.psum(x, "i") * 2.0}, axis_env=[("i", 3)], return_shape=True)(1.0)
    assert [equation.primitive.name for equation in program.equations] == ["psum", "mul"]
    assert shape["y"].shape == ()
    with pytest.raises(ArgumentError, match="no batch axis is called 'i'"):
        make_program(lambda x: lax.psum(x, "i"))(1.0)


def test_stages_have_the_names_of_jax() -> None:
    f = jit(lambda x: {"y": double(x)})
    staged = f.trace(ShapeDtypeStruct.like(np.ones(3)))
    assert staged.jaxpr == f.lower(np.ones(3)).program()
    assert staged.out_info == {"y": ShapeDtypeStruct((3,), "float64")}
    assert list(staged.lower().compile()(np.ones(3))["y"]) == [2.0, 2.0, 2.0]
    assert ShapeDtypeStruct.like(ShapeDtypeStruct((), "int32")).dtype == np.int32
    assert ShapeDtypeStruct.like(2.0).weak_type
