"""Nests that read joins: what roll, pad and concatenate give is read where it comes from, in boxes, not stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracer
import tracer.numpy as tnp
from tests.codegen.llvm.llvm_programs import WIDTHS, executable
from tests.grids import THOROUGH
from tests.schedule.elements.test_in_place_updates import agree, traced
from tests.schedule.random_programs import random_program
from tests.schedule.running import agree_program, call, interpreted, run, shared
from tracer import lax
from tracer.ir.loop import Module
from tracer.ir.loop.check import check_module
from tracer.ir.target import CPU, Limits
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference
from tracer.schedule.dispatch import ALL
from tracer.schedule.pipeline import schedule
from tracer.schedule.plan.fusion import plan_block
from tracer.schedule.plan.steps import Nest, Other

Array = np.ndarray[Any, Any]
U = np.random.default_rng(5).standard_normal((13, 21)).astype(np.float32)
V = np.random.default_rng(6).standard_normal((3, 5, 21)).astype(np.float32)


SMALL_JOINS = Limits(join_elements=1)
"""Joins of any size are read in parts."""


def periodic(u: Any) -> Any:
    return sum(tnp.roll(u, step, axis) for step in (1, -1) for axis in (0, 1)) - 4 * u


def bordered(u: Any) -> Any:
    p = tnp.pad(u, 1)
    return 4 * u - p[:-2, 1:-1] - p[2:, 1:-1] - p[1:-1, :-2] - p[1:-1, 2:]


def spread(u: Any) -> Any:
    """The transpose of a stencil, written out."""
    x = u[1:-1, 1:-1]
    return tnp.pad(x, ((2, 0), (1, 1))) + tnp.pad(x, ((0, 2), (1, 1))) - tnp.pad(x, ((1, 1), (0, 2))) * 3


def nests(function: Callable[..., Any], *arrays: Any) -> tuple[list[Nest], list[Other]]:
    p, _ = traced(function, *arrays)
    steps = plan_block(optimize(p), ALL).steps
    return [s for s in steps if isinstance(s, Nest)], [s for s in steps if isinstance(s, Other)]


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (periodic, 9), (bordered, 9), (spread, 20),
        (lambda u: tnp.diff(u, axis=0, append=u[-1:]) ** 2, 2),
        (lambda u: tnp.concatenate([u, 2 * u], 0) * tnp.float32(3) + 1, 2),
        (lambda u: tnp.transpose(tnp.roll(u, 3, 0)) - tnp.transpose(u), 2),
        (lambda u: tnp.flip(tnp.roll(u, 3, 1), 1) - u, 2),
        (lambda u: lax.pad(u, np.float32(0), ((-1, 2, 0), (3, -4, 0)))[:13, :17] * 2 + u[:13, :17], 4),
        (lambda u: tnp.roll(tnp.roll(u, 2, 0), 2, 1) * u, 4),
        (lambda u: tnp.roll(u, 1, 0)[None] * tnp.ones((3, 1, 1), np.float32), 2),
    ],
)  # fmt: skip
def test_a_stencil_is_one_nest_in_boxes(function: Callable[..., Any], count: int) -> None:
    planned, others = nests(function, U)
    assert not others
    assert [len(nest.boxes) for nest in planned if nest.boxes] == [count]
    agree(function, U)


@pytest.mark.parametrize(
    "function",
    [
        lambda u: tnp.max(tnp.roll(u, 1, 0) * u),  # a reduction
        lambda u: [y := tnp.roll(u, 1, 0) * 2, tnp.max(y), tnp.min(y, 1)],  # of what is stored beside it, too
        lambda u: tnp.roll(u, 1, 0) @ tnp.ones((21, 3), np.float32),  # a library reads it
        lambda u: tnp.concatenate([u, u * 2], 1) + 1,  # half rows
        lambda u: tnp.stack([u, 2 * u, u * u], -1) * 3,
        lambda u: tnp.roll(u, 1, 0).reshape(-1) * 2,
        lambda u: tnp.roll(u, 1, 0)[::2] * 2,  # not by ones
        lambda u: tnp.roll(u, 1, 0),  # it is the result
        lambda u: tnp.cumsum(tnp.roll(u, 1, 0) * 2, 0),
        lambda u: tnp.concatenate([u[i % 13 : i % 13 + 1] for i in range(30)]) * 2,  # many operands
        lambda u: sum(tnp.roll(u, (i, j), (0, 1)) for i in range(6) for j in range(6)),  # many boxes
        lambda u: tnp.sort(tnp.roll(u, 1, 0), 1) * 2,
        lambda u: lax.pad(u, np.float32(0.5), ((0, 0, 0), (0, -18, 1))) * 2 + 1,  # padded between elements
    ],
)
def test_what_cannot_be_cut_is_stored(function: Callable[..., Any]) -> None:
    planned, _ = nests(function, U)
    assert not any(nest.boxes for nest in planned)
    agree(function, U)


def test_components_of_indices_are_read_where_they_are_computed() -> None:
    def bilinear(u: Any, t: Any) -> Any:
        y, x = tnp.mgrid[:13, :21]
        a, b = tnp.cos(t) * y - tnp.sin(t) * x, tnp.sin(t) * y + tnp.cos(t) * x
        i, j = tnp.floor(a).astype(int), tnp.floor(b).astype(int)
        at = lambda i, j: u[tnp.clip(i, 0, 12), tnp.clip(j, 0, 20)]  # noqa: E731
        return (at(i, j) + at(i, j + 1)) * (1 - (a - i)) + (at(i + 1, j) - at(i + 1, j + 1)) * (b - j)

    planned, others = nests(bilinear, U, np.float32(0.3))
    assert not others
    assert len(planned) == 1
    agree(bilinear, U, np.float32(0.3))
    agree(lambda u, i: (u[i, i[::-1]], u[i % 7, i], tnp.stack([i, i])), U, np.arange(12))
    agree(lambda u, i: lax.fori_loop(0, 3, lambda _, u: u.at[i, i].set(u[i, i + 1] * 2), u), U, np.arange(12))


def test_a_dear_value_that_is_read_often_is_stored_once() -> None:
    planned, others = nests(lambda u: periodic(tnp.exp(u)), U)
    assert not others
    assert [len(nest.boxes) for nest in planned] == [0, 9]
    planned, others = nests(lambda u: tnp.roll(tnp.exp(u), 1, 0) + 1, U)
    assert not others
    assert [len(nest.boxes) for nest in planned] == [2]
    agree(lambda u: periodic(u * u * u / (1 + u * u)), U)
    agree(lambda u: tnp.roll(u / (1 + u * u), 1, 0) + 1, U)


@pytest.mark.parametrize(
    "function",
    [
        lambda u: u.at[1:-1, 1:-1].set(bordered(u)[1:-1, 1:-1]),
        lambda u: u.at[2:, :].add(tnp.roll(u, 1, 0)[2:, :]),
        lambda u: u.at[tnp.asarray([3, 1, 4])].set(tnp.roll(u, 1, 0)[:3]),
        lambda u: lax.fori_loop(0, 3, lambda i, u: u + tnp.float32(0.1) * periodic(u), u),
        lambda u: lax.fori_loop(0, 3, lambda i, u: u.at[1:-1, 1:-1].set((u + tnp.roll(u, 1, 0))[1:-1, 1:-1]), u),
        lambda u: lax.scan(lambda u, _: (periodic(u), spread(u)[0]), u, None, length=3),
        lambda u: lax.cond(u[0, 0] > 0, periodic, bordered, u),
        lambda u: (periodic(u), bordered(u) * 2, u + 1),
        lambda u: u + tnp.roll(u, 1, 0) * tnp.roll(u + tnp.roll(u, 1, 1), 1, 0),
    ],
)  # fmt: skip
def test_values_that_are_written_over_are_read_before(function: Callable[..., Any]) -> None:
    agree(function, U)


def test_three_axes() -> None:
    agree(lambda v: sum(tnp.roll(v, 1, axis) for axis in range(3)) + tnp.pad(v[:, :, 1:], ((0, 0), (0, 0), (0, 1))), V)
    agree(lambda v: tnp.concatenate([v[:1] * 0, v[:-1]], 0) - v, V)


def test_complex_numbers_and_integers() -> None:
    # products of complex numbers may be contracted, sums have the reference's bits
    agree(lambda u: periodic(u.astype(np.int32)), U)
    agree(lambda u: tnp.roll(u + 1j * u[::-1], 1, 0) + tnp.roll(u, 1, 1), U)
    agree(lambda u: tnp.where(tnp.roll(u > 0, 1, 0), u, -u), U)


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (17,), (1, 1), (2, 1), (1, 5), (3, 2), (2, 3, 4), (0, 3)])
def test_small_and_empty_domains(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    agree(lambda x: tnp.roll(x, 1, 0) * 2 + x, x, limits=SMALL_JOINS)
    agree(lambda x: tnp.pad(x, 1)[tuple(slice(2, None) for _ in shape)] + x, x, limits=SMALL_JOINS)
    agree(lambda x: tnp.concatenate([x, x + 1], 0) * 2, x, limits=SMALL_JOINS)


@settings(max_examples=1000 if THOROUGH else 40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.data())
def test_random_joins_agree_with_the_reference(seed: int, depth: int, data: st.DataObject) -> None:
    """Rolls, pads, slices, reversals, transposes and sums of them, nested."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, (5, 7)).astype(np.float32)

    def draw(u: Any, deep: int) -> Any:
        kind = int(rng.integers(0, 9)) if deep else 0
        axis = int(rng.integers(0, 2))
        inner = u if kind == 0 else draw(u, deep - 1)
        n = inner.shape[axis]
        match kind:
            case 1:
                return tnp.roll(inner, int(rng.integers(-n, n + 1)), axis)
            case 2:
                low, high = (int(v) for v in rng.integers(0, 3, 2))
                widths = [(low, high) if a == axis else (0, 0) for a in range(2)]
                padded = tnp.pad(inner, widths, constant_values=1)
                start = int(rng.integers(0, low + high + 1))
                return lax.slice_in_dim(padded, start, start + n, axis=axis)
            case 3:
                return tnp.flip(inner, axis)
            case 4:
                other = draw(u, deep - 1)
                return inner + 2 * other
            case 5:
                cut = int(rng.integers(0, n + 1))
                first = lax.slice_in_dim(inner, 0, cut, axis=axis)
                second = lax.slice_in_dim(draw(u, deep - 1), cut, n, axis=axis)
                return tnp.concatenate([first, second], axis)
            case 6:
                return tnp.where(inner > 0, inner, draw(u, deep - 1))
            case 7:
                return tnp.transpose(tnp.roll(tnp.transpose(inner), int(rng.integers(0, 5)), 1 - axis))
            case _:
                return inner * 2 - 1

    function = lambda u: draw(u, depth) + 0 * u  # noqa: E731
    p, operands = traced(function, x)
    wanted = [np.asarray(y) for y in run_reference(p, operands)]
    scheduled = schedule(optimize(p), replace(CPU, limits=SMALL_JOINS))
    check_module(scheduled.module)
    width = data.draw(st.sampled_from(WIDTHS))
    for found in (
        call(scheduled, executable(scheduled.module, vector_bits=width), p, operands),
        interpreted(p, operands, limits=SMALL_JOINS),
        shared(p, operands, SMALL_JOINS),
    ):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a.reshape(b.shape), b)


@settings(max_examples=1000 if THOROUGH else 30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_random_programs_with_all_joins_read_in_parts(seed: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    program = random_program(lambda n: int(rng.integers(n)), steps)
    operands = [rng.uniform(-1.0, 1.0, t.shape) for t in program.input_types]
    agree_program(program, operands, lambda p, a: run(p, a, replace(CPU, limits=SMALL_JOINS)))


def test_random_words_and_keys() -> None:
    def function(seed: Any) -> Any:
        keys = tracer.random.split(tracer.random.key(seed), 90)
        draws = tracer.vmap(lambda key: tracer.random.uniform(tracer.random.split(key)[0], (2,)))(keys)
        return tnp.roll(draws, 1, 0) + draws, tracer.random.key_data(keys)

    agree(function, np.uint32(3), limits=SMALL_JOINS)


def test_no_join_of_a_stencil_takes_memory() -> None:
    p, _ = traced(lambda u: periodic(u) * bordered(u), U)
    module: Module = schedule(optimize(p)).module
    assert module.arena == 0
