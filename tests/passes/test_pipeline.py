from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tracer
from tests.counted_calls import python_calls
from tests.grids import each
from tests.passes.programs import apply, array, body, f64, i32, traced
from tests.passes.structures import along, branch, repeat, through
from tracer import lax
from tracer.errors import InternalError
from tracer.ir import dtypes
from tracer.ir.primitive import Library
from tracer.ir.program import Equation, Program, Source, Var, literal
from tracer.ir.target import CPU, CUDA, cpu, cuda
from tracer.passes.base.rewrite import Pass
from tracer.passes.pipeline import PIPELINE, Repeat, optimize, stages
from tracer.passes.powers import powers
from tracer.primitives.base.reference import run_reference
from tracer.primitives.elementwise.arithmetic import add, add_p, div, mul, mul_p, neg, sub
from tracer.primitives.elementwise.comparison import lt
from tracer.primitives.elementwise.exponential import exp, exp_p
from tracer.primitives.elementwise.powers import pow, square_p
from tracer.primitives.linalg.dot_general import dot_general
from tracer.trace.trace import as_literal


def newton(n: Any, x: Any, unused: Any) -> Any:
    """Steps towards a root of 3, counting to a limit that is carried along, with work that never changes."""

    def step(n: Any, limit: Any, x: Any, dead: Any) -> Any:
        better = through(lambda x: mul(0.5, add(x, div(mul(3.0, 1.0), x))), x)[0]
        return add(n, 1), limit, neg(neg(better)), mul(dead, 2.0)

    found = repeat(lambda n, m, x, d: lt(n, m), step, [as_literal(0, dtypes.I32), n, x, unused])
    return branch(as_literal(1, dtypes.I32), [exp, lambda y: sub(y, 0.0)], found[2])


def test_a_program_becomes_what_a_careful_programmer_would_write(golden: Callable[[str, str], None]) -> None:
    before = traced(newton, i32(), f64(3), f64(3), name="newton")
    after = apply(lambda program: optimize(program, verify=True), before)
    golden("passes/newton", f"{body(before)}\n\n{body(after)}")


def test_every_stage_is_shown_that_changed_the_program() -> None:
    before = traced(newton, i32(), f64(3), f64(3), name="newton")
    found = list(stages(before))
    assert [step.name for step, _ in found[:2]] == ["inline", "dce"]
    assert all(str(after) != str(earlier) for (_, earlier), (_, after) in pairwise(found))
    assert str(found[-1][1]) == str(optimize(before))


def test_a_program_that_no_pass_changes_comes_back_as_it_is() -> None:
    before = traced(exp, f64(3))
    assert optimize(before) is before
    assert list(stages(before)) == []


def test_results_are_remembered_but_not_for_other_lines_or_names() -> None:
    before = traced(lambda x: add(exp(x), exp(x)), f64(3))
    assert optimize(before) is optimize(before)
    moved = tuple(replace(e, source=Source("other.py", 7, "g")) for e in before.equations)
    other = replace(before, equations=moved, name="g")
    assert other == before
    assert {e.source.line for e in optimize(other).equations if e.source} == {7}
    assert optimize(other).name == "g"


def test_a_pass_that_breaks_a_program_is_named() -> None:
    broken = Pass("breaker", lambda program: replace(program, outputs=(Var(f64(3)),)))
    with pytest.raises(InternalError) as caught:
        list(stages(traced(exp, f64(3)), CPU, [broken], verify=True))
    assert "after the pass breaker" in caught.value.__notes__


FLAT = [step for item in PIPELINE for step in (item.passes if isinstance(item, Repeat) else (item,))]


def test_the_passes_that_round_are_named_as_such() -> None:
    rounding = ["powers", "stacked_products", "contract", "block_variances", "block_chains"]
    assert [step.name for step in FLAT if step.rounds] == rounding


def test_the_passes_that_ask_the_target_are_named_as_such() -> None:
    assert [step.name for step in FLAT if step.targeted] == ["expand", "block_variances", "block_chains"]


def test_programs_are_remembered_by_target() -> None:
    before = traced(matmul, array(dtypes.F16, 64, 64), array(dtypes.F16, 64, 64))
    on_cpu, on_gpu = optimize(before, CPU), optimize(before, CUDA)
    assert on_cpu is optimize(before) is optimize(before, CPU)
    assert on_gpu is optimize(before, cuda("sm_90"))
    assert on_cpu.digest != on_gpu.digest


def product_dtypes(program: Program) -> list[str]:
    return [str(e.inputs[0].type) for e in program.equations if e.primitive.lower == Library("dot")]


