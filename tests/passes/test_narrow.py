from __future__ import annotations

from typing import Any

from tests.passes.programs import apply, body, f64, i32, i64, traced
from tests.passes.structures import along, branch, repeat
from tests.passes.test_dce import only
from tracer.ir import dtypes
from tracer.passes.narrow import narrow
from tracer.primitives.base.broadcasting import full
from tracer.primitives.base.shapes import iota
from tracer.primitives.control.for_loop import for_program
from tracer.primitives.elementwise.arithmetic import add, mul, neg
from tracer.primitives.elementwise.comparison import lt
from tracer.primitives.elementwise.exponential import exp
from tracer.trace.trace import as_literal


def test_a_carry_that_never_changes_is_a_constant() -> None:
    def f(n: Any, limit: Any, x: Any) -> Any:
        return repeat(lambda n, m, x: lt(n, m), lambda n, m, x: (add(n, 1), m, mul(x, 2.0)), [n, limit, x])

    after = apply(narrow, traced(f, i32(), i32(), f64(3)))
    loop = only(after, "while_loop")
    assert (loop.params["cond_consts"], loop.params["body_consts"], len(loop.outputs)) == (1, 1, 2)
    assert after.outputs[1] is after.inputs[1]


def test_literals_and_arrays_of_one_value_are_written_inside() -> None:
    def f(n: Any, x: Any) -> Any:
        consts = [as_literal(5, dtypes.I32), full((3,), as_literal(2.0)), iota(dtypes.F64, 3)]
        step = lambda m, k, i, n, x: (add(n, 1), add(mul(x, k), i))  # noqa: E731
        return repeat(lambda m, k, i, n, x: lt(n, m), step, [n, x], consts)

    loop = only(apply(narrow, traced(f, i32(), f64(3))), "while_loop")
    assert len(loop.inputs) == 2
    assert [e.primitive.name for e in loop.params["body"].equations] == [
        "broadcast_in_dim",
        "iota",
        "add",
        "mul",
        "add",
    ]
    assert "5:i32" in body(loop.params["cond"])


def test_an_operand_given_twice_is_given_once() -> None:
    def f(n: Any, x: Any) -> Any:
        return branch(n, [add, mul], x, x)

    cond = only(apply(narrow, traced(f, i32(), f64(3))), "cond")
    assert len(cond.inputs) == 2
    assert all(len(set(e.inputs)) == 1 for b in cond.params["branches"] for e in b.equations)


def test_outputs_that_every_branch_agrees_on_go_around_it() -> None:
    def f(n: Any, x: Any, y: Any) -> Any:
        first = lambda x, y: (y, as_literal(1.5), exp(x), x, exp(x))  # noqa: E731
        second = lambda x, y: (y, as_literal(1.5), neg(x), y, neg(x))  # noqa: E731
        return branch(n, [first, second], x, y)

    after = apply(narrow, traced(f, i32(), f64(3), f64(3)))
    assert after.outputs[0] is after.inputs[2]
    assert str(only(after, "cond").outputs[0].type) == "f64[3]"
    assert len(only(after, "cond").outputs) == 3  # of these two come from equal equations, which is for cse to see


def test_slices_that_come_out_as_they_went_in_go_around_a_scan() -> None:
    def f(c: Any, k: Any, x: Any) -> Any:
        return along(lambda k, c, x: (add(c, x), x, k, as_literal(2.5), c, c), [c], [x], [k], length=4)

    after = apply(narrow, traced(f, f64(), f64(2), f64(4)))
    assert len(only(after, "scan").outputs) == 2
    assert after.outputs[1] is after.inputs[2]
    assert after.outputs[4] is after.outputs[5]


def test_slices_of_one_value_are_that_value() -> None:
    def f(c: Any) -> Any:
        xs = [full((4,), as_literal(2.0)), full((4, 3), as_literal(3.0))]
        return along(lambda c, x, y: (add(c, x), mul(y, y)), [c], xs, length=4)

    scan = only(apply(narrow, traced(f, f64())), "scan")
    assert len(scan.inputs) == 1


def test_a_value_passes_through_two_loops() -> None:
    def outer(n: Any, x: Any, k: Any) -> Any:
        inner = lambda m, x, k: (add(m, 1), mul(x, k), k)  # noqa: E731
        found = repeat(lambda m, x, k: lt(m, 3), inner, [as_literal(0, dtypes.I32), x, k])
        return add(n, 1), found[1], found[2]

    before = traced(lambda n, x: repeat(lambda n, x, k: lt(n, 4), outer, [n, x, as_literal(2.0)]), i32(), f64())
    after = apply(narrow, before)
    assert len(only(after, "while_loop").inputs) == 2
    assert "2.0:f64*)" in body(after)


def test_a_counted_loop_loses_what_it_need_not_be_told() -> None:
    def f(n: Any, x: Any, k: Any) -> Any:
        step = traced(lambda i, c, x, k: (add(x, full((3,), c)), k), i64(), f64(), f64(3), f64(2), name="step")
        return for_program(step, [n, as_literal(2.0, dtypes.F64), x, k], consts=1, reverse=False)

    after = apply(narrow, traced(f, i64(), f64(3), f64(2)))
    loop = only(after, "for_loop")
    assert len(loop.outputs) == 1


def test_a_loop_that_needs_everything_is_left_alone() -> None:
    before = traced(lambda n, x: repeat(lambda n, x: lt(n, 4), lambda n, x: (add(n, 1), exp(x)), [n, x]), i32(), f64(3))
    assert narrow(before) is before
