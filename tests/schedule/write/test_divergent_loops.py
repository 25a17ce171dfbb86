"""Loops over lanes that are apart: a nest with a loop a lane, the same bits at every width and for any threads."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.codegen.llvm.llvm_programs import WIDTHS, executable
from tests.schedule.elements.divergent.lanes import (
    TABLE,
    axis,
    bits,
    entry_loops,
    expected,
    has_arrays,
    nests_of_lanes,
    traced,
)
from tests.schedule.running import call, fresh_outputs, interpreted, shared
from tests.targets import TINY
from tracer import lax, vmap
from tracer.codegen.status import Status
from tracer.errors import OutOfBoundsError
from tracer.ir.loop import Store
from tracer.ir.loop.check import check_module
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Program
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference
from tracer.schedule.pipeline import schedule
from tracer.settings import config


def escape(re: Any, im: Any) -> Any:
    """How often z² + c is taken before it leaves a disc: ints, floats and bools."""

    def step(s: Any) -> Any:
        n, x, y = s
        return n + 1, x * x - y * y + re, 2 * x * y + im

    return lax.while_loop(lambda s: (s[0] < 50) & (s[1] * s[1] + s[2] * s[2] <= 4), step, (0, re, im))


def root(a: Any) -> Any:
    """Newton's method, from a."""
    return lax.while_loop(lambda s: tnp.abs(s * s - a) > 1e-6 * a, lambda s: 0.5 * (s + a / s), a)


def collatz(n: Any) -> Any:
    """A loop in a loop: steps until 1, halved as often as it goes each time."""

    def odd_part(n: Any) -> Any:
        return lax.while_loop(lambda n: n % 2 == 0, lambda n: n // 2, n)

    return lax.while_loop(lambda s: s[0] > 1, lambda s: (odd_part(3 * s[0] + 1), s[1] + 1), (odd_part(n), 0))


def smoothed(x: Any, k: Any) -> Any:
    """Loops within whose counts all lanes share: one known, one given."""

    def step(s: Any) -> Any:
        n, v = s
        v = lax.fori_loop(0, 3, lambda i, v: 0.5 * v + n, v)
        return n + 1, lax.fori_loop(0, k, lambda i, v: v + 0.25 * i, v)

    return lax.while_loop(lambda s: s[1] < 9.0, step, (0, x))


def looked_up(x: Any, table: Any) -> Any:
    """Reads an array that all lanes share, at places of their own, checked."""
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1 + s[0] % 2, s[1] + table[s[0]]), (x, 0.0))


def orbit(z: Any) -> Any:
    """Carries of two scalars each."""
    return lax.while_loop(lambda z: tnp.abs(z.real) + tnp.abs(z.imag) < 9.0, lambda z: z * (0.5 + 1.5j), z)


def masked(re: Any, im: Any) -> Any:
    """The same by hand: all lanes go on together, and a mask says which of them move."""

    def step(s: Any) -> Any:
        n, x, y, count = s
        inside = x * x + y * y <= 4
        moved = tnp.where(inside, x * x - y * y + re, x), tnp.where(inside, 2 * x * y + im, y)
        return n + 1, *moved, count + inside

    return lax.while_loop(lambda s: s[0] < 50, step, (0, re, im, tnp.zeros(re.shape, "int64")))[3]


def counted(x: Any) -> Any:
    """A fixed number of rounds, over carries that all lanes share as well, which are returned."""

    def step(i: Any, s: Any) -> Any:
        v, t, scale = s
        return 0.5 * v + t * i, 0.9 * t, scale * 1.5

    return lax.fori_loop(0, 11, step, (2.0 * x, 1.0, 1.0))


def for_given_rounds(x: Any, n: Any, table: Any) -> Any:
    """As often as is asked for; each lane reads a table at a place of its own."""
    places = x.astype("int64") % 5
    return lax.fori_loop(0, n, lambda i, v: 0.5 * v + table.at[places].get(mode="clip") + 0.1 * i, x)


