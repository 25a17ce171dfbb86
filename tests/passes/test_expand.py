from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.grids import each
from tests.passes.programs import array, assert_computes_the_same, f32, f64, i32, i64, specials, traced
from tests.passes.structures import repeat, through
from tests.passes.test_hoist import names
from tests.schedule.running import call, compiled
from tracer.ir import dtypes
from tracer.ir.check import check_program
from tracer.ir.primitive import ArgReduce, Composite, Library
from tracer.ir.program import Program
from tracer.ir.target import CPU
from tracer.ir.types import Type, array_type
from tracer.ir.visit import equations
from tracer.passes.expand import expand
from tracer.passes.expansions.canonical_dot import canonical_dot
from tracer.passes.inline import inline
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.reductions.reductions import argmax, argmin
from tracer.primitives.arrays.slice_pad_concatenate import split
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.shapes import reshape
from tracer.primitives.elementwise.arithmetic import add, clamp, mul
from tracer.primitives.elementwise.comparison import lt
from tracer.primitives.elementwise.exponential import exp
from tracer.primitives.elementwise.powers import integer_pow, square
from tracer.primitives.linalg.dot_general import dot_general


def expanded(before: Program) -> Program:
    after = check_program(expand(before))
    assert expand(after) is after
    assert not any(isinstance(e.primitive.lower, Composite | ArgReduce) for e in equations(after))
    return after


def test_composites_are_written_in_others_and_keep_the_users_line() -> None:
    before = traced(lambda x: (square(x), clamp(0.0, x, 1.0), *split(x, (2, 11))), f64(13))
    after = expanded(before)
    assert names(after) == ["mul", "max", "min", "slice", "slice"]
    assert {e.source for e in after.equations} == {e.source for e in before.equations}
    assert_computes_the_same(before, after)


def test_expansions_keep_weak_types_and_short_floats() -> None:
    weak = array_type(dtypes.F64, (13,), True)
    before = traced(lambda x, y: (square(x), integer_pow(x, 3), integer_pow(y, -2)), weak, array(dtypes.BF16, 13))
    assert expanded(before).output_types == before.output_types


def test_expansions_inside_a_loop_keep_the_types_of_its_carries() -> None:
    weak = array_type(dtypes.F64, (), True)
    before = traced(
        lambda n, x: repeat(lambda n, x: lt(n, 2), lambda n, x: (add(n, 1), square(x)), [n, x]), i32(), weak
    )
    assert_computes_the_same(before, expanded(before))


@each("dtype", [dtypes.F64, dtypes.F32, dtypes.I32, dtypes.U32, dtypes.BOOL, dtypes.BF16])
def test_the_place_of_an_extreme_is_the_first_and_nan_counts(dtype: Any) -> None:
    types = (array(dtype, 4, 5), array(dtype, 7))
    before = traced(lambda x, y: (argmax(x, 0), argmin(x, 1), argmax(y, 0, dtypes.I32)), *types)
    assert_computes_the_same(before, expanded(before))


@pytest.mark.parametrize("length", [32768, 32769, 40000, 40959, 100_000])
def test_the_place_of_an_extreme_in_a_long_vector_is_sought_in_one_block(length: int, rng: np.random.Generator) -> None:
    before = traced(lambda x: (argmax(x, 0), argmin(reshape(x, (length,)), 0, dtypes.I32)), f64(length))
    after = optimize(before)
    reduced = [e for e in equations(after) if e.primitive.name == "reduce_min" and e.inputs[0].type.shape == (length,)]
    assert not reduced
    scheduled, runnable = compiled(before)
    calm = rng.standard_normal(length)
    for places, value in (
        ((), 0.0), ((length - 1,), 9.0), ((0, 5), -9.0), ((8191, 8192), 9.0), ((length - 2, length - 1), -9.0),
        ((32767, 20000), np.nan), ((length - 1,), np.nan), ((3, length - 1), -np.inf),
    ):  # fmt: skip
        x = calm.copy()
        x[list(places)] = value
        expected = [np.argmax(x), np.argmin(x)]
        assert [int(i) for i in run_reference(after, [x])] == expected
        assert [int(i) for i in call(scheduled, runnable, before, [x])] == expected
    same = np.full(length, -0.0)
    same[7::2] = 0.0
    assert [int(i) for i in call(scheduled, runnable, before, [same])] == [0, 0]


@pytest.mark.parametrize(("length", "joined"), [(1_000_000, 0), (100_003, 2)])
def test_blocks_that_divide_a_long_vector_leave_no_rest(length: int, joined: int) -> None:
    """Two searches, and joins of the last block where there is one."""
    after = optimize(traced(lambda x: (argmax(x, 0), argmin(x, 0)), f64(length)))
    assert sum(e.primitive.name == "concatenate" for e in equations(after)) == joined


def test_the_place_of_an_extreme_of_what_is_computed_reads_nothing_from_memory_twice() -> None:
    after = optimize(traced(lambda x: argmax(exp(x), 0), f64(100_000)))
    assert not any(e.primitive.name == "dynamic_slice" for e in equations(after))


def test_equal_expansions_on_other_lines_are_told_apart_by_their_lines() -> None:
    def f(x: Any) -> Any:
        y = square(x)
        return square(y)

    before = traced(f, f64(3))
    assert [e.source for e in expanded(before).equations] == [e.source for e in before.equations]


def test_calls_are_put_in_line_wherever_they_are() -> None:
    def step(n: Any, x: Any) -> Any:
        return add(n, 1), through(lambda x: exp(mul(x, 2.0)), x, inline=False)[0]

    before = traced(lambda n, x: repeat(lambda n, x: lt(n, 2), step, [n, x]), i32(), f64(3))
    after = expanded(before)
    assert "call" not in {e.primitive.name for e in equations(after)}
    assert_computes_the_same(before, after)


