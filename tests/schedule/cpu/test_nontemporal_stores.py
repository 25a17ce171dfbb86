"""Large results past the caches: the same values, wherever they begin and end, and only where nothing reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import add, and_, mul, rshift, sub
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.codegen.llvm.llvm_programs import WIDTHS, at, executable, integer, loop, main_of, module_of, run
from tests.grids import covering
from tests.schedule.running import call, same, shared, staged
from tests.targets import TINY
from tracer import jit
from tracer.ir.dtypes import F32, F64, I8, I64
from tracer.ir.loop import (
    Block,
    Buffer,
    Compute,
    Constant,
    For,
    Library,
    Load,
    LoopKind,
    Register,
    Space,
    Store,
    Transpose,
    View,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.check import check_module
from tracer.ir.loop.walk import statements_of
from tracer.ir.target import CPU
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.slice_pad_concatenate import pad
from tracer.primitives.base.reference import run_reference
from tracer.schedule.cpu.interleaved_streams import fits, in_streams
from tracer.schedule.pipeline import Scheduled, schedule
from tracer.settings import config

LEAST = CPU.machine.streamed_bytes
RNG = np.random.default_rng(4)
PROGRAMS: dict[str, Callable[..., Any]] = {
    "a sum": lambda x: [x + 2 * x],
    "two results": lambda x: [x * x, x > 0],
    "a conversion": lambda x: [x.astype("float32")],
    "a running sum": lambda x: [tnp.cumsum(x, axis=0)],
    "a running sum from the end": lambda x: [tnp.flip(tnp.cumsum(tnp.flip(x), axis=-1))],
    "a border": lambda x: [pad(x, 0.5, [(1, 2, 0)] * x.ndim)],
    "a join": lambda x: [tnp.concatenate([x, -x], axis=-1)],
    "the other way round": lambda x: [tnp.flip(x)],
    "complex numbers": lambda x: [x * (1 + 2j)],
    "what is read again": lambda x: [x * 2, tnp.sum(x * 2), tnp.sort(x * 2, axis=-1)],
    "rows": lambda x: [x - x.mean(axis=-1, keepdims=True)],
    "a row for all": lambda x: [x + 2 * x[..., :1] + tnp.arange(x.shape[-1]), x > 1],
    "much to compute": lambda x: [tnp.exp(x) * tnp.sin(x) + tnp.log(1 + x * x)],
    "whole numbers that are narrower": lambda x: [(8 * x).astype("int16"), x],
}


def streams(scheduled: Scheduled) -> int:
    """How many statements store past the caches."""
    found = [s for f in scheduled.module.functions for s in statements_of(f.body)]
    return sum((isinstance(s, Library) and s.name == "stream") or (isinstance(s, Store) and s.past) for s in found)


SHAPES = [(1,), (64,), (1000,), (1003,), (7, 144), (37, 33), (5, 203)]


@pytest.mark.parametrize(("name", "shape"), covering(PROGRAMS, SHAPES, least=24), ids=str)
def test_results_are_the_same(name: str, shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape)
    p = staged(PROGRAMS[name], [x])
    scheduled = schedule(optimize(p), TINY)
    check_module(scheduled.module)
    runnable, expected, interpreted_ones = executable(scheduled.module), run_reference(p, [x]), shared(p, [x])
    for threads in (1, 3):
        with config.using(threads=threads):
            found = call(scheduled, runnable, p, [x])
        for got, wanted, interpreted in zip(found, expected, interpreted_ones, strict=True):
            same(got, np.asarray(wanted))
            np.testing.assert_array_equal(interpreted, got)


@pytest.mark.parametrize("bits", WIDTHS)
def test_copies_begin_and_end_at_any_byte(bits: int) -> None:
    source = RNG.integers(0, 100, 600).astype(np.int8)
    for start in (0, 1, 31, 63, 64):
        for count in (0, 1, 63, 64, 65, 130, 400):

            def body(a: Any, o: Any, start: int = start, count: int = count) -> list[Any]:
                views = View(o, at(constant=start)), View(a, at(constant=3))
                return [Library("stream", (*views, index_constant(count), index_constant(1)))]

            out, expected = np.full(600, 77, np.int8), np.full(600, 77, np.int8)
            expected[start : start + count] = source[3 : 3 + count]
            run(main_of([("a", I8, 600, False), ("o", I8, 600, True)], body), [source, out], vector_bits=bits)
            np.testing.assert_array_equal(out, expected)


def moves(dtype: Any, count: int, to: Any, a: Any, o: Any, *, past: bool = False) -> For:
    """o[to(i)] = a[i] in as many lanes as fill a line."""
    x = Register(dtype, "x")
    return loop(count, lambda i: [Load(x, a, at((i, 1))), Store(o, to(i), x, past=past)], lanes=64 // dtype.itemsize)


@pytest.mark.parametrize(("bits", "dtype"), covering(WIDTHS, [I8, F32, F64], least=6), ids=str)
def test_stores_past_the_caches_begin_at_any_element(bits: int, dtype: Any) -> None:
    """Whole lines pass them; other vectors are stored as ever."""
    source, lanes = RNG.integers(0, 100, 300).astype(dtype), 64 // dtype.itemsize
    for start in (0, 1, lanes - 1, lanes):

        def body(a: Any, o: Any, start: int = start) -> list[Any]:
            return [moves(dtype, 200, lambda i: at((i, 1), constant=start), a, o, past=True)]

        out = np.full(300, 77, dtype)
        expected = out.copy()
        expected[start : start + 200] = source[:200]
        run(module_of([("a", dtype, 300, False), ("o", dtype, 300, True)], body), [source, out], vector_bits=bits)
        np.testing.assert_array_equal(out, expected)


def starts(statements: Sequence[Any], known: dict[Any, int]) -> Iterator[int]:
    """Where the vectors of streams start, in order."""
    value = lambda x: int(x.value) if isinstance(x, Constant) else known[x]  # noqa: E731
    functions = {"mul": mul, "add": add, "sub": sub, "and": and_, "min": min, "max": max, "shr_logical": rshift}
    for s in statements:
        if isinstance(s, Compute):
            known[s.result] = functions[s.op.label](*map(value, s.operands))
        elif isinstance(s, For) and s.kind is LoopKind.VECTOR:
            (store,) = [x for x in s.body.statements if isinstance(x, Store)]
            yield sum(c * known[r] for r, c in store.address.terms if r is not s.index)
        elif isinstance(s, For):
            for number in range(value(s.start), value(s.stop)):
                yield from starts(s.body.statements, {**known, s.index: number})


@pytest.mark.parametrize("length", [128, 130, 4096, 5000])
@pytest.mark.parametrize(("begins", "stride"), [(0, 0), (5, 0), (0, 5008), (3, 5007)])
@pytest.mark.parametrize("is_known", [True, False])
def test_streams_store_every_element_and_most_in_whole_lines(
    length: int, begins: int, stride: int, is_known: bool
) -> None:
    """In rows that begin at any element, of a result that begins behind a line."""
    a, o = (Buffer(name, F32, 1 << 20, Space.ARGUMENT, written=name == "o") for name in "ao")
    row, count = Register(I64, "row"), Register(I64, "count")
    across = moves(F32, length, lambda i: at((i, 1), *([(row, stride)] * bool(stride))), a, o)
    stores = [s for s in across.body.statements if isinstance(s, Store)]
    assert fits(across, stores, 4 * length, CPU.machine)
    assert not fits(across, stores, 4 * length + 1, CPU.machine)
    nest = in_streams(across, stores, begins, integer(length) if is_known else count, 1024, CPU.machine)
    streams = [s for s in statements_of(Block(tuple(nest))) if isinstance(s, For) and s.kind is LoopKind.SERIAL]
    assert int(streams[1].stop.value) == (4 if length >= 1024 or not is_known else 1)
    for number in range(3):
        found = [at - number * stride for at in starts(nest, {row: number, count: length})]
        assert {at + lane for at in found for lane in range(16)} == set(range(length))
        apart = {at for at in found if (at + number * stride + begins) % 16}
        assert apart <= {0, length - 16}


def test_the_machine_says_how_many_strands_there_are() -> None:
    a, o = (Buffer(name, F32, 1 << 20, Space.ARGUMENT, written=name == "o") for name in "ao")
    across = moves(F32, 4096, lambda i: at((i, 1)), a, o)
    stores = [s for s in across.body.statements if isinstance(s, Store)]
    nest = in_streams(across, stores, 0, integer(4096), 1024, replace(CPU.machine, streams=(8, 2)))
    streams = [s for s in statements_of(Block(tuple(nest))) if isinstance(s, For) and s.kind is LoopKind.SERIAL]
    assert int(streams[1].stop.value) == 8


@pytest.mark.parametrize(
    ("function", "size", "expected"),
    [
        (lambda x: [2 * x + 1], LEAST // 8, 1),
        (lambda x: [2 * x + 1], LEAST // 8 - 1, 0),
        (lambda x: [x > 0], LEAST // 8, 0),
        (lambda x: [x.sum()], LEAST // 8, 0),
        (lambda x: [tnp.copy(x)], LEAST // 8, 1),
        (lambda x: [tnp.copy(x)], LEAST // 16, 0),
    ],
)
def test_which_results_pass_the_caches(function: Any, size: int, expected: int) -> None:
    assert streams(schedule(optimize(staged(function, [np.empty(size)])))) == expected


def test_what_is_written_in_its_operands_place_does_not() -> None:
    """Its lines are in a cache already."""
    p = optimize(staged(lambda x: [2 * x + 1], [np.empty(LEAST // 8)]))
    assert streams(schedule(p, donated=[0])) == 0


@pytest.mark.parametrize("dtype", [np.int16, np.float32, np.float64])
@pytest.mark.parametrize(("start", "stride"), [(0, 64), (16, 80), (3, 64), (0, 67)])
def test_transposes_past_the_caches_begin_at_any_element(dtype: Any, start: int, stride: int) -> None:
    """In whole lines, and in others as ever; also where blocks do not divide a tile, and where it is small."""
    source = np.arange(80 * 70).astype(dtype)
    for rows, columns in ((32, 48), (37, 48), (37, 50), (16, 16), (5, 48), (40, 7), (1, 1)):

        def body(a: Any, o: Any, rows: int = rows, columns: int = columns) -> list[Any]:
            views = View(o, at(constant=start)), stride, View(a, at(constant=1)), 70
            return [Transpose(*views, integer(rows), integer(columns), past=True)]

        out = np.zeros(start + 40 * stride, dtype)
        expected = out.copy()
        for row in range(rows):
            for column in range(columns):
                expected[start + row * stride + column] = source[1 + column * 70 + row]
        kind = np.dtype(dtype)
        run(module_of([("a", kind, source.size, False), ("o", kind, out.size, True)], body), [source, out])
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("shape", [(2048, 2049), (2049, 2048), (2500, 2100)])
def test_large_transposes_pass_the_caches(shape: tuple[int, int]) -> None:
    x = np.arange(shape[0] * shape[1], dtype="f8").reshape(shape)
    module = schedule(optimize(staged(lambda x: [x.T], [x]))).module
    found = [s.past for f in module.functions for s in statements_of(f.body) if isinstance(s, Transpose)]
    assert found == [True]
    np.testing.assert_array_equal(jit(lambda x: x.T)(x), x.T)


def test_large_copies_are_shared() -> None:
    x = RNG.integers(0, 100, LEAST + 12_345).astype(np.int8)
    np.testing.assert_array_equal(jit(tnp.copy)(x), x)
    np.testing.assert_array_equal(jit(lambda x: tnp.copy(x) + 1)(x), x + 1)
    small = x[: 1 << 20]
    np.testing.assert_array_equal(jit(tnp.copy)(small), small)
