"""Rows in local buffers: when an array becomes one, when it must not, and that the bits stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import WIDTHS, executable
from tests.schedule.loops.test_row_fusion import normalised, softmax
from tests.schedule.running import call, same, shared
from tests.targets import TINY
from tracer.ir.dtypes import F32, I64
from tracer.ir.loop import (
    Block,
    Buffer,
    For,
    Function,
    Invoke,
    LoopKind,
    Module,
    Register,
    Space,
    View,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.build import Builder, address
from tracer.ir.loop.check import check_module
from tracer.ir.loop.walk import buffers_of
from tracer.ir.program import Program
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.reductions.reductions import reduce_sum
from tracer.primitives.base.reference import run_reference
from tracer.primitives.elementwise.arithmetic import mul
from tracer.schedule.loops.row_fusion import fuse_rows
from tracer.schedule.loops.storage_folding import fold_storage
from tracer.schedule.memory.arena_allocation import allocate_arena
from tracer.schedule.pipeline import LOOP_PIPELINE, loops, schedule
from tracer.trace.stage import stage
from tracer.transforms.gradients import grad

ROWS, COLUMNS = 100, 200


def gradient(function: Any) -> Program:
    loss = lambda x: reduce_sum(mul(function(x), function(x)), (0, 1))  # noqa: E731
    return stage(lambda xs: [grad(loss)(*xs)], [array_type(F32, (ROWS, COLUMNS))]).program


@pytest.mark.parametrize("function", [softmax, normalised])
def test_gradients_of_normalisations_need_no_array_beside_their_result(function: Any) -> None:
    p = gradient(function)
    module = schedule(optimize(p)).module
    check_module(module)
    assert module.arena < 10 * 4 * ROWS < loops(optimize(p)).module.arena
    assert any(b.space is Space.LOCAL and b.size == COLUMNS for f in module.functions for b in buffers_of(f))


@pytest.mark.parametrize("function", [softmax, normalised])
def test_bits_are_those_of_whole_arrays(function: Any) -> None:
    p, x = gradient(function), np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    local = schedule(optimize(p))
    results = [call(local, executable(local.module, vector_bits=w), p, [x])[0] for w in WIDTHS]
    kept = tuple(each for each in LOOP_PIPELINE if each.name != "fold_storage")
    whole = schedule(optimize(p), passes=kept)
    expected = call(whole, executable(whole.module), p, [x])[0]
    for got in results:
        np.testing.assert_array_equal(got.view(np.uint32), expected.view(np.uint32))
    same(shared(p, [x])[0], expected)
    np.testing.assert_allclose(expected, run_reference(p, [x])[0], rtol=1e-4, atol=1e-5)


def handed_on(*, stored: int = COLUMNS, shift: int = 0, read_first: bool = False, known: bool = False) -> Module:
    """Twice the input by way of an array in the arena: rows of which `stored` elements are written, and then read from
    `shift` on. read_first: whether the row is read before. known: whether the entry copies the array, too."""
    size = ROWS * COLUMNS
    argument = lambda name, on: Buffer(name, F32, size, Space.ARGUMENT, written=on)  # noqa: E731
    source, between, target = argument("a", False), argument("b", True), argument("c", True)
    b = Builder()
    row = Register(I64, "row")
    if read_first:
        b.store(target, address((row, COLUMNS)), b.load(between, address((row, COLUMNS))))
    with b.for_("i", 0, stored) as first:
        b.store(between, address((row, COLUMNS), first.index), b.load(source, address((row, COLUMNS), first.index)))
    with b.for_("j", 0, COLUMNS) as second:
        value = b.load(between, address((row, COLUMNS), second.index, shift))
        b.store(target, address((row, COLUMNS), second.index), value)
    loop = For(row, index_constant(0), index_constant(ROWS), b.finish(), LoopKind.PARALLEL)
    nest = Function("nest", (source, between, target), Block((loop,)))
    inputs = Buffer("in0", F32, size, Space.INPUT)
    output, other = (Buffer(f"out{n}", F32, size, Space.OUTPUT, written=True) for n in range(2))
    arena = Buffer("t", F32, size, Space.ARENA, 128, 64, written=True)
    e = Builder()
    e.add(Invoke("nest", (View(inputs), View(arena), View(output))))
    if known:
        e.copy(View(other), View(arena), size)
    return Module((nest, Function("main", (inputs, output, other), e.finish())), "main", 4 * size + 128)


def test_an_array_that_others_read_or_that_is_read_before_it_is_written_stays() -> None:
    made = allocate_arena(fold_storage(handed_on()))
    check_module(made)
    assert made.arena == 0
    for kept in (
        handed_on(known=True), handed_on(read_first=True), handed_on(stored=COLUMNS - 1), handed_on(shift=1),
    ):  # fmt: skip
        assert fold_storage(kept) is kept


def test_the_arena_closes_up_and_what_is_left_keeps_its_distance() -> None:
    p = gradient(normalised)
    before = fuse_rows(loops(optimize(p)).module, TINY)
    after = allocate_arena(fold_storage(before))
    check_module(after)
    entry = next(f for f in after.functions if f.name == after.entry)
    left = [b for b in buffers_of(entry) if b.space is Space.ARENA]
    assert after.arena == max(b.offset + -(-b.size * 4 // 64) * 64 for b in left)
    assert all(b.offset % 64 == 0 for b in left)
