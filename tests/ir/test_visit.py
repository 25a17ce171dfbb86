"""Walks over programs."""

from __future__ import annotations

from tests.ir import toys
from tests.ir.toys import Writer, f32, number
from tracer.ir.visit import equations, substitute, use_counts


def test_equations_of_nested_programs_follow_the_equation_that_holds_them() -> None:
    names = [equation.primitive.name for equation in equations(toys.looping())]
    assert names == ["while_loop", "lt", "reduce_or", "add"]


def test_uses_are_counted_in_equations_and_outputs() -> None:
    w = Writer(f32(3), f32(3))
    x, unused = w.inputs
    y = w(toys.add_p, x, x)
    z = w(toys.add_p, y, number(1.0))
    assert use_counts(w.program(y, z, z)) == {x: 2, unused: 0, y: 2, z: 2}


def test_substitution_returns_the_same_equation_where_nothing_changes() -> None:
    w = Writer(f32(3), f32(3))
    a, b = w.inputs
    w(toys.add_p, a, number(1.0))
    (equation,) = w.equations
    assert substitute(equation, {b: a}) is equation
    changed = substitute(equation, {a: b})
    assert changed.inputs == (b, number(1.0))
    assert changed.outputs == equation.outputs
    assert changed.source == equation.source
