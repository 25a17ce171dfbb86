"""`unroll` of scan and fori_loop: fewer rounds of more steps, the same results, kept by every transform."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH, covering
from tracer.errors import ArgumentError
from tracer.ir.program import Program
from tracer.ir.read import read_program
from tracer.ir.visit import equations
from tracer.primitives.catalogue import BY_NAME

LENGTHS = (0, 1, 2, 5, 6, 7)
UNROLLS = (1, 2, 3, 7, 10, True)


def recurrence(length: int, unroll: int | bool, reverse: bool = False) -> Any:
    """Carries of two kinds, a constant, slices, results of steps, one of them the same for all."""

    def run(w: Any, x: Any, ys: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            n, c = carry
            return (n + 1, tnp.sin(c * w) + y), (c * y, n, tnp.stack([c, y]), 0.5)

        return tracer.lax.scan(step, (0, x), ys, length, reverse=reverse, unroll=unroll)

    return run


def operands(length: int) -> tuple[Any, ...]:
    return tnp.asarray(1.3), tnp.asarray(0.7), tnp.linspace(0.1, 2.0, length)


def leaves(tree: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in tracer.tree.leaves(tree)]


def scans(program: Program) -> list[tuple[int, int]]:
    """The length of every scan, and how many steps a round is to take."""
    found = [e.params for e in equations(program) if e.primitive.name == "scan"]
    return [(params["length"], params.get("unroll", 1)) for params in found]


@pytest.mark.parametrize(("length", "unroll", "reverse"), covering(LENGTHS, UNROLLS, [False, True], least=24))
def test_unrolling_changes_no_result(length: int, unroll: int | bool, reverse: bool) -> None:
    xs = operands(length)
    expected = leaves(recurrence(length, 1, reverse)(*xs))
    for found in (recurrence(length, unroll, reverse)(*xs), tracer.jit(recurrence(length, unroll, reverse))(*xs)):
        for got, wanted in zip(leaves(found), expected, strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(got, wanted, rtol=1e-14)


@pytest.mark.parametrize(
    ("length", "unroll", "rounds"), [(12, 4, [(3, 1)]), (14, 4, [(3, 1)]), (5, 3, []), (9, True, [])]
)
def test_rounds_take_so_many_steps_and_the_rest_follows(
    length: int, unroll: int | bool, rounds: list[tuple[int, int]]
) -> None:
    lowered = tracer.jit(recurrence(length, unroll)).lower(*operands(length))
    assert scans(lowered.optimized()) == rounds
    sines = Counter(e.primitive.name for e in equations(lowered.optimized()))["sin"]
    steps = length if unroll is True else unroll
    assert sines == (steps + length % steps if rounds else length)


def test_every_transform_keeps_it() -> None:
    def loss(w: Any, x: Any, ys: Any) -> Any:
        return recurrence(6, 3)(w, x, ys)[0][1]

    w, *others = operands(6)
    many = tracer.vmap(loss, (0, None, None))
    cases = [(tracer.grad(loss), w), (tracer.grad(tracer.grad(loss)), w), (many, tnp.ones(3))]
    for derived, first in cases:
        program = tracer.make_program(derived)(first, *others)
        assert {unroll for _, unroll in scans(program)} == {3}


@pytest.mark.parametrize(("turn", "unroll"), [*enumerate([2, 5, True])])
def test_derivatives_of_unrolled_scans_are_those_of_scans(turn: int, unroll: int | bool) -> None:
    def loss(unroll: int | bool) -> Any:
        def run(w: Any, x: Any, ys: Any) -> Any:
            (_, last), (products, _, pairs, _) = recurrence(7, unroll)(w, x, ys)
            return last + (products * pairs[:, 1]).sum()

        return run

    xs = operands(7)
    twice = lambda f, n: tracer.grad(lambda *a: tracer.grad(f, n)(*a).sum(), n)  # noqa: E731
    chosen = range(3) if THOROUGH else [turn]  # of the operands, for the second derivative
    for order, numbers in ((tracer.grad, range(3)), (twice, chosen)):
        for number in numbers:
            expected = np.asarray(order(loss(1), number)(*xs))
            found = np.asarray(tracer.jit(order(loss(unroll), number))(*xs))
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_fori_loop_unrolls_where_its_bounds_are_known() -> None:
    def power(x: Any, unroll: int | bool | None) -> Any:
        return tracer.lax.fori_loop(2, 9, lambda i, c: c * x + i, 1.0, unroll=unroll)

    expected = power(1.1, None)
    for unroll in (1, 2, 3, 20, True, False):
        f = tracer.jit(lambda x, unroll=unroll: power(x, unroll))
        np.testing.assert_allclose(np.asarray(f(1.1)), np.asarray(expected), rtol=1e-14)
    assert scans(tracer.jit(lambda x: power(x, True)).lower(1.1).optimized()) == []


def test_effects_keep_their_order() -> None:
    seen: list[int] = []

    def run(n: Any) -> Any:
        def step(c: Any, k: Any) -> Any:
            tracer.debug.callback(lambda v: seen.append(int(v)), k, ordered=True)
            return c + k, None

        return tracer.lax.scan(step, n, tnp.arange(7), unroll=3)[0]

    tracer.jit(run)(0)
    assert seen == list(range(7))


def test_the_text_of_an_unrolled_scan_is_read_back() -> None:
    program = tracer.jit(recurrence(6, 3)).lower(*operands(6)).program()
    assert "unroll=3" in str(program)
    assert read_program(str(program), BY_NAME) == program


@pytest.mark.parametrize("unroll", [-2, 1.5, "all"])
def test_unroll_is_a_number_of_steps(unroll: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        tracer.lax.scan(lambda c, x: (c + x, None), 0.0, tnp.arange(3.0), unroll=unroll)
    assert str(caught.value).splitlines()[1:] == [
        f"  got {unroll!r}", "  help: leave it out for one step an iteration",
    ]  # fmt: skip


def test_unroll_wants_known_bounds() -> None:
    with pytest.raises(ArgumentError, match="needs bounds that are known while tracing"):
        tracer.jit(lambda n: tracer.lax.fori_loop(0, n, lambda i, c: c + i, 0, unroll=2))(3)
