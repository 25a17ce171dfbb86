"""Loops that fit into lanes of a nest, and loops whose lanes need each other, which run together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.codegen.llvm.llvm_programs import executable
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
from tests.schedule.running import call
from tracer import lax, vmap
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference
from tracer.schedule.pipeline import schedule


def mean_of_lanes(x: Any) -> Any:
    total = lambda v: lax.psum(v, "lanes")  # noqa: E731
    return lax.while_loop(lambda s: s < 4.0, lambda s: s + 0.1 * total(s) + 1.0, x)


def by_neighbours(x: Any) -> Any:
    """One mask by hand, over lanes that read each other."""

    def step(s: Any) -> Any:
        live, v = s
        moved = tnp.where(live, v + 0.5 * tnp.abs(v[::-1]) + 0.1, v)
        return live & (moved < 4.0), moved

    return lax.while_loop(lambda s: s[0].any(), step, (x < 4.0, x))[1]


def by_first(v: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 30.0, lambda c: c * 1.5 + 1.0, v)


def by_sum_of_one(v: Any) -> Any:
    return lax.while_loop(lambda c: tnp.sum(c[1:2]) < 30.0, lambda c: c[::-1] * 1.5 + 1.0, v)


def with_axes(x: Any) -> Any:
    """Each lane carries a vector."""
    return lax.while_loop(lambda v: v.sum() < 9.0, lambda v: v * 1.5 + 0.5, x)


def neighbours_in_step(x: Any) -> Any:
    return lax.fori_loop(0, 6, lambda i, v: 0.5 * (v + v[::-1]) + i, x)


def normed(x: Any) -> Any:
    return lax.fori_loop(0, 6, lambda i, v: v / v.sum(), x)


def with_much_in_common(x: Any) -> Any:
    """Every vector of lanes would compute the same function of the step again."""

    def step(i: Any, v: Any) -> Any:
        t = tnp.sin(0.1 * i) + tnp.exp(-0.1 * i)
        return v * t + 1.0

    return lax.fori_loop(0, 6, step, x)


def with_a_loop_in_common(x: Any) -> Any:
    """Every vector of lanes would run the same loop again."""

    def step(s: Any) -> Any:
        n, t, v = s
        t = lax.while_loop(lambda t: t < 100.0, lambda t: 3.0 * t + n, t) * 0.01
        return n + 1.0, t, v * t + v

    return lax.while_loop(lambda s: s[0] < 6.0, step, (0.0, 0.5, x))[2]


def checked_in_step(x: Any, table: Any = TABLE) -> Any:
    """The first fault is that of the first round."""
    table = tnp.asarray(table)
    return lax.fori_loop(0, 3, lambda i, v: v + table[(v % 5.0).astype("int64")], x)


def unfrozen(x: Any) -> Any:
    """A loop over any() whose body goes on in lanes that are done."""
    return lax.while_loop(lambda s: s[0].any(), lambda s: (s[0] & (s[1] < 4.0), s[1] + 1.0), (x < 4.0, x))[1]


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (vmap(mean_of_lanes, axis_name="lanes"), axis(12)),
        (by_neighbours, axis(12)),
        (vmap(with_axes), axis(12, 0.1, 1).reshape(4, 3)),
        (vmap(by_first), axis(12, 0.1, 9).reshape(4, 3)),
        (vmap(by_sum_of_one), axis(12, 0.1, 9).reshape(6, 2)),
        (unfrozen, axis(12)),
        (neighbours_in_step, axis(12)),
        (normed, axis(12)),
        (with_much_in_common, axis(12)),
        (with_a_loop_in_common, axis(12)),
        (checked_in_step, axis(12, 0, 1)),
    ],
    ids=[
        "psum",
        "neighbours",
        "axes",
        "first",
        "one",
        "unfrozen",
        "neighbours in step",
        "sums in step",
        "much in common",
        "a loop in common",
        "faults in step",
    ],
)
def test_lanes_that_need_each_other_run_together(function: Any, x: Any) -> None:
    p, arrays = traced(function, x)
    scheduled = schedule(optimize(p))
    assert not nests_of_lanes(scheduled.module)
    assert any(map(has_arrays, entry_loops(scheduled.module)))
    (got,) = call(scheduled, executable(scheduled.module), p, arrays)
    (wanted,) = run_reference(p, arrays)
    np.testing.assert_allclose(got, wanted, rtol=1e-14)


def test_a_mask_by_hand_that_freezes_its_lanes_is_as_good() -> None:
    def by_hand(x: Any) -> Any:
        def step(s: Any) -> Any:
            live, v = s
            v = tnp.where(live, 1.5 * v + 0.1, v)
            return live & (v < 40.0), v

        return lax.while_loop(lambda s: s[0].any(), step, (x < 40.0, x))[1]

    x = axis(50, 0.01, 60)
    p, arrays = traced(by_hand, x)
    scheduled = schedule(optimize(p))
    assert len(nests_of_lanes(scheduled.module)) == 1
    assert list(map(bits, call(scheduled, executable(scheduled.module), p, arrays))) == expected(p, arrays)
