"""Nested programs: which results the flagged operands reach, and which results are operands handed on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.grids import each
from tests.passes.programs import f64, i32, traced
from tests.passes.structures import along, branch, repeat
from tracer.ir.primitive import Effect, Zero
from tracer.primitives.base.nested_programs import (
    active_of,
    agreeing,
    fixpoint,
    handed_on,
    linear_carries,
    reached_outputs,
    spread,
)
from tracer.primitives.control.effects import HostFunction, callback
from tracer.primitives.elementwise.arithmetic import add, mul, neg
from tracer.primitives.elementwise.comparison import lt

F, T = False, True


def test_flags_grow_until_a_step_sets_no_more() -> None:
    """Each flag sets its neighbour on the right: the steps are as many as the flags, and one to see that it ends."""
    seen = []

    def step(flags: tuple[bool, ...]) -> tuple[int, list[bool]]:
        seen.append(flags)
        return len(seen), [F, *flags[:-1]]

    assert fixpoint((T, F, F), step) == (3, (T, T, T))
    assert seen == [(T, F, F), (T, T, F), (T, T, T)]


def test_zeros_stand_where_no_value_is() -> None:
    values = spread([1.0], (F, T), [f64(3), f64()])
    assert isinstance(values[0], Zero)
    assert values[1] == 1.0
    assert active_of(values) == (F, T)


def loop(n: Any, a: Any, b: Any) -> list[Any]:
    """b follows a; n counts alone."""
    return repeat(lambda n, a, b: lt(n, 9.0), lambda n, a, b: (add(n, 1.0), neg(a), mul(a, b)), [n, a, b])


REACHED: dict[str, tuple[Callable[..., Any], tuple[bool, ...], tuple[bool, ...]]] = {
    "equations": (lambda a, b, c: (add(a, b), neg(c)), (T, F, F), (T, F)),
    "an operand itself": (lambda a, b, c: (a, c), (T, F, F), (T, F)),
    "a carry from another": (loop, (F, T, F), (F, T, T)),
    "a carry alone": (loop, (F, F, T), (F, F, T)),
    "all carries by the condition": (loop, (T, F, F), (T, T, T)),
    "ys of a scan": (
        lambda a, b, xs: along(lambda a, b, x: (add(a, x), b, mul(b, 2.0)), [a, b], [xs], length=3), (F, F, T),
        (T, F, F),
    ),
}  # fmt: skip


@each("name", REACHED)
def test_results_that_flagged_operands_reach(name: str) -> None:
    function, flags, expected = REACHED[name]
    types = [f64(), f64(), f64(3) if "scan" in name else f64()]
    assert reached_outputs(traced(function, *types), flags) == expected


def test_any_branch_and_the_index_reach_a_result() -> None:
    program = traced(
        lambda n, a, b: branch(n, [lambda a, b: (a, b), lambda a, b: (b, b)], a, b), i32(), f64(), f64()
    )  # fmt: skip
    assert reached_outputs(program, (F, T, F)) == (T, F)
    assert reached_outputs(program, (F, F, T)) == (T, T)
    assert reached_outputs(program, (T, F, F)) == (T, T)


def test_a_call_into_python_reaches_all_of_its_results() -> None:
    host = HostFunction(lambda x: [x, x], "host")
    program = traced(
        lambda x, y: callback(host, [x], [f64(), f64()], ordered=True, vmap_method="sequential"), f64(), f64()
    )  # fmt: skip
    assert Effect.IO in program.effects
    assert reached_outputs(program, (T, F)) == (T, T)
    assert reached_outputs(program, (F, T)) == (F, F)


def test_operands_are_handed_on_through_branches_that_agree_and_by_carries_that_stay() -> None:
    first = traced(lambda a, b: (b, a, neg(a)), f64(), f64())
    second = traced(lambda a, b: (b, b, b), f64(), f64())
    assert handed_on(first) == (1, 0, None)
    assert agreeing([first, second]) == [1, None, None]

    def f(n: Any, a: Any, b: Any) -> list[Any]:
        return repeat(lambda n, a, b: lt(n, a), lambda n, a, b: (add(n, b), a, b), [n, a, b])[::-1]

    assert handed_on(traced(f, f64(), f64(), f64())) == (2, 1, None)


def test_carries_that_change_places_are_not_handed_on() -> None:
    program = traced(lambda a, b: repeat(lt, lambda a, b: (b, a), [a, b]), f64(), f64())
    assert handed_on(program) == (None, None)


def test_a_body_makes_carries_linear() -> None:
    body = traced(lambda c, a, b: (mul(c, b), a), f64(), f64(), f64())
    assert linear_carries(body, (F,), (F, T)) == (T, T)
    assert linear_carries(body, (F,), (F, F)) == (F, F)
    assert linear_carries(body, (T,), (F, F)) == (T, T)