CASES: dict[str, tuple[Callable[..., Any], Sequence[Any]]] = {
    "escape": (vmap(escape), [axis(37), axis(37, -1, 1)]),
    "escape in two axes": (vmap(vmap(escape, (None, 0)), (0, None)), [axis(9), axis(13, -1, 1)]),
    "escape in short rows": (vmap(vmap(escape)), [axis(60).reshape(20, 3), axis(60, -1, 1).reshape(20, 3)]),
    "escape in f32": (vmap(escape), [axis(70).astype(np.float32), axis(70, -1, 1).astype(np.float32)]),
    "two lanes": (vmap(escape), [axis(2), axis(2)]),
    "newton": (vmap(root), [axis(100, 1, 50)]),
    "collatz": (vmap(collatz), [np.arange(1, 60)]),
    "loops within": (vmap(smoothed, (0, None)), [axis(21), np.array(4)]),
    "masked by hand": (masked, [axis(60).reshape(4, 15), axis(60, -1, 1).reshape(4, 15)]),
    "counted": (counted, [axis(43)]),
    "counted in parts": (counted, [axis(14) * (1 + 2j)]),
    "for given rounds": (for_given_rounds, [axis(43, 0, 9), np.array(7), TABLE]),
    "for no round": (for_given_rounds, [axis(43, 0, 9), np.array(0), TABLE]),
    "gathers": (vmap(looked_up, (0, None)), [np.arange(-5, 9) % 7, TABLE]),
    "gathers in two axes": (vmap(vmap(looked_up, (0, None)), (0, None)), [np.arange(12).reshape(4, 3) % 5, TABLE]),
}
cases = pytest.mark.parametrize("case", CASES)


def staged(case: str) -> tuple[Program, list[np.ndarray[Any, Any]]]:
    function, arrays = CASES[case]
    return traced(function, *arrays)


@cases
@pytest.mark.parametrize("width", WIDTHS)
def test_lanes_run_until_each_is_done_at_every_width(case: str, width: int) -> None:
    p, arrays = staged(case)
    scheduled = schedule(optimize(p))
    check_module(scheduled.module)
    results = call(scheduled, executable(scheduled.module, vector_bits=width), p, arrays)
    assert list(map(bits, results)) == expected(p, arrays)


@cases
def test_the_number_of_threads_does_not_show(case: str) -> None:
    p, arrays = staged(case)
    scheduled = schedule(optimize(p), TINY)
    runnable = executable(scheduled.module)
    for count in (1, 2, 3):
        with config.using(threads=count):
            assert list(map(bits, call(scheduled, runnable, p, arrays))) == expected(p, arrays)


@cases
def test_interpreted_lane_by_lane_and_in_shared_vectors_the_bits_are_the_same(case: str) -> None:
    p, arrays = staged(case)
    for backend in (interpreted, shared):
        assert list(map(bits, backend(p, arrays))) == expected(p, arrays)


@cases
def test_a_loop_is_one_nest_and_no_pass_over_arrays(case: str) -> None:
    module = schedule(optimize(staged(case)[0])).module
    assert len(nests_of_lanes(module)) == (2 if case == "collatz" else 1)  # it is one loop after another, too
    assert not any(map(has_arrays, entry_loops(module)))


def test_what_enters_is_computed_in_the_nest_and_what_nobody_reads_is_not_stored() -> None:
    def count(re: Any, im: Any) -> Any:
        return escape(0.5 * re, 0.25 * im)[0]

    x, y = axis(40), axis(40)
    p, arrays = traced(vmap(count), x, y)
    module = schedule(optimize(p)).module
    (nest,) = [f for f in module.functions if f.name != module.entry]
    assert sum(isinstance(s, Store) for s in statements_of(nest.body)) == 1
    scheduled = schedule(optimize(p))
    assert module.arena == 0
    assert list(map(bits, call(scheduled, executable(scheduled.module), p, arrays))) == expected(p, arrays)


def test_carries_may_have_parts() -> None:
    p, arrays = traced(vmap(orbit), axis(30, 0.5, 3) * (1 - 0.25j))
    scheduled = schedule(optimize(p))
    assert len(nests_of_lanes(scheduled.module)) == 1
    (got,), (wanted,) = call(scheduled, executable(scheduled.module), p, arrays), run_reference(p, arrays)
    np.testing.assert_allclose(got, wanted, rtol=1e-14)


# faults


def test_the_fault_of_the_lowest_lane_is_reported_though_another_came_first() -> None:
    """Lane 5 leaves the table in its first round, lane 2 in its third."""
    start = np.array([9, 9, 0, 9, 9, 7, 9])

    def walk(i: Any, table: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 3, s[1] + table[s[0]]), (i, 0.0))

    p, arrays = traced(vmap(walk, (0, None)), start, TABLE)
    scheduled = schedule(optimize(p))
    for width in WIDTHS:
        with pytest.raises(OutOfBoundsError, match="index 6 is out of bounds for axis 0 with size 5"):
            call(scheduled, executable(scheduled.module, vector_bits=width), p, arrays)


