"""Inputs that outputs need: straight, through calls and branches, and through the carries of loops."""

from __future__ import annotations

from typing import Any

from tests.passes.programs import f64, flag, i32, traced
from tests.passes.structures import along, branch, repeat
from tracer.passes.base.input_liveness import Needs
from tracer.passes.base.loops import loop_of
from tracer.primitives.control.effects import check
from tracer.primitives.elementwise.arithmetic import add, mul, neg
from tracer.primitives.elementwise.comparison import lt


def test_an_output_needs_what_its_equations_read() -> None:
    rows = Needs().program(traced(lambda x, y, z: (add(x, y), neg(z), x), f64(), f64(), f64()))
    assert rows.outputs == (0b011, 0b100, 0b001)
    assert rows.always == 0


def test_checks_always_need_their_predicate() -> None:
    def f(x: Any, p: Any) -> Any:
        check(p, "broken")
        return neg(x)

    assert Needs().program(traced(f, f64(), flag())).always == 0b10


def test_an_output_of_branches_needs_the_index_and_what_any_of_them_reads() -> None:
    program = traced(
        lambda n, x, y, z: branch(n, [lambda x, y, z: (x, z), lambda x, y, z: (y, z)], x, y, z),
        i32(), f64(), f64(), f64(),
    )  # fmt: skip
    assert Needs().program(program).outputs == (0b0111, 0b1001)


def test_a_carry_needs_the_carries_that_reach_it_and_what_the_condition_reads() -> None:
    """a takes b, and b takes c, while n is small: all but d, which turns on itself alone."""
    program = traced(
        lambda n, a, b, c, d: repeat(
            lambda n, a, b, c, d: lt(n, 9.0), lambda n, a, b, c, d: (add(n, 1.0), b, c, neg(c), mul(d, d)),
            [n, a, b, c, d],
        ),
        *[f64()] * 5,
    )  # fmt: skip
    needs = Needs()
    assert needs.program(program).outputs == (0b00001, 0b01111, 0b01101, 0b01001, 0b10001)
    loop = loop_of(program.equations[-1])
    assert loop is not None
    assert needs.live_carries(loop, [False, False, True, False, False]) == [True, False, True, True, False]


def test_the_ys_of_a_scan_need_its_slices_and_the_carries_that_they_read() -> None:
    program = traced(
        lambda a, b, x, y: along(lambda a, b, x, y: (add(a, x), b, mul(a, y), neg(y)), [a, b], [x, y], length=3),
        f64(), f64(), f64(3), f64(3),
    )  # fmt: skip
    assert Needs().program(program).outputs == (0b0101, 0b0010, 0b1101, 0b1000)
