"""sort as loop IR: stable, NaN last, every dtype, any axis, against NumPy's stable sorts."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.grids import covering
from tests.schedule.running import call, compiled, flat, interpreted, run, staged
from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.llvm.kernels.routines import library_names
from tracer.codegen.llvm.kernels.sort import numpy_sort
from tracer.codegen.reference.interpreter import Order
from tracer.ir.types import KeyType, array_type
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.sorting import sort, top_k
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.shapes import broadcasted_iota, rev
from tracer.schedule.pipeline import schedule
from tracer.settings import config
from tracer.trace.stage import stage

Array = np.ndarray[Any, Any]
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.nan, np.inf, -np.inf, 0.5])


def values(dtype: str, *shape: int, seed: int = 0) -> Array:
    """Few distinct values, so that there are many ties, and every special one."""
    rng, kind = np.random.default_rng(seed), np.dtype(getattr(ml_dtypes, dtype, dtype))
    if kind.kind in "biu":
        ends = [0, 1] if kind.kind == "b" else [np.iinfo(kind).min, np.iinfo(kind).max, 0, 1, 2, 100]
        return rng.choice(np.array(ends, kind), shape)
    real = rng.choice(EDGES, shape)
    if kind.kind != "c":
        return real.astype(kind)
    result = np.empty(shape, kind)
    result.real, result.imag = real, rng.choice(EDGES, shape)
    return result


def check(function: Callable[..., Any], *arrays: Array, backend: Any = run) -> None:
    """Equal to the reference, zeros by their signs."""
    program = staged(function, arrays)
    for got, wanted in zip(backend(program, arrays), run_reference(program, arrays), strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        a, b = flat(np.ascontiguousarray(got)), flat(np.ascontiguousarray(wanted))
        if a.dtype.kind not in "fV":
            np.testing.assert_array_equal(a, b)
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a) | np.isnan(a), np.signbit(b) | np.isnan(b))


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_any_length_sort(dtype: str) -> None:
    arrays = [values(dtype, n, seed=n) for n in (0, 1, 2, 3, 7, 8, 9, 16, 17, 100, 129)]
    check(lambda *xs: [sort(x, 0) for x in xs], *arrays)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_axis_sorts_and_payloads_follow_stably(dtype: str) -> None:
    x, y = values(dtype, 3, 21, 2), values(dtype, 3, 21, 2, seed=1)
    positions = np.arange(x.size).reshape(x.shape)
    by_axis = lambda *xs: [r for d in range(3) for r in sort(xs, d)]  # noqa: E731
    check(lambda *xs: [*by_axis(*xs), *sort(xs, 1, num_keys=2)], x, y, positions)


def test_several_keys_and_payloads_of_other_dtypes() -> None:
    a, b, c = values("bool", 50), values("float32", 50), values("complex64", 50)
    check(lambda *xs: sort(xs, 0, num_keys=3), a, b, c, values("int8", 50), values("bfloat16", 50))
    check(lambda *xs: sort(xs, 0, num_keys=3), c, b, a)


def test_random_keys_follow() -> None:
    words, x = np.arange(40, dtype=np.uint32).reshape(20, 2), values("float64", 20)
    program = stage(lambda xs: sort(tuple(xs), 0), [array_type(x.dtype, x.shape), KeyType((20,))]).program
    for got, wanted in zip(run(program, [x, words]), run_reference(program, [x, words]), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_the_greatest_come_first_and_ties_keep_their_order() -> None:
    x = values("float32", 4, 33)
    program = staged(lambda x: top_k(x, 5, axis=1), [x])
    for got, wanted in zip(run(program, [x]), run_reference(program, [x]), strict=True):
        np.testing.assert_array_equal(got, wanted)


REAL = [dtype for dtype in DTYPES if not dtype.startswith("complex")]
SIZES = [(64, 1), (65, 16), (131, 10), (1000, 7), (63, 10), (64, 17)]


@pytest.mark.parametrize(("dtype", "sizes"), covering(REAL, SIZES, least=15), ids=str)
def test_the_greatest_of_long_rows(dtype: str, sizes: tuple[int, int]) -> None:
    n, k = sizes
    x = values(dtype, 3, n)
    (rising,) = run(staged(lambda x: sort(x, 1), [x[:1]]), [x[:1]])
    x = np.concatenate([x, rising, rising[:, ::-1], np.full_like(x[:1], x[0, 0])])
    check(lambda x: top_k(x, k, axis=1), x)


def test_the_greatest_of_rows_that_threads_share() -> None:
    x = np.random.default_rng(5).standard_normal((301, 500)).astype("float32")
    x[7] = np.nan
    check(lambda x: top_k(x, 12, axis=1), x)
    check(lambda x: top_k(x, 12, axis=0), x[:, :3])
    check(lambda x: top_k(x + x, 3, axis=1)[1:], x)  # the values are not wanted


def test_few_of_a_long_row_are_found_by_one_call() -> None:
    x = values("float32", 5, 1000)
    for k, routines in ((10, ["topk_f32"]), (100, ["argsort_f32"])):
        module = schedule(optimize(staged(lambda x, k=k: top_k(x, k, axis=1), [x]))).module
        assert library_names(module) == routines
    interpret = lambda p, a: interpreted(p, a, Order.FORWARD)  # noqa: E731
    check(lambda x: tuple(top_k(x, 3, axis=1)), x, backend=interpret)


def test_a_million_elements_sort() -> None:
    x = np.random.default_rng(3).standard_normal(1_000_003).astype("float32")
    x[::1000] = np.nan
    program = staged(lambda x: sort((x, broadcasted_iota(np.dtype("int64"), x.type.shape, 0)), 0), [x])
    scheduled, runnable = compiled(program)
    ordered, positions = call(scheduled, runnable, program, [x])
    np.testing.assert_array_equal(positions, np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(ordered, x[positions])


@pytest.mark.parametrize("order", Order)
def test_the_interpreter_finds_no_fault_in_the_loops(order: Order) -> None:
    x = values("float32", 2, 21)
    check(lambda x, i: sort((x, i), 1), x, np.arange(42).reshape(2, 21), backend=lambda p, a: interpreted(p, a, order))
    check(lambda x: sort(x, 0), values("complex64", 11), backend=lambda p, a: interpreted(p, a, order))


def test_where_numpy_has_no_such_functions_python_sorts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_sort, "_in_numpy", lambda dtype, place: 0)
    numpy_sort.numpy_address.cache_clear()
    try:
        check(lambda x: sort(x, 1), values("float32", 3, 50))
        check(lambda x: sort([x, broadcasted_iota("int64", (3, 50), 1)], 1, num_keys=1), values("int64", 3, 50))
    finally:
        numpy_sort.numpy_address.cache_clear()


def test_a_function_that_does_not_sort_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(lambda *_: 0)
    monkeypatch.setattr(numpy_sort, "_in_numpy", lambda dtype, place: ctypes.cast(idle, ctypes.c_void_p).value)
    numpy_sort.numpy_address.cache_clear()
    try:
        check(lambda x: sort(x, 0), values("float64", 77))
    finally:
        numpy_sort.numpy_address.cache_clear()


def test_many_rows_are_shared_by_threads() -> None:
    x = values("float32", 300, 90, seed=4)
    for count in (1, 3):
        with config.using(threads=count):
            check(lambda x: sort(x, 1), x)
            check(lambda x: sort([x, broadcasted_iota("int64", (300, 90), 1)], 1, num_keys=1), x)
    program = staged(lambda x: sort(x, 1), [x])
    assert "@tracer_sort_rows_shared_f32(" in emit_module(schedule(optimize(program)).module)


def test_few_short_rows_are_sorted_by_a_call_and_many_by_loops() -> None:
    def called(*shape: int) -> list[str]:
        return library_names(schedule(optimize(staged(lambda x: sort(x, -1), [values("float64", *shape)]))).module)

    assert called(16) == called(4, 16) == called(40, 40) == ["sort_f64"]
    assert called(5, 16) == []


def test_what_sorts_rows_is_text_that_programs_share() -> None:
    """A program has none of it: it is compiled once on a machine."""
    text = emit_module(schedule(optimize(staged(lambda x: sort(x, 0), [values("float32", 16)]))).module)
    assert "declare void @tracer_sort_rows_f32(" in text
    assert "@tracer_sort_f32" not in text


def order_of(x: Array) -> tuple[Array, Array]:
    """Positions and keys as compiled, both wanted."""
    program = staged(lambda x: sort((x, broadcasted_iota("int64", x.type.shape, x.ndim - 1)), -1), [x])
    scheduled, runnable = compiled(program)
    assert "radix" in emit_module(scheduled.module)
    ordered, positions = call(scheduled, runnable, program, [x])
    return positions, ordered


@pytest.mark.parametrize(
    "dtype", [d for d in DTYPES if d not in ("bool", "float16", "bfloat16") and "complex" not in d]
)
def test_positions_of_long_rows_are_numpys_stable_ones(dtype: str) -> None:
    rng = np.random.default_rng(5)
    kind = np.dtype(dtype)
    spread = rng.standard_normal(3000) * 1e6 if kind.kind == "f" else rng.integers(
        np.iinfo(kind).min, np.iinfo(kind).max, 3000, kind, endpoint=True
    )  # fmt: skip
    for x in (spread.astype(kind), values(dtype, 3000), values(dtype, 2, 2049)):
        positions, ordered = order_of(x)
        np.testing.assert_array_equal(positions, np.argsort(x, axis=-1, kind="stable"))
        np.testing.assert_array_equal(ordered, np.take_along_axis(x, positions, -1))
        if kind.kind == "f":
            np.testing.assert_array_equal(np.signbit(ordered), np.signbit(np.take_along_axis(x, positions, -1)))


@pytest.mark.parametrize(
    "x",
    [
        np.full(5000, 7.0), np.arange(5000.0), np.arange(5000.0)[::-1].copy(), np.arange(5000.0) % 50,
        np.append(1 + 1e-13 * (np.arange(9999) * 7919 % 1000), -1e300),
        np.repeat(np.arange(2000.0), 2) ** 2 + 1e-8 * (np.arange(4000) % 2 == 0),
        np.append(np.arange(4999.0), 0.5), np.append(np.full(3000, np.nan), -np.inf),
        5e-324 * (np.arange(3000) % 7 - 3),
    ],
    ids=["equal", "ascending", "descending", "few", "refused", "pairs", "last-first", "nan", "subnormal"],
)  # fmt: skip
def test_positions_of_long_rows_whatever_their_values(x: Array) -> None:
    np.testing.assert_array_equal(order_of(x)[0], np.argsort(x, kind="stable"))


def test_rows_of_positions_are_shared_by_threads() -> None:
    x = np.random.default_rng(6).standard_normal((40, 2500))
    with config.using(threads=3):
        np.testing.assert_array_equal(order_of(x)[0], np.argsort(x, axis=1, kind="stable"))


def test_only_what_is_wanted_of_a_sort_is_stored() -> None:
    x = values("float64", 4000)
    places = lambda x: sort((x, broadcasted_iota("int64", (4000,), 0)), 0)[1]  # noqa: E731
    module = schedule(optimize(staged(places, [x]))).module
    assert [function.name for function in module.functions] == ["main"]
    check(places, x)
    check(lambda x: sort((broadcasted_iota("int64", (4000,), 0), x), 0)[1], x)
    check(lambda x: sort((x, rev(broadcasted_iota("int64", (4000,), 0), (0,))), 0)[1], x)
    check(lambda x: sort((x, broadcasted_iota("int64", (40, 100), 0)), 1), x.reshape(40, 100))