def test_a_lane_that_faulted_goes_no_further() -> None:
    """What it would read next is in bounds, and would keep it going for ever."""

    def walk(i: Any, table: Any) -> Any:
        return lax.while_loop(lambda i: i >= 0, lambda i: table[i], i)

    table, start = np.array([-1, 1, 0]), np.array([2, 7, 0])  # 1 leads to 1; 7 is outside, and reads some place inside
    p, arrays = traced(vmap(walk, (0, None)), start, table)
    scheduled = schedule(optimize(p))
    with pytest.raises(OutOfBoundsError, match="index 7"):
        call(scheduled, executable(scheduled.module), p, arrays)


def test_a_lane_whose_entry_faulted_does_not_start() -> None:
    def walk(i: Any, table: Any) -> Any:
        return lax.while_loop(lambda x: x < 5.0, lambda x: 0.5 * x, 8.0 + table[i])

    start = np.array([0, 11])
    table = np.array([0.0, -8.0, -8.0])
    p, arrays = traced(vmap(walk, (0, None)), start, table)
    scheduled = schedule(optimize(p))
    with pytest.raises(OutOfBoundsError, match="index 11"):
        call(scheduled, executable(scheduled.module), p, arrays)


def test_lanes_that_are_done_load_nothing() -> None:
    """In the interpreter an address outside an array is an error; these are promised to be inside."""

    def walk(i: Any, table: Any) -> Any:
        read = lambda i: table.at[i].get(mode="promise_in_bounds")  # noqa: E731
        return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] + read(s[0])), (i, 0.0))

    start = np.array([0, 5, 2, 5, 4])
    p, arrays = traced(vmap(walk, (0, None)), start, TABLE)
    assert list(map(bits, shared(p, arrays))) == expected(p, arrays)


# memory


@pytest.mark.parametrize("runs", [interpreted, shared], ids=["interpreted", "shared"])
def test_results_take_the_memory_of_carries_that_nobody_reads_later(runs: Callable[..., Any]) -> None:
    """The first loop's result is the second one's carry, and the second one's the third's, which reads it twice."""

    def chain(x: Any) -> Any:
        a = lax.fori_loop(0, 4, lambda i, v: 0.5 * v + i, x)
        b = lax.fori_loop(0, 3, lambda i, v: v * v + a[::-1], a)
        return b, lax.fori_loop(0, 2, lambda i, v: v + 0.5 * b, b)

    p, arrays = traced(chain, axis(37))
    assert list(map(bits, runs(p, arrays))) == expected(p, arrays)


# around it


def test_a_batch_of_batches_has_one_mask() -> None:
    p = optimize(traced(vmap(vmap(vmap(root))), axis(24, 1, 9).reshape(2, 3, 4))[0])
    (loop,) = [e for e in p.equations if e.primitive.name == "while_loop"]
    assert [str(v.type) for v in loop.outputs] == ["bool[2,3,4]", "f64[2,3,4]"]


def test_gradients_through_lanes_are_those_of_each_lane() -> None:
    def cube(a: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * a), (0, 1.0))[1]

    def until(a: Any) -> Any:
        return lax.while_loop(lambda s: s < 10.0, lambda s: s * a, a)

    x = axis(15, 1.2, 3.0).reshape(3, 5)
    np.testing.assert_allclose(vmap(vmap(tracer.grad(cube)))(x), 3 * x**2, rtol=1e-14)
    steps = np.ceil(np.log(10) / np.log(x))
    for f in (tracer.grad(until), lambda a: tracer.jvp(until, (a,), (1.0,))[1]):
        np.testing.assert_allclose(tracer.jit(vmap(vmap(f)))(x), steps * x ** (steps - 1), rtol=1e-12)


def test_an_interrupt_ends_lanes_without_end() -> None:
    p, arrays = traced(vmap(lambda x: lax.while_loop(lambda s: s > 0.0, lambda s: s + 1.0, x)), axis(40, 1, 2))
    runnable = executable(schedule(optimize(p)).module)
    stop, results = ctypes.c_int32(0), list[Any]()
    given = [*arrays, *fresh_outputs(p)]
    thread = threading.Thread(target=lambda: results.append(runnable.run(given, stop=stop)), daemon=True)
    thread.start()
    time.sleep(0.05)
    assert not results
    stop.value = 1
    thread.join(10)
    assert results[0][0] is Status.INTERRUPTED
