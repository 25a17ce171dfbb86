"""Loops, branches and faults: carried arrays in place, native control flow, and the first fault in program order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.schedule.running import (
    agree,
    compiled,
    counted,
    program,
    run,
    scalar,
    staged,
    vector,
)
from tracer.errors import CheckError, OutOfBoundsError
from tracer.ir.dtypes import F64, I64
from tracer.ir.program import literal
from tracer.ir.types import array_type
from tracer.primitives.arrays.dynamic_slice import dynamic_slice, dynamic_update_slice
from tracer.primitives.arrays.indexing.dimension_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from tracer.primitives.arrays.indexing.gather import gather, scatter_add
from tracer.primitives.arrays.reductions.reductions import reduce_max
from tracer.primitives.arrays.slice_pad_concatenate import slice
from tracer.primitives.arrays.sorting import sort
from tracer.primitives.base.broadcasting import reduce_sum
from tracer.primitives.base.shapes import (
    broadcast_in_dim,
    broadcasted_iota,
    reshape,
    rev,
)
from tracer.primitives.control.cond import cond_branches
from tracer.primitives.control.cumulative import cumsum
from tracer.primitives.control.effects import check
from tracer.primitives.control.scan import scan_program
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import add, mul, sub
from tracer.primitives.elementwise.comparison import lt
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.trigonometric import sin

U32 = np.dtype(np.uint32)
ROWS = GatherDimensionNumbers((), (0,), (0,))  # x[i] for vectors
ROWS_BACK = ScatterDimensionNumbers((), (0,), (0,))
X4, Y4 = np.array([1.5, -2.0, 0.25, 3.0]), np.array([4.0, 0.5, -1.0, 2.0])


# loops


def test_carried_arrays_may_change_places() -> None:
    agree(lambda x, y: counted(lambda i, a, b: [b, a], x, y, trips=3), X4, Y4)
    agree(lambda x, y: counted(lambda i, a, b: [b, add(a, b)], x, y, trips=5), X4, Y4)
    agree(lambda x, y, z: counted(lambda i, a, b, c: [b, c, a], x, y, z, trips=4), X4, Y4, X4 * 3)
    agree(lambda x: counted(lambda i, a, b: [b, a], x, x, trips=3), X4)
    agree(lambda x, y: counted(lambda i, a, b: [b, b], x, y, trips=2), X4, Y4)
    agree(lambda x, y: counted(lambda i, a, b: [rev(b, (0,)), rev(a, (0,))], x, y, trips=3), X4, Y4)


def test_loops_of_no_trips_return_what_they_were_given() -> None:
    agree(lambda x, y: counted(lambda i, a, b: [b, a], x, y, trips=0), X4, Y4)
    agree(lambda x: [*counted(lambda i, a: [add(a, 1.0)], mul(x, 2.0), trips=0), x], X4)


def test_carries_read_elsewhere_are_not_overwritten() -> None:
    agree(lambda x: [*counted(lambda i, a: [add(a, 1.0)], x, trips=3), mul(x, 3.0)], X4)

    def twice(x: Any) -> list[Any]:
        y = mul(x, 2.0)
        first = counted(lambda i, a: [add(a, 1.0)], y, trips=3)[0]
        second = counted(lambda i, a: [mul(a, rev(a, (0,)))], y, trips=2)[0]
        return [first, second, y]

    agree(twice, X4)
    agree(lambda x: counted(lambda c, i, a: [add(a, c)], x, trips=3, consts=[x]), X4)
    agree(lambda x: counted(lambda c, i, a: [add(rev(a, (0,)), c)], mul(x, 2.0), trips=3, consts=[mul(x, 2.0)]), X4)


def test_a_new_carry_stored_over_the_old_comes_after_all_reads() -> None:
    def step(i: Any, a: Any, b: Any, s: Any) -> list[Any]:
        return [broadcast_in_dim(sin(s), (4,), ()), mul(a, 2.0), add(s, reduce_sum(mul(a, b), (0,)))]

    agree(lambda x, y, s: counted(step, x, y, s, trips=3), X4, Y4, 0.5)
    agree(lambda x, y, s: counted(lambda i, a, b, s: [add(a, b), sub(a, b), s], x, y, s, trips=3), X4, Y4, 0.5)
    agree(lambda x, y, s: counted(lambda i, a, b, s: [add(a, b), rev(a, (0,)), s], x, y, s, trips=3), X4, Y4, 0.5)


def test_a_carry_taken_over_by_an_update_stays_whole_while_it_is_read() -> None:
    def step(i: Any, a: Any, s: Any) -> list[Any]:
        v = dynamic_update_slice(a, reshape(s, (1,)), [i])
        fresh = broadcast_in_dim(sin(s), (4,), ())
        return [fresh, add(s, reduce_sum(mul(rev(v, (0,)), X4_LITERALS(v)), (0,)))]

    def later(i: Any, a: Any, s: Any) -> list[Any]:
        v = dynamic_update_slice(a, reshape(s, (1,)), [i])
        fresh = broadcast_in_dim(sin(s), (4,), ())
        return [fresh, add(s, reduce_sum(cumsum(v, 0), (0,)))]

    agree(lambda x, s: counted(step, x, s, trips=3), X4, 0.5)
    agree(lambda x, s: counted(later, x, s, trips=3), X4, 0.5)


def X4_LITERALS(v: Any) -> Any:  # noqa: N802  # weights that differ by position
    return convert_element_type(broadcasted_iota(I64, v.type.shape, 0), np.float64)


def test_updates_in_loops_write_in_place() -> None:
    def update(i: Any, a: Any) -> list[Any]:
        here = dynamic_slice(a, [i], (1,))
        return [dynamic_update_slice(a, mul(here, 10.0), [i])]

    def accumulate(i: Any, a: Any) -> list[Any]:
        where = broadcast_in_dim(i, (2, 1), ())
        return [scatter_add(a, where, slice(a, (0,), (2,)), ROWS_BACK)]

    for step in (update, accumulate):
        agree(lambda x, step=step: counted(step, x, trips=4), X4)
        agree(lambda x, step=step: [*counted(step, x, trips=4), x], X4)
    scheduled, _ = compiled(staged(lambda x: counted(update, x, trips=4), [X4]))
    assert scheduled.module.arena <= 64  # one register's worth: no second copy of the array


def test_loops_nest_and_hold_branches() -> None:
    def inner(i: Any, x: Any, n: Any) -> list[Any]:
        branches = (
            program(lambda x, n: [add(x, 1.0), n], vector(4), scalar()),
            program(lambda x, n: [rev(x, (0,)), add(n, 1.0)], vector(4), scalar()),
            program(lambda x, n: [counted(lambda j, y: [mul(y, 0.5)], x, trips=2)[0], reduce_sum(x, (0,))],
                    vector(4), scalar()),
        )  # fmt: skip
        return cond_branches(convert_element_type(i, np.int32), branches, x, n)

    def outer(i: Any, x: Any, n: Any) -> list[Any]:
        y, m = counted(inner, x, n, trips=4)
        return [sub(y, x), add(m, n)]

    agree(lambda x, n: counted(outer, x, n, trips=3), X4, 0.25)


def test_a_while_loop_stops_when_its_arrays_say_so() -> None:
    types = [vector(4), scalar(I64)]
    test = program(lambda x, n: lt(reduce_max(x, (0,)), 100.0), *types)
    body = program(lambda x, n: [add(x, mul(x, x)), add(n, 1)], *types)
    agree(lambda x: while_program(test, body, [], [], [x, literal(0, I64)]), X4)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_scans_stack_arrays_and_scalars(reverse: bool, length: int, rng: np.random.Generator) -> None:
    def step(c: Any, carry: Any, total: Any, row: Any, s: Any) -> list[Any]:
        new = add(mul(carry, c), row)
        return [rev(new, (0,)), add(total, s), new, mul(s, total), carry, row, literal(3, I64)]

    body = program(step, vector(4), vector(4), scalar(), vector(4), scalar())

    def function(c: Any, carry: Any, total: Any, rows: Any, ss: Any) -> Any:
        return scan_program(body, [c], [carry, total], [rows, ss], length=length, reverse=reverse)

    agree(function, X4, Y4, 0.5, rng.standard_normal((length, 4)), rng.standard_normal(length))


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 7])
def test_branches_return_arrays_and_scalars(index: int) -> None:
    branches = (
        program(lambda x, y: [x, add(x, y), literal(1.0, F64)], vector(4), vector(4)),
        program(lambda x, y: [y, y, reduce_sum(x, (0,))], vector(4), vector(4)),
        program(lambda x, y: [mul(x, 2.0), sort(x, 0), reduce_sum(mul(x, y), (0,))], vector(4), vector(4)),
    )
    agree(lambda i, x, y: cond_branches(i, branches, x, y), np.int32(index), X4, Y4)
    agree(lambda i, x, y: [*cond_branches(i, branches, mul(x, 2.0), y), x], np.int32(index), X4, Y4)


def test_branches_change_arrays_in_place() -> None:
    def change(i: Any, a: Any) -> list[Any]:
        return [
            scatter_add(a, broadcast_in_dim(i, (1, 1), ()), broadcast_in_dim(literal(5.0, F64), (1,), ()), ROWS_BACK)
        ]

    def read_later(i: Any, a: Any) -> list[Any]:
        return [mul(rev(a, (0,)), change(i, a)[0])]

    def step(branches: Any) -> Any:
        return lambda i, a: cond_branches(convert_element_type(lt(i, 2), np.int32), branches, i, a)

    keep, changed, other = (program(f, scalar(I64), vector(4)) for f in (lambda i, a: [a], change, read_later))
    for branches in ((keep, changed), (changed, changed, keep), (changed, other), (keep, keep)):
        agree(lambda x, branches=branches: counted(step(branches), x, trips=4), X4)
        agree(lambda x, branches=branches: [*counted(step(branches), x, trips=4), x], X4)
    scheduled, _ = compiled(staged(lambda x: counted(step((keep, changed)), x, trips=4), [X4]))
    assert scheduled.module.arena <= 64  # one register's worth: no second copy of the array


# faults


def test_the_first_fault_of_a_loop_is_reported() -> None:
    def step(i: Any, x: Any) -> list[Any]:
        return [add(x, gather(x, broadcast_in_dim(i, (4, 1), ()), ROWS, (1,)))]

    with pytest.raises(OutOfBoundsError, match=r"index 4 .* axis 0 .* 4"):
        run(staged(lambda x: counted(step, x, trips=9), [X4]), [X4])
    agree(lambda x: counted(step, x, trips=4), X4)


def test_checks_end_the_call_they_fail_in() -> None:
    def step(i: Any, s: Any) -> list[Any]:
        check(lt(s, 5.0), "s grows too large")
        return [add(s, 1.0)]

    agree(lambda s: counted(step, s, trips=4), 0.5)
    with pytest.raises(CheckError, match="s grows too large"):
        run(staged(lambda s: counted(step, s, trips=400), [np.asarray(0.5)]), [np.asarray(0.5)])


def test_a_branch_not_taken_does_not_fault() -> None:
    bad = program(lambda x, i: gather(x, i, ROWS, (1,)), vector(4), array_type(I64, (1, 1)))
    good = program(lambda x, i: slice(x, (0,), (1,)), vector(4), array_type(I64, (1, 1)))
    i = np.array([[9]])
    agree(lambda x, i: cond_branches(literal(1, np.dtype("int32")), (bad, good), x, i), X4, i)
    with pytest.raises(OutOfBoundsError):
        run(staged(lambda x, i: cond_branches(literal(0, np.dtype("int32")), (bad, good), x, i), [X4, i]), [X4, i])


def test_equal_operands_that_a_branch_can_make_itself() -> None:
    branches = tuple(program(function, vector(4), vector(4)) for function in (add, sub))

    def function(i: Any, x: Any) -> list[Any]:
        counters = convert_element_type(broadcasted_iota(I64, (4,), 0), np.float64)
        ones = broadcast_in_dim(literal(1.0, F64), (4,), ())
        return [*cond_branches(i, branches, ones, ones), *cond_branches(i, branches, counters, counters), x]

    agree(function, np.int32(0), X4)