# inline


def test_equations_put_in_line_keep_the_lines_of_their_function() -> None:
    def callee(x: Any) -> Any:
        return exp(x)

    before = traced(lambda x: through(callee, x), f64(3))
    (inner,) = before.equations[0].params["program"].equations
    assert inner.source != before.equations[0].source
    assert [e.source for e in inline(before).equations] == [inner.source]


def test_a_program_called_once_or_small_is_put_in_line() -> None:
    after = inline(traced(lambda x: through(exp, through(exp, x)[0])[0], f64(3)))
    assert names(after) == ["exp", "exp"]
    assert inline(after) is after


def test_a_big_program_called_several_times_stays_a_call() -> None:
    def big(x: Any) -> Any:
        for _ in range(300):
            x = mul(x, 1.5)
        return x

    callee = traced(big, f64(3), name="big")

    def f(x: Any) -> Any:
        from tracer.primitives.control.calls import call

        return call(callee, call(callee, x)[0])

    before = traced(f, f64(3))
    assert inline(before) is before
    outer = traced(lambda x: through(f, x)[0], f64(3))
    assert names(inline(outer)) == ["call", "call"]
    assert len(expand(outer).equations) == 600


def test_a_call_that_must_not_be_put_in_line_stays_until_the_end() -> None:
    before = traced(lambda x: through(exp, x, inline=False), f64(3))
    assert inline(before) is before


# products

MATRIX = (((1,), (0,)), ((), ()))
FORMS = {
    "matrix by matrix": ((2, 3), (3, 4), MATRIX),
    "vector by vector": ((3,), (3,), (((0,), (0,)), ((), ()))),
    "vector by matrix": ((3,), (3, 2), (((0,), (0,)), ((), ()))),
    "first axes": ((3, 2), (3, 4), (((0,), (0,)), ((), ()))),
    "last axes": ((2, 3), (4, 3), (((1,), (1,)), ((), ()))),
    "outer": ((2,), (3,), (((), ()), ((), ()))),
    "two axes, crossed": ((2, 3, 4), (4, 5, 3), (((1, 2), (2, 0)), ((), ()))),
    "one batch axis": ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,)))),
    "batch axes elsewhere": ((2, 5, 3, 2), (3, 2, 4, 5), (((2,), (0,)), ((1, 3), (3, 1)))),
    "nothing to sum": ((2, 0), (0, 3), MATRIX),
    "nothing at all": ((0, 3), (3, 2), MATRIX),
    "scalars": ((), (), (((), ()), ((), ()))),
}
DTYPES = (dtypes.F64, dtypes.F32, dtypes.BF16, dtypes.I32, dtypes.U8, dtypes.BOOL, dtypes.C64)


def small(type: Type, seed: int) -> Any:
    values = np.random.default_rng(seed).integers(-4, 5, type.shape)
    return values.astype(type.dtype)  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_products_are_brought_to_the_form_of_blas(form: str, dtype: Any) -> None:
    left, right, numbers = FORMS[form]
    before = traced(lambda x, y: dot_general(x, y, numbers), array(dtype, *left), array(dtype, *right))
    after = expanded(before)
    for equation in after.equations:
        if equation.primitive.lower == Library("dot"):
            assert canonical_dot(equation, CPU) is None
    if 0 in (*left, *right):
        assert "dot_general" not in names(after)
    operands = [small(t, n) for n, t in enumerate(before.input_types)]
    (x,), (y,) = run_reference(before, operands), run_reference(after, operands)
    assert x.dtype == y.dtype
    assert np.array_equal(x, y)  # small integers: every order of summation is exact


@pytest.mark.parametrize(
    ("operand", "result"),
    [(dtypes.BF16, dtypes.F32), (dtypes.F64, dtypes.F32), (dtypes.I8, dtypes.I32), (dtypes.I32, dtypes.F32)],
)
def test_products_accumulate_in_the_wider_dtype_and_round_once(operand: Any, result: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return dot_general(x, y, MATRIX, preferred_element_type=result)

    before = traced(f, array(operand, 2, 3), array(operand, 3, 4))
    operands = [small(t, n) for n, t in enumerate(before.input_types)]
    (x,), (y,) = run_reference(before, operands), run_reference(expanded(before), operands)
    assert x.dtype == y.dtype == result
    assert np.array_equal(x, y)


def test_a_product_in_the_form_of_blas_is_left_alone() -> None:
    before = traced(lambda x, y: dot_general(x, y, MATRIX), f32(2, 3), f32(3, 4))
    assert expand(before) is before


@pytest.mark.parametrize("shapes", [((5, 4), (4,)), ((4,), (4, 5)), ((1, 4), (4, 5)), ((4,), (4,)), ((5, 4), (4, 1))])
def test_real_products_with_vectors_are_loops_and_complex_ones_are_not(shapes: Any) -> None:
    numbers = (((len(shapes[0]) - 1,), (0,)), ((), ()))
    for dtype, ours in ((dtypes.F32, True), (dtypes.F64, True), (dtypes.C64, False)):
        before = traced(lambda x, y: dot_general(x, y, numbers), *(array(dtype, *shape) for shape in shapes))
        assert ("dot_general" not in names(expanded(before))) is ours


def test_integer_products_wrap() -> None:
    before = traced(lambda x, y: dot_general(x, y, MATRIX), i64(2, 4), i64(4, 3))
    operands = [specials(t, n) for n, t in enumerate(before.input_types)]
    assert np.array_equal(run_reference(before, operands)[0], run_reference(expanded(before), operands)[0])
