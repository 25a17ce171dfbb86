"""Updated slices and carries that take turns: what is stored at once, what has two buffers, and old values kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.codegen.llvm.llvm_programs import WIDTHS, executable
from tests.grids import THOROUGH
from tests.schedule.running import call, fresh_outputs, interpreted, shared
from tests.targets import TINY
from tracer import lax
from tracer.ir.loop import Copy, For, Invoke, Module
from tracer.ir.loop.check import check_module
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Program
from tracer.ir.target import CPU, Limits
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference
from tracer.schedule.pipeline import schedule
from tracer.settings import config
from tracer.trace.stage import stage
from tracer.tree_util import tree_leaves

U = np.random.default_rng(3).standard_normal((23, 45)).astype(np.float32)
Array = np.ndarray[Any, Any]


def traced(function: Callable[..., Any], *arrays: Any) -> tuple[Program, list[Array]]:
    """The function's program and all of its operands: the constants of the function, and the arrays."""
    given = [np.asarray(a) for a in arrays]
    found = stage(lambda xs: tree_leaves(function(*xs)), [array_type(a.dtype, a.shape) for a in given])
    return found.program, [*map(np.asarray, found.constants), *given]


def agree(function: Callable[..., Any], *arrays: Any, limits: Limits | None = None) -> Module:
    """Run at the widest vectors and another width in turn, by threads and in the interpreter, to the reference's bits.

    Thoroughly, at every width.
    """
    p, given = traced(function, *arrays)
    wanted = [np.asarray(x).tobytes() for x in run_reference(p, given)]
    usual, tiny = (replace(target, limits=limits or target.limits) for target in (CPU, TINY))
    scheduled = schedule(optimize(p), usual)
    check_module(scheduled.module)
    *narrow, widest = WIDTHS
    others = narrow if THOROUGH else [narrow[len(p.equations) % len(narrow)]]
    for width in (*others, widest):
        runnable = executable(scheduled.module, vector_bits=width)
        assert [x.tobytes() for x in call(scheduled, runnable, p, given)] == wanted
    parts = schedule(optimize(p), tiny)
    runnable = executable(parts.module)
    for threads in (1, 2):
        with config.using(threads=threads):
            assert [x.tobytes() for x in call(parts, runnable, p, given)] == wanted
    for backend in (interpreted, shared):
        assert [x.tobytes() for x in backend(p, given, limits=limits)] == wanted
    return scheduled.module


def in_loops(module: Module, kind: type) -> int:
    """How many statements of a kind the entry runs in its loops, as written."""
    entry = next(f for f in module.functions if f.name == module.entry)
    loops = [s for s in entry.body.statements if isinstance(s, For)]
    return sum(isinstance(s, kind) for loop in loops for s in statements_of(loop.body))


def heat(u: Any) -> Any:
    """A step of a stencil whose borders stay."""
    inner = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
    return u.at[1:-1, 1:-1].set(inner + np.float32(0.125) * around)


@pytest.mark.parametrize("steps", [2, 3, 4, 5])
def test_a_stencil_in_a_loop_is_a_nest_a_step_between_two_buffers(steps: int) -> None:
    module = agree(lambda u: lax.fori_loop(0, steps, lambda _, u: heat(u), u), U)
    if steps > 3:  # shorter ones are written out
        assert in_loops(module, Invoke) == 2
        assert in_loops(module, Copy) == 0


def test_a_stencil_by_itself_copies_the_borders_alone() -> None:
    module = agree(heat, U)
    assert module.arena == 0
    assert not any(isinstance(s, Copy) for f in module.functions for s in statements_of(f.body))


def fields(_: Any, s: Any) -> Any:
    """A step of three fields, each updated from itself where it is updated, and from the others around."""
    e, h, g = s
    h = h.at[:, :-1].add(e[:, 1:] - e[:, :-1])
    g = g.at[:-1].set(0.5 * g[:-1] - (e[1:] - e[:-1]))
    e = e.at[1:, 1:].add(g[1:, 1:] - g[:-1, 1:] - h[1:, 1:] + h[1:, :-1])
    return e.at[10, 12].add(np.float32(1)), h, g


def test_fields_that_read_what_they_replace_are_updated_in_place() -> None:
    module = agree(lambda *s: lax.fori_loop(0, 4, fields, s), U, 2 * U, U[::-1].copy())
    assert in_loops(module, Invoke) == 4
    assert in_loops(module, Copy) == 0
    assert module.arena <= 64  # the number that is added


def test_fields_that_read_what_they_replace_and_more_are_not() -> None:
    def step(_: Any, u: Any) -> Any:
        inner = u[1:-1, 1:-1]
        return u.at[1:-1, 1:-1].set(inner * 0.5 + tnp.flip(inner, 1) * 0.25)

    agree(lambda u: lax.fori_loop(0, 4, step, u), U)
    agree(lambda u: lax.fori_loop(0, 4, lambda _, u: u.at[1:].add(u[1:] * u[0]), u), U)
    agree(lambda u: lax.fori_loop(0, 4, lambda _, u: u.at[1:].add(0.5 * tnp.max(u[1:])), u), U)
    agree(lambda u: lax.fori_loop(0, 4, lambda _, u: u.at[:-1].add(0.5 * u[1:]), u), U)
    agree(lambda u: lax.fori_loop(0, 4, lambda _, u: u.at[1:18].add(lax.cummax(u[1:18], 1) * 0.1), u), U)


