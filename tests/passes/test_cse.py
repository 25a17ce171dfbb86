from __future__ import annotations

from typing import Any

from tests.passes.programs import apply, c128, f64, flag, i32, i64, traced
from tests.passes.structures import branch
from tests.passes.test_dce import ROW
from tests.passes.test_hoist import names
from tracer.ir.program import Literal
from tracer.passes.cse import cse
from tracer.primitives.arrays.indexing.gather import gather
from tracer.primitives.base.shapes import optimization_barrier
from tracer.primitives.control.effects import HostFunction, callback, check
from tracer.primitives.elementwise.arithmetic import add, mul, sub
from tracer.primitives.elementwise.comparison import lt
from tracer.primitives.elementwise.exponential import exp


def test_equal_equations_are_one() -> None:
    assert names(apply(cse, traced(lambda x: add(exp(x), exp(x)), f64(3)))) == ["exp", "add"]


def test_operands_of_commutative_primitives_may_change_places() -> None:
    def f(x: Any, y: Any) -> Any:
        return add(x, y), add(y, x), sub(x, y), sub(y, x), mul(x, 2.0), mul(2.0, x)

    assert names(apply(cse, traced(f, f64(13), f64(13)))) == ["add", "sub", "sub", "mul"]


def test_complex_products_may_not() -> None:
    assert len(apply(cse, traced(lambda x, y: (mul(x, y), mul(y, x)), c128(9), c128(9))).equations) == 2


def test_zeros_of_different_sign_are_different_operands() -> None:
    before = traced(lambda x: (add(x, 0.0), add(x, -0.0)), f64(13))
    assert apply(cse, before) is before


def test_branches_that_are_written_alike_are_equal() -> None:
    def f(n: Any, x: Any) -> Any:
        return [branch(n, [exp, lambda y: mul(y, 2.0)], x)[0] for _ in range(2)]

    assert names(apply(cse, traced(f, i32(), f64(3)))) == ["cond"]


def test_equal_equations_inside_a_branch_are_one() -> None:
    def f(n: Any, x: Any) -> Any:
        return branch(n, [lambda y: add(exp(y), exp(y)), lambda y: mul(y, 2.0)], x)

    (cond,) = apply(cse, traced(f, i32(), f64(3))).equations
    assert names(cond.params["branches"][0]) == ["exp", "add"]


def test_of_equal_faults_the_first_stays() -> None:
    after = cse(traced(lambda x, n: add(gather(x, n, ROW, (1, 3)), gather(x, n, ROW, (1, 3))), f64(2, 3), i64(1)))
    assert names(after) == ["gather", "add"]


def test_checks_calls_into_python_and_barriers_are_not_merged() -> None:
    host = HostFunction(lambda x: [x], "seen")

    def f(x: Any, p: Any) -> Any:
        for _ in range(2):
            check(p, "broken")
            callback(host, [x], [f64(3)], ordered=False, vmap_method="sequential")
        return optimization_barrier([x]) + optimization_barrier([x])

    before = traced(f, f64(3), flag())
    unchanged = [e.primitive.name for e in cse(before).equations]
    assert unchanged.count("check") == unchanged.count("callback") == unchanged.count("optimization_barrier") == 2


def test_a_chain_of_equal_equations_collapses_in_one_walk() -> None:
    def f(x: Any, y: Any) -> Any:
        a = b = x
        for _ in range(20):
            a, b = mul(a, y), mul(y, b)
        return a, b, lt(a, b)

    after = apply(cse, traced(f, f64(3), f64(3)))
    assert len(after.equations) == 21
    assert after.outputs[0] is after.outputs[1]
    assert not any(isinstance(a, Literal) for a in after.outputs)


def test_nested_programs_are_digested_where_all_else_is_equal() -> None:
    def f(n: Any, x: Any, y: Any) -> Any:
        return [branch(n, [exp, lambda v: mul(v, 2.0)], operand)[0] for operand in (x, y, x)]

    before = traced(f, i32(), f64(3), f64(3))
    assert names(cse(before)) == ["cond", "cond"]
    digested = [[("digest" in vars(program)) for _, program in e.nested()] for e in before.equations]
    assert digested == [[True, True], [False, False], [True, True]]
