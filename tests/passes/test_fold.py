from __future__ import annotations

import numpy as np

from tests.passes.programs import apply, body, f64, flag, i32, i64, traced
from tests.passes.structures import along, branch, repeat
from tracer.ir import dtypes
from tracer.ir.program import Program, literal
from tracer.ir.types import KeyType, array_type
from tracer.passes.fold import fold
from tracer.primitives.base.broadcasting import broadcast_in_dim, full
from tracer.primitives.base.shapes import optimization_barrier
from tracer.primitives.elementwise.arithmetic import add, add_p, div_p, mul, mul_p, neg, neg_p
from tracer.primitives.elementwise.comparison import lt, select
from tracer.primitives.elementwise.exponential import exp
from tracer.trace.trace import as_literal, bind


def test_an_equation_of_literals_is_a_literal() -> None:
    def f() -> object:
        x = bind(mul_p, literal(2, dtypes.F32), literal(1.5, dtypes.F32))
        return [x, bind(div_p, literal(1, dtypes.F64), literal(-0.0, dtypes.F64)), bind(neg_p, x)]

    assert body(apply(fold, traced(f))) == "f() -> (f32[], f64[], f32[]) {\n  return 3.0:f32, -inf:f64, -3.0:f32\n}"


def test_integer_division_by_zero_folds_to_the_tabled_result() -> None:
    after = apply(fold, traced(lambda: bind(div_p, literal(7, dtypes.I32), literal(0, dtypes.I32))))
    assert body(after) == "f() -> i32[] {\n  return -1:i32\n}"


def test_an_array_of_one_value_is_read_as_that_value() -> None:
    before = traced(lambda x: mul(x, full((3,), np.float64(2.0))), f64(3))
    assert body(apply(fold, before)).splitlines()[2] == "  %c: f64[3] = mul(%a, 2.0:f64)"


def test_a_choice_by_a_scalar_keeps_an_operand_that_has_the_shape() -> None:
    zeros = lambda: full((3,), np.float64(0.0))  # noqa: E731
    before = traced(lambda p, x: (select(p, x, zeros()), select(p, zeros(), zeros())), flag(), f64(3))
    apply(fold, before)


def test_what_is_broadcast_alike_is_computed_before() -> None:
    def f(x: object, y: object) -> object:
        return add(broadcast_in_dim(x, (4, 3), (1,)), exp(broadcast_in_dim(y, (4, 3), (1,))))

    after = apply(fold, traced(f, f64(3), f64(3)))
    assert [str(e.outputs[0].type) for e in after.equations if e.primitive.name in ("add", "exp")] == ["f64[3]"] * 2
    assert after.equations[-1].primitive.name == "broadcast_in_dim"


def test_what_is_broadcast_in_different_ways_stays() -> None:
    def f(x: object, y: object) -> object:
        return add(broadcast_in_dim(x, (3, 3), (0,)), broadcast_in_dim(y, (3, 3), (1,)))

    before = traced(f, f64(3), f64(3))
    assert apply(fold, before) is before


def test_a_branch_taken_for_certain_is_put_in_line() -> None:
    def f(x: object) -> object:
        return branch(as_literal(7, dtypes.I32), [neg, exp, lambda y: mul(y, 3.0)], x)

    assert body(apply(fold, traced(f, f64(3)))) == (
        "f(%a: f64[3]) -> f64[3] {\n  %b: f64[3] = mul(%a, 3.0:f64)\n  return %b\n}"
    )


def test_equal_branches_need_no_index() -> None:
    after = apply(fold, traced(lambda n, x: branch(n, [exp, exp], x), i32(), f64(3)))
    assert [e.primitive.name for e in after.equations] == ["exp"]


def test_a_loop_that_never_starts_is_its_operands() -> None:
    def f(x: object) -> object:
        return repeat(lambda n, y: lt(n, 0), lambda n, y: (add(n, 1), exp(y)), [as_literal(0, dtypes.I32), x])

    assert body(apply(fold, traced(f, f64(3)))) == "f(%a: f64[3]) -> (i32[], f64[3]) {\n  return 0:i32, %a\n}"


def test_a_loop_that_may_start_stays() -> None:
    before = traced(lambda n: repeat(lambda n: lt(n, 5), lambda n: (add(n, 1),), [n]), i32())
    assert apply(fold, before) is before


def short_scan(length: int) -> Program:
    def f(c: object, x: object, k: object) -> object:
        return along(lambda c, x, k: (add(c, x), mul(c, x), as_literal(2.5), k), [c], [x, k], length=length)

    return traced(f, f64(3), f64(length, 3), KeyType((length, 2)))


def test_a_scan_of_no_steps_gives_empty_arrays() -> None:
    after = apply(fold, short_scan(0))
    assert {e.primitive.name for e in after.equations} == {"broadcast_in_dim", "random_wrap"}


def test_a_scan_of_one_step_is_its_body() -> None:
    after = apply(fold, short_scan(1))
    assert "scan" not in {e.primitive.name for e in after.equations}


def test_longer_scans_stay() -> None:
    before = short_scan(2)
    assert apply(fold, before) is before


def test_a_barrier_on_literals_stays() -> None:
    before = traced(lambda: optimization_barrier([as_literal(1.0)]))
    assert apply(fold, before) is before


def test_folding_keeps_weak_types() -> None:
    weak = array_type(dtypes.F64, (), True)
    after = apply(fold, traced(lambda: bind(add_p, literal(1, dtypes.F64, True), literal(2, dtypes.F64, True))))
    assert after.output_types == (weak,)


def test_folding_inside_loops_reaches_the_equations_there() -> None:
    def f(n: object) -> object:
        limit = lambda n: lt(n, bind(mul_p, literal(2, dtypes.I64), literal(3, dtypes.I64)))  # noqa: E731
        return repeat(limit, lambda n: (add(n, 1),), [n])

    after = apply(fold, traced(f, i64()))
    assert "lt(%c, 6:i64)" in body(after)


def test_bfloat16_folds_with_one_rounding() -> None:
    after = apply(fold, traced(lambda: bind(mul_p, literal(1.1, dtypes.BF16), literal(1.1, dtypes.BF16))))
    assert body(after).splitlines()[1].endswith(":bf16")