def test_fields_that_are_kept_take_turns_with_what_replaces_them() -> None:
    def step(_: Any, s: Any) -> Any:
        u, before = s
        return u.at[1:].add(0.5 * before[:-1]), u * 0.5

    module = agree(lambda u: lax.fori_loop(0, 4, step, (u, u)), U)
    assert in_loops(module, Copy) == 0


def test_what_was_updated_may_be_read_afterwards() -> None:
    agree(lambda u: (heat(u), u * 2, u[3]), U)

    def kept(u: Any) -> Any:
        return lax.fori_loop(0, 5, lambda _, s: (heat(s[0]), s[0] + s[1]), (u, u))

    agree(kept, U)


def test_borders_that_change_are_stored_in_every_step() -> None:
    def step(_: Any, u: Any) -> Any:
        return heat(u.at[0].set(u[1] + 1))

    agree(lambda u: lax.fori_loop(0, 4, step, u), U)
    agree(lambda u: lax.fori_loop(0, 4, lambda _, u: heat(u).at[:, 0].set(u[:, 1]), u), U)
    agree(lambda u: lax.fori_loop(0, 4, lambda _, u: heat(2 * u), u), U)


def test_slices_and_results_of_steps_go_on_beside_two_buffers() -> None:
    xs = np.arange(5, dtype=np.float32)

    def step(u: Any, x: Any) -> Any:
        return heat(u) + x, u[2, 3:9]

    def scaled(u: Any, x: Any) -> Any:
        return heat(u), x * u[1, 1]

    every = list(product((step, scaled), (False, True)))
    for body, reverse in every if THOROUGH else every[::3]:
        agree(lambda u, body=body, reverse=reverse: lax.scan(body, u, xs, reverse=reverse), U)


def test_arrays_made_anew_take_turns() -> None:
    def mixed(_: Any, s: Any) -> Any:
        x, y, z, n = s
        return tnp.roll(x, 1) + y, tnp.concatenate([y[5:], y[:5]]), z * 2 + n, n + 1

    v = U.reshape(-1)
    start = (v, v[::-1].copy(), v.copy(), np.float32(1))
    module = agree(lambda *s: lax.fori_loop(0, 5, mixed, s), *start)
    assert in_loops(module, Copy) == 0


def test_arrays_that_change_places_are_not_taken_for_new_ones() -> None:
    def swap(_: Any, s: Any) -> Any:
        x, y = s
        return y, tnp.roll(x, 1)

    agree(lambda x, y: lax.fori_loop(0, 5, swap, (x, y)), U.reshape(-1), 2 * U.reshape(-1))
    agree(lambda x: lax.fori_loop(0, 5, lambda _, s: (tnp.roll(s[0], 1),) * 2, (x, x)), U.reshape(-1))


@pytest.mark.parametrize("start", [-9, 0, 2, 17, 99])
def test_updates_at_known_places_stay_within(start: int) -> None:
    def update(u: Any) -> Any:
        return lax.dynamic_update_slice(u, tnp.sin(u[:5, :5]) * 0 + u[2:7, 1:6], (start, start))

    agree(update, U)
    agree(lambda u: lax.dynamic_update_slice(u, u[:20, ::-1] + 1, (start, start)), U)  # most of the array


def test_values_that_have_nothing_to_do_with_the_array_are_stored_at_once() -> None:
    def fill(u: Any, v: Any, i: Any) -> Any:
        return lax.dynamic_update_slice(u * 2, v * 3 + 1, (i, 0))

    module = agree(fill, U, U[:4], np.array(7))
    assert sum(f.name != module.entry for f in module.functions) == 2
    assert module.arena == 0


def test_in_a_loop_a_row_is_updated_in_place() -> None:
    def step(i: Any, u: Any) -> Any:
        return u.at[i].set(u[i] * 0.5 + i.astype("float32"))

    module = agree(lambda u: lax.fori_loop(0, 18, step, u), U)
    assert in_loops(module, Copy) == 0
    assert module.arena <= 4 * U.shape[1] + 128  # a row's new values


def test_complex_numbers_keep_their_surroundings() -> None:
    z = U + 1j * U[::-1]
    p, given = traced(lambda z: z.at[1:-1, 2:-2].set(z[:-2, 2:-2] + z[2:, 4:]), z)
    scheduled = schedule(optimize(p))
    (got,), (wanted,) = call(scheduled, executable(scheduled.module), p, given), run_reference(p, given)
    np.testing.assert_array_equal(got, wanted)
    assert fresh_outputs(p)[0].shape == got.shape
