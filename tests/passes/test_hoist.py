from __future__ import annotations

from typing import Any

import numpy as np

from tests.passes.programs import apply, array, body, f64, i32, i64, traced
from tests.passes.structures import along, repeat
from tests.passes.test_dce import ROW, only
from tracer.ir import dtypes
from tracer.passes.dce import dce
from tracer.passes.expand import expand
from tracer.passes.hoist import hoist
from tracer.primitives.arrays.indexing.gather import gather
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.shapes import iota, optimization_barrier
from tracer.primitives.control.effects import HostFunction, callback
from tracer.primitives.control.for_loop import for_program
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.comparison import lt
from tracer.primitives.elementwise.exponential import exp
from tracer.primitives.linalg.solve import solve
from tracer.trace.trace import as_literal


def names(program: Any) -> list[str]:
    return [e.primitive.name for e in program.equations]


def test_work_on_constants_moves_before_the_loop() -> None:
    def f(n: Any, x: Any, k: Any) -> Any:
        cond = lambda k, n, x: lt(n, 4)  # noqa: E731
        return repeat(cond, lambda k, n, x: (add(n, 1), mul(x, exp(k))), [n, x], [k])

    after = apply(hoist, traced(f, i32(), f64(3), f64(3)))
    assert names(after) == ["exp", "while_loop"]
    assert names(only(after, "while_loop").params["body"]) == ["add", "mul"]


def test_what_the_condition_computes_from_constants_moves_too() -> None:
    def f(n: Any, k: Any) -> Any:
        return repeat(lambda k, n: lt(n, mul(k, k)), lambda k, n: (add(n, 1),), [n], [k])

    assert names(apply(hoist, traced(f, i32(), i32()))) == ["mul", "while_loop"]


def test_a_fault_never_moves() -> None:
    def f(c: Any, table: Any, n: Any) -> Any:
        step = lambda table, n, c: (add(c, gather(table, n, ROW, (1, 3))),)  # noqa: E731
        return along(step, [c], [], [table, n], length=3)

    before = traced(f, f64(3), f64(2, 3), i64(1))
    assert hoist(before) is before


def test_a_loop_of_no_rounds_with_a_bad_index_inside_faults_neither_before_nor_after() -> None:
    def f(n: Any, x: Any, table: Any, at: Any) -> Any:
        step = lambda table, at, n, x: (add(n, 1), add(x, gather(table, mul(at, 7), ROW, (1, 3))))  # noqa: E731
        return repeat(lambda table, at, n, x: lt(n, 0), step, [n, x], [table, at])

    before = traced(f, i32(), f64(3), f64(2, 3), i64(1))
    after = hoist(before)
    assert names(after) == ["mul", "while_loop"]
    operands = [np.int32(0), np.ones(3), np.ones((2, 3)), np.array([5])]
    for x, y in zip(run_reference(before, operands), run_reference(after, operands), strict=True):
        assert np.array_equal(x, y)


def test_broadcasts_stay_inside_unless_something_that_moves_needs_them() -> None:
    def f(c: Any, k: Any, m: Any) -> Any:
        def step(k: Any, m: Any, c: Any) -> Any:
            wide = broadcast_in_dim(k, (4, 3), (1,))
            return (add(c, mul(add(wide, c), mul(wide, m))),)

        return along(step, [c], [], [k, m], length=3)

    after = apply(hoist, traced(f, f64(4, 3), f64(3), f64(4, 3)))
    assert names(after) == ["broadcast_in_dim", "mul", "scan"]
    assert names(only(after, "scan").params["body"]) == ["broadcast_in_dim", "add", "mul", "add"]


def test_iotas_barriers_and_calls_into_python_stay() -> None:
    host = HostFunction(lambda x: [x], "seen")

    def step(k: Any, c: Any) -> Any:
        (held,) = optimization_barrier([k])
        (seen,) = callback(host, [k], [f64(3)], ordered=False, vmap_method="sequential")
        return (add(add(c, iota(dtypes.F64, 3)), add(held, seen)),)

    before = traced(lambda c, k: along(step, [c], [], [k], length=3), f64(3), f64(3))
    assert hoist(before) is before


def test_a_loop_that_may_not_end_does_not_move() -> None:
    def step(k: Any, c: Any) -> Any:
        return (add(c, repeat(lambda k: lt(k, 5.0), lambda k: (mul(k, 2.0),), [k])[0]),)

    before = traced(lambda c, k: along(step, [c], [], [k], length=0), f64(), f64())
    assert hoist(before) is before


def test_a_scan_of_constants_moves_out_of_a_loop() -> None:
    def step(k: Any, c: Any) -> Any:
        return (add(c, along(lambda d, x: (add(d, x),), [as_literal(0.0, dtypes.F64)], [k], length=3)[0]),)

    after = apply(hoist, traced(lambda c, k: along(step, [c], [], [k], length=2), f64(), f64(3)))
    assert names(after) == ["scan", "scan"]


def test_factors_of_a_constant_matrix_move_although_pivots_come_with_them() -> None:
    before = traced(lambda c, k: along(lambda k, c: (solve(k, c),), [c], [], [k], length=2), f64(3, 1), f64(3, 3))
    after = apply(hoist, expand(before))
    assert "lu" in names(after)
    assert names(only(after, "scan").params["body"])[-2:] == ["triangular_solve"] * 2


def test_a_scan_that_stacks_more_than_it_reads_moves() -> None:
    def step(k: Any, c: Any) -> Any:
        return (add(c, along(lambda d: (mul(d, 2.0), d), [k], [], length=3)[1]),)

    after = apply(hoist, traced(lambda c, k: along(step, [c], [], [k], length=2), f64(3), f64()))
    assert names(after) == ["scan", "scan"]


def test_work_moves_out_of_two_loops_at_once() -> None:
    def outer(k: Any, c: Any) -> Any:
        return tuple(along(lambda k, c: (add(c, exp(k)),), [c], [], [k], length=2))

    after = apply(hoist, traced(lambda c, k: along(outer, [c], [], [k], length=2), f64(3), f64(3)))
    assert names(after) == ["exp", "scan"]


def test_the_step_of_a_counted_loop_is_no_constant() -> None:
    def f(n: Any, x: Any, k: Any) -> Any:
        step = traced(lambda i, k, x: (add(add(x, mul(i, i)), mul(k, k)),), i64(), i64(), i64(), name="step")
        return for_program(step, [n, k, x], consts=1, reverse=False)

    after = apply(hoist, traced(f, i64(), i64(), i64()))
    assert names(after) == ["mul", "for_loop"]


def test_moved_equations_keep_their_lines() -> None:
    def f(c: Any, k: Any) -> Any:
        return along(lambda k, c: (add(c, exp(k)),), [c], [], [k], length=2)

    before = traced(f, f64(3), f64(3))
    inside = only(only(before, "scan").params["body"], "exp").source
    assert only(hoist(before), "exp").source == inside


def test_an_unread_constant_is_left_to_dce() -> None:
    before = traced(
        lambda c, k: along(lambda k, c: (add(c, exp(k)),), [c], [], [k], length=2), array(dtypes.F64, 3), f64(3)
    )
    assert "consts=1" in body(dce(hoist(before)))
