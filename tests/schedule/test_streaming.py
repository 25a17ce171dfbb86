"""Large results past the caches: the same values, wherever they begin and end, and only where nothing reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.codegen.llvm_programs import WIDTHS, at, executable, main_of, run
from tests.schedule.running import call, same, shared, staged
from tracer import jit
from tracer.ir.dtypes import I8
from tracer.ir.loop import Library, View, index_constant
from tracer.ir.loop_check import check_module
from tracer.ir.loop_walk import statements_of
from tracer.passes.pipeline import optimize
from tracer.primitives.joining import pad
from tracer.primitives.reference import run_reference
from tracer.schedule.lower import Scheduled, schedule
from tracer.schedule.streaming import LEAST
from tracer.settings import config

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
}


def streams(scheduled: Scheduled) -> int:
    found = [s for f in scheduled.module.functions for s in statements_of(f.body) if isinstance(s, Library)]
    return sum(s.name == "stream" for s in found)


@pytest.mark.parametrize("shape", [(1,), (64,), (1000,), (1003,), (7, 144), (37, 33)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_same(name: str, shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape)
    p = staged(PROGRAMS[name], [x])
    scheduled = schedule(optimize(p), least_work=0)
    check_module(scheduled.module)
    for threads in (1, 3):
        with config.using(threads=threads):
            found = call(scheduled, executable(scheduled.module), p, [x])
        for got, wanted, interpreted in zip(found, run_reference(p, [x]), shared(p, [x]), strict=True):
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


def test_large_copies_are_shared() -> None:
    x = RNG.integers(0, 100, LEAST + 12_345).astype(np.int8)
    np.testing.assert_array_equal(jit(tnp.copy)(x), x)
    np.testing.assert_array_equal(jit(lambda x: tnp.copy(x) + 1)(x), x + 1)
    small = x[: 1 << 20]
    np.testing.assert_array_equal(jit(tnp.copy)(small), small)
