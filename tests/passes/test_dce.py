from __future__ import annotations

from typing import Any

from tests.passes.programs import apply, body, f64, flag, i32, i64, traced
from tests.passes.structures import along, branch, repeat, through
from tracer.ir.program import Program
from tracer.passes.dce import dce
from tracer.primitives.arrays.indexing.dimension_numbers import GatherDimensionNumbers
from tracer.primitives.arrays.indexing.gather import gather
from tracer.primitives.arrays.reductions.reductions import reduce_and
from tracer.primitives.control.effects import HostFunction, callback, check
from tracer.primitives.elementwise.arithmetic import add, mul, neg
from tracer.primitives.elementwise.comparison import gt, lt
from tracer.primitives.elementwise.exponential import exp

ROW = GatherDimensionNumbers((0,), (0,), (0,))


def only(program: Program, name: str) -> Any:
    (found,) = (e for e in program.equations if e.primitive.name == name)
    return found


def test_what_nothing_reads_goes() -> None:
    after = apply(dce, traced(lambda x: [exp(neg(x)), add(x, 1.0)][1], f64(3)))
    assert [e.primitive.name for e in after.equations] == ["add"]


def test_an_unread_fault_goes_and_a_read_one_stays() -> None:
    def f(x: Any, n: Any) -> Any:
        gather(x, n, ROW, (1, 3))
        return gather(x, n, ROW, (1, 3))

    after = dce(traced(f, f64(2, 3), i64(1)))
    assert [e.primitive.name for e in after.equations] == ["gather"]
    assert dce(after) is after


def test_checks_and_ordered_calls_stay() -> None:
    host = HostFunction(lambda x: [x], "seen")

    def f(x: Any, p: Any) -> Any:
        check(p, "broken")
        callback(host, [x], [f64(3)], ordered=True, vmap_method="sequential")
        callback(host, [x], [f64(3)], ordered=False, vmap_method="sequential")
        return x

    after = dce(traced(f, f64(3), flag()))
    assert [e.primitive.name for e in after.equations] == ["check", "callback"]


def test_branches_lose_outputs_and_operands() -> None:
    def f(n: Any, x: Any, y: Any, z: Any) -> Any:
        return branch(n, [lambda x, y, z: (exp(x), neg(y)), lambda x, y, z: (neg(x), exp(z))], x, y, z)[0]

    after = apply(dce, traced(f, i32(), f64(3), f64(3), f64(3)))
    assert len(only(after, "cond").inputs) == 2
    assert "-> f64[3] {" in body(after).splitlines()[2]


def test_calls_lose_outputs_and_inputs() -> None:
    after = apply(dce, traced(lambda x, y: through(lambda x, y: (exp(x), neg(y)), x, y)[1], f64(3), f64(3)))
    assert only(after, "call").inputs == after.inputs[1:]


def test_a_loop_loses_carries_that_only_feed_themselves() -> None:
    def f(n: Any, x: Any, y: Any, c: Any) -> Any:
        step = lambda c, n, x, y: (add(n, 1), mul(x, 2.0), mul(y, c))  # noqa: E731
        return repeat(lambda c, n, x, y: lt(n, 5), step, [n, x, y], [c])[1]

    after = apply(dce, traced(f, i32(), f64(3), f64(3), f64(3)))
    loop = only(after, "while_loop")
    assert (len(loop.inputs), loop.params["cond_consts"], loop.params["body_consts"]) == (2, 0, 0)


def test_a_carry_that_the_condition_reads_through_another_stays() -> None:
    def f(n: Any, m: Any, x: Any) -> Any:
        return repeat(lambda n, m, x: lt(n, 50), lambda n, m, x: (add(n, m), add(m, 1), mul(x, 2.0)), [n, m, x])[2]

    before = traced(f, i64(), i64(), f64(3))
    assert dce(before) is before


def test_a_loop_that_nothing_reads_goes() -> None:
    before = traced(lambda n: [repeat(lambda n: lt(n, 5), lambda n: (add(n, 1),), [n]), n][1], i32())
    assert body(dce(before)) == "f(%a: i32[]) -> i32[] {\n  return %a\n}"


def test_a_loop_with_a_check_keeps_what_the_check_reads() -> None:
    def step(n: Any, m: Any, x: Any) -> Any:
        check(gt(m, 0), "positive")
        return add(n, 1), add(m, 1), mul(x, 2.0)

    before = traced(lambda n, m, x: [repeat(lambda n, m, x: lt(n, 5), step, [n, m, x]), n][1], i32(), i32(), f64(3))
    after = dce(before)
    assert len(only(after, "while_loop").outputs) == 2
    assert dce(after) is after


def test_a_scan_loses_ys_xs_carries_and_constants() -> None:
    def f(c: Any, d: Any, k: Any, x: Any, y: Any) -> Any:
        step = lambda k, c, d, x, y: (add(c, x), mul(d, y), exp(x), mul(k, y))  # noqa: E731
        return along(step, [c, d], [x, y], [k], length=4)[2]

    after = apply(dce, traced(f, f64(), f64(), f64(), f64(4), f64(4)))
    scan = only(after, "scan")
    assert (scan.inputs, scan.params["consts"], scan.params["carries"]) == ((after.inputs[3],), 0, 0)


def test_elimination_sees_through_two_levels_of_loops() -> None:
    def inner(n: Any, a: Any, b: Any) -> Any:
        found = along(lambda a, b: (mul(a, 2.0), add(b, 1.0)), [a, b], [], length=3)
        return (add(n, 1), *found)

    before = traced(lambda n, a, b: repeat(lambda n, a, b: lt(n, 3), inner, [n, a, b])[1], i32(), f64(), f64())
    after = apply(dce, before)
    loop = only(after, "while_loop")
    assert len(loop.outputs) == 2
    assert len(only(loop.params["body"], "scan").outputs) == 1


def test_a_program_in_which_everything_is_read_is_left_alone() -> None:
    def f(n: Any, x: Any) -> Any:
        return repeat(lambda n, x: reduce_and(lt(x, 5.0), (0,)), lambda n, x: (add(n, 1), mul(x, 2.0)), [n, x])

    before = traced(f, i32(), f64(3))
    assert dce(before) is before