def matmul(x: Any, y: Any) -> Any:
    sums = dtypes.I32 if x.type.dtype == dtypes.I8 else x.type.dtype
    return dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=sums)


@pytest.mark.parametrize(
    ("dtype", "on_cpu", "on_gpu"),
    [
        (dtypes.F16, ["f32[64,64]"], ["f16[64,64]"]),
        (dtypes.BF16, ["f32[64,64]"], ["bf16[64,64]"]),
        (dtypes.I8, [], ["i8[64,64]"]),
        (dtypes.F32, ["f32[64,64]"], ["f32[64,64]"]),
    ],
)
def test_products_keep_the_dtypes_that_the_target_multiplies(dtype: Any, on_cpu: Any, on_gpu: Any) -> None:
    before = traced(matmul, array(dtype, 64, 64), array(dtype, 64, 64))
    assert product_dtypes(optimize(before, CPU, verify=True)) == on_cpu
    assert product_dtypes(optimize(before, CUDA, verify=True)) == on_gpu
    assert product_dtypes(optimize(before, cpu(bf16=True))) == (["bf16[64,64]"] if dtype == dtypes.BF16 else on_cpu)
    assert "bf16" not in str(product_dtypes(optimize(before, cuda("sm_75"))))


def test_a_convolution_is_a_nest_where_the_target_has_one() -> None:
    def run(x: Any, w: Any) -> Any:
        return lax.conv(x, w, (1, 1), "SAME")

    before = tracer.jit(run).lower(np.zeros((2, 3, 32, 32), "f4"), np.zeros((8, 3, 3, 3), "f4")).program()
    assert [e.primitive.name for e in optimize(before).equations] == ["conv"]
    assert "dot_general" in [e.primitive.name for e in optimize(before, CUDA, verify=True).equations]


@each("power", [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0])
def test_known_powers_are_products_within_two_ulps(power: float) -> None:
    before = traced(lambda x: pow(x, power), f64(64))
    after = powers(before)
    assert "pow" not in {e.primitive.name for e in after.equations}
    assert powers(after) is after
    x = np.concatenate([np.random.default_rng(0).normal(size=60), [np.nan, np.inf, -np.inf, -0.0]])
    (expected,), (got,) = run_reference(before, [x]), run_reference(after, [x])
    np.testing.assert_array_max_ulp(expected[:60], got[:60], 2)
    assert np.array_equal(expected[60:], got[60:], equal_nan=True)


def test_other_powers_stay() -> None:
    before = traced(lambda x: (pow(x, 0.5), pow(x, 5.0)), f64(3))
    assert powers(before) is before


def chain(length: int, start: float = 1.5) -> Program:
    """A long program of distinct equations in a row. start: of its numbers."""
    first = v = Var(f64(8))
    equations = []
    for number in range(length):
        primitive = (add_p, mul_p, exp_p, square_p)[number % 4]
        inputs = (v, literal(start + number, dtypes.F64))[: 2 if number % 4 < 2 else 1]
        out = Var(f64(8))
        equations.append(Equation(primitive, inputs, {}, (out,), Source("demo.py", number, "f")))
        v = out
    return Program((first,), tuple(equations), (v,))


def test_ten_thousand_equations_are_optimised_in_linear_time() -> None:
    def calls(count: int) -> int:
        assert len(optimize(chain(count)).equations) == count
        another = chain(count, start=next(starts))  # which no table of optimised programs knows
        return python_calls(lambda: optimize(another))

    starts = iter((0.25, 0.75))

    assert calls(10_000) < 4.2 * calls(2_500)


def test_ten_thousand_equations_inside_a_loop_do_not_nest_the_interpreter() -> None:
    body_program = chain(5_000)

    def f(x: Any) -> Any:
        from tracer.primitives.control.scan import scan_program

        return scan_program(body_program, [], [x], [], length=3)

    before = traced(f, f64(8))
    assert len(list(stages(before))) > 0


def test_scans_of_scans_are_optimised_inside() -> None:
    def inner(c: Any, x: Any) -> Any:
        return add(c, mul(x, 1.0)), neg(neg(c))

    def outer(c: Any, x: Any) -> Any:
        return tuple(along(inner, [c], [x], length=3))

    before = traced(lambda c, x: along(outer, [c], [x], length=2), f64(), f64(2, 3))
    after = apply(lambda program: optimize(program, verify=True), before)
    assert body(after).count("neg") == body(after).count("mul") == 0
