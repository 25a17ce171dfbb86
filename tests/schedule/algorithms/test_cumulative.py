"""Cumulative operations in lanes, columns and tiles: NumPy's values, and one order for all machines and threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.codegen.llvm.llvm_programs import executable
from tests.grids import covering
from tests.schedule.running import agree, call, same, shared, staged
from tests.targets import TINY
from tracer import jit
from tracer.ir.loop import For, Invoke, Prefix
from tracer.ir.loop.check import check_module
from tracer.ir.loop.walk import statements_of
from tracer.ir.target import CPU
from tracer.passes.pipeline import optimize
from tracer.primitives.control.cumulative import cummax, cummin, cumprod, cumsum
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.exponential import exp
from tracer.schedule.pipeline import Scheduled, schedule
from tracer.settings import config

TILE = CPU.blocks.cumulative
RNG = np.random.default_rng(12)
SHAPES = [
    ((1,), 0), ((16,), 0), ((37,), 0), ((256,), 0), ((789,), 0), ((3, 136), 1), ((2, 1, 333), 2), ((40, 5), 1),
    ((5, 70), 0), ((61, 9), 0), ((131, 3), 0), ((2, 31, 10), 1), ((4, 6, 5, 3), 1), ((0, 5), 1), ((5, 0), 1),
    ((0,), 0), ((300, 0), 0),
]  # fmt: skip


def drawn(shape: tuple[int, ...], dtype: str) -> Any:
    if dtype == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype[0] in "iu":
        return RNG.integers(0, 100, shape).astype(dtype)
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def in_small_tiles(x: Any, function: Any, *, bits: int | None = None, threads: int = 2) -> Any:
    """All that can be shared and cut is, compiled."""
    p = staged(function, [x])
    scheduled = schedule(optimize(p), TINY)
    check_module(scheduled.module)
    with config.using(threads=threads):
        (found,) = call(scheduled, executable(scheduled.module, vector_bits=bits), p, [x])
    return found


def prefixes(scheduled: Scheduled) -> int:
    return sum(isinstance(s, Prefix) for f in scheduled.module.functions for s in statements_of(f.body))


SUMMED = [
    ("float64", False), ("float64", True), ("float32", False), ("float16", True), ("int64", False),
    ("complex128", True),
]  # fmt: skip


@pytest.mark.parametrize(("along", "summed"), covering(SHAPES, SUMMED, least=24), ids=str)
def test_sums_are_numpys_in_every_shape(along: tuple[tuple[int, ...], int], summed: tuple[str, bool]) -> None:
    (shape, axis), (dtype, reverse) = along, summed
    x = drawn(shape, dtype)
    function = lambda x: [cumsum(x, axis, reverse)]  # noqa: E731
    (expected,) = agree(function, x)
    p = staged(function, [x])
    found = in_small_tiles(x, function)
    same(found, expected)
    np.testing.assert_array_equal(shared(p, [x])[0], found)


@pytest.mark.parametrize(
    ("function", "dtype", "along"),
    covering(
        [cummax, cummin],
        ["float64", "float32", "bfloat16", "int32", "bool", "complex64"],
        [(shape, axis) for shape, axis in SHAPES if 0 not in shape],
        least=28,
    ),
)
def test_extremes_are_numpys(function: Any, dtype: str, along: tuple[tuple[int, ...], int]) -> None:
    shape, axis = along
    x = drawn(shape, "float32").astype("bfloat16") if dtype == "bfloat16" else drawn(shape, dtype)
    run = lambda x: [function(x, axis)]  # noqa: E731
    (expected,) = agree(run, x)
    np.testing.assert_array_equal(in_small_tiles(x, run), expected)


@pytest.mark.parametrize(
    ("n", "at", "special"), covering([5, 64, 700], [0, 3, -2], [np.nan, -np.nan, np.inf, -np.inf, -0.0], least=15)
)
def test_special_values_go_on_as_in_numpy(n: int, at: int, special: float) -> None:
    x = drawn((n,), "float64")
    x[at] = special
    for function, numpys in ((cumsum, np.cumsum), (cummax, np.maximum.accumulate), (cummin, np.minimum.accumulate)):
        found = in_small_tiles(x, lambda x, function=function: [function(x, 0)])
        np.testing.assert_allclose(found, numpys(x), rtol=1e-12, atol=1e-12)


def test_zeros_keep_their_signs_in_extremes() -> None:
    x = np.tile([-0.0, 0.0, -0.0], 100)
    assert not np.signbit(in_small_tiles(x, lambda x: [cummax(x, 0)])[1:]).any()
    assert np.signbit(in_small_tiles(x, lambda x: [cummin(x, 0)])).all()


@pytest.mark.parametrize(("shape", "axis"), [((1000,), 0), ((3, 999), 1), ((600, 9), 0), ((40, 77), 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_depend_on_neither_threads_nor_vectors(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    x = drawn(shape, dtype)
    p = staged(lambda x: [cumsum(x, axis)], [x])
    scheduled, found = schedule(optimize(p), TINY), []
    for bits, threads in ((None, (1, 2, 3)), (128, (2,)), (256, (2,)), (512, (2,))):
        runnable = executable(scheduled.module, vector_bits=bits)
        for count in threads:
            with config.using(threads=count):
                found.append(call(scheduled, runnable, p, [x])[0].tobytes())
    assert set(found) == {found[0]}


@pytest.mark.parametrize(
    ("n", "dtype"), covering([1 << 16, 65_541, 100_003, 1 << 17, 300_007], ["int64", "int32", "float64"], least=8)
)
def test_tiles_of_many_pieces_are_added_up_like_small_ones(n: int, dtype: str) -> None:
    """Tiles of a real size are read and written in turns, piece by piece, which small ones are too short for."""
    x = drawn((n,), dtype)
    for reverse in (False, True):
        along = slice(None, None, -1 if reverse else 1)
        running = jit(lambda x, reverse=reverse: cumsum(x, 0, reverse))
        found = []
        for threads in (1, 2):
            with config.using(threads=threads):
                found.append(np.asarray(running(x)))
        assert found[0].tobytes() == found[1].tobytes()
        same(found[0], np.cumsum(x[along], dtype=dtype)[along])


def in_halves(x: Any) -> Any:
    """The rule of `ir.loop.Prefix`: the last of each first half with every element of the second."""
    if len(x) == 1:
        return x
    first, second = (in_halves(half) for half in np.split(x, 2))
    return np.concatenate([first, first[-1] + second])


@pytest.mark.parametrize("n", [1, 8, 40, 43])
def test_rows_are_added_up_in_halves_of_eight(n: int) -> None:
    x, expected, before = drawn((n,), "float64"), np.empty(n), 0.0
    for start in range(0, n, 8):
        row = np.zeros(8)
        row[: len(x[start : start + 8])] = x[start : start + 8]
        expected[start : start + 8] = (before + in_halves(row))[: n - start]
        before = before + in_halves(row)[-1]
    (found,) = agree(lambda x: [cumsum(x, 0)], x)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(5000,), (1200, 6)])
def test_sums_of_what_is_not_negative_never_decrease(shape: tuple[int, ...]) -> None:
    """As where one addition follows another: who searches in such sums relies on it."""
    x = np.exp(RNG.uniform(-40, 3, shape))
    assert (np.diff(in_small_tiles(x, lambda x: [cumsum(x, 0)]), axis=0) >= 0).all()
    assert (np.diff(agree(lambda x: [cumsum(x, 0)], x)[0], axis=0) >= 0).all()


def test_products_of_floats_stay_in_order() -> None:
    """Parts of them might overflow."""
    x = np.tile([1e-200, 1e200, 1e200, 1e-200], 100)
    (found,) = agree(lambda x: [cumprod(x, 0)], x)
    np.testing.assert_array_equal(found, np.cumprod(x))
    np.testing.assert_array_equal(in_small_tiles(x, lambda x: [cumprod(x, 0)]), np.cumprod(x))


def test_products_of_integers_wrap() -> None:
    x = RNG.integers(1, 100, 999)
    agree(lambda x: [cumprod(x, 0)], x)
    np.testing.assert_array_equal(in_small_tiles(x, lambda x: [cumprod(x, 0)]), np.cumprod(x))


@pytest.mark.parametrize(("shape", "axis"), [((789,), 0), ((3, 137), 1), ((41, 9), 0), ((19, 33), 0), ((2, 23, 9), 1)])
def test_what_is_summed_may_be_computed_there(shape: tuple[int, ...], axis: int) -> None:
    x = RNG.standard_normal(shape)
    for element in (lambda x: mul(x, x), lambda x: add(exp(x), exp(mul(x, x)))):
        run = lambda x, element=element: [cumsum(element(x), axis)]  # noqa: E731
        (expected,) = agree(run, x)
        found = in_small_tiles(x, run)
        same(found, expected)
        np.testing.assert_array_equal(shared(staged(run, [x]), [x])[0], found)


@pytest.mark.parametrize(("shape", "axis"), [((15, 0, 5), 0), ((3, 15, 0, 4), 1), ((0, 5, 4), 1)])
def test_what_is_summed_there_may_have_no_elements(shape: tuple[int, ...], axis: int) -> None:
    run = lambda x: [cumsum(mul(x[:, 1:], x[:, 1:]) if axis else mul(x[1:], x[1:]), axis)]  # noqa: E731
    x = np.zeros(shape)
    (expected,) = agree(run, x)
    same(in_small_tiles(x, run), expected)


def test_faults_within_are_found_once_for_all() -> None:
    x, places = np.arange(600.0), np.tile(np.arange(600), 300)
    running = jit(lambda x, i: tnp.cumsum(x[i]))
    np.testing.assert_allclose(running(x, places), np.cumsum(x[places]), rtol=1e-13)
    places[[150_077, 70_300]] = 777, 666
    with pytest.raises(IndexError, match="666"):
        running(x, places)


def test_long_rows_are_cut_and_short_ones_are_one_loop() -> None:
    def entry_loops(n: int) -> tuple[int, int]:
        scheduled = schedule(optimize(staged(lambda x: [cumsum(x, 0)], [np.empty(n)])))
        (entry,) = (f for f in scheduled.module.functions if f.name == scheduled.module.entry)
        within = [s for s in statements_of(entry.body) if isinstance(s, For)]
        assert all(s.share is not None for s in statements_of(entry.body) if isinstance(s, Invoke)) or not within
        return len(within), prefixes(scheduled)

    elements = TILE // 8
    assert entry_loops(8 * elements - 1) == (0, 1)
    assert entry_loops(8 * elements) == (3, 2)  # a tile beside the one before it, or alone
    assert entry_loops(10**7) == (3, 2)
