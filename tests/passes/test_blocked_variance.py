"""Sums of squares about means in blocks: which are cut, that memory is read once, and that nothing gets less exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.codegen.llvm.llvm_programs import executable
from tests.grids import each
from tests.schedule.running import call
from tests.targets import TINY
from tracer.ir.check import check_program
from tracer.ir.loop import Invoke, Space, View
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Program
from tracer.passes.blocked_variance import block_variances
from tracer.primitives.base.reference import run_reference
from tracer.schedule.pipeline import schedule
from tracer.settings import config

RNG = np.random.default_rng(8)


def drawn(shape: tuple[int, ...], dtype: str) -> Any:
    x = RNG.standard_normal((2, *shape))
    return (x[0] + 1j * x[1] if np.dtype(dtype).kind == "c" else x[0]).astype(dtype)


def optimized(f: Callable[..., Any], *operands: Any) -> Program:
    return tracer.jit(f).lower(*operands).optimized()


def readings(f: Callable[..., Any], x: Any) -> int:
    """How many nests that are not small read the operand."""
    module = schedule(optimized(f, x)).module
    (entry,) = (g for g in module.functions if g.name == module.entry)
    calls = [s for s in statements_of(entry.body) if isinstance(s, Invoke) and s.share is not None]
    return sum(any(isinstance(a, View) and a.buffer.space is Space.INPUT for a in s.arguments) for s in calls)


def exact(x: Any, axis: Any = None, ddof: int = 0) -> Any:
    """In eighty bits, or 128 where they are had."""
    wide = x.astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble)
    return np.var(wide, axis, ddof=ddof)


def both(f: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    """The results of a program as it is, and of one that is cut wherever that can be."""
    whole = optimized(f, x)
    cut = check_program(block_variances(whole, TINY))
    assert cut is not whole
    return tuple(run_reference(p, [np.asarray(x)]) for p in (whole, cut))  # type: ignore[return-value]


# What is cut


def moments(x: Any) -> Any:
    return tnp.mean(x), tnp.var(x)


def by_hand(x: Any) -> Any:
    return ((tnp.mean(x) - x) ** 2).mean()


@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (tnp.var, (1 << 20,)),
        (tnp.var, (1000, 1001)),
        (moments, (10**6,)),
        (by_hand, (10**6,)),
        (lambda x: tnp.var(x, axis=0), (1 << 14, 100)),
        (lambda x: tnp.var(x, axis=1), (4, 1 << 18)),
        (lambda x: tnp.var(x, axis=(0, 2, 3)), (64, 16, 32, 32)),
        (lambda x: tnp.std(x, axis=(0, 1, 2), ddof=1), (64, 32, 32, 16)),
    ],
)
def test_large_arrays_are_read_once(f: Callable[..., Any], shape: tuple[int, ...]) -> None:
    assert readings(f, np.zeros(shape)) == 1


def test_of_half_precision_too() -> None:
    assert readings(tnp.var, np.zeros(1 << 20, np.float16)) == 1


def test_what_uses_the_mean_afterwards_reads_once_more() -> None:
    assert readings(lambda x: (x - tnp.mean(x)) / tnp.std(x), np.zeros(1 << 20)) == 2


@pytest.mark.parametrize("f", [tracer.grad(tnp.var), tracer.grad(tnp.std), tracer.value_and_grad(tnp.var)])
def test_gradients_read_twice(f: Callable[..., Any]) -> None:
    assert readings(f, np.zeros(1 << 20)) == 2


@each(
    ("f", "shape"),
    [
        (tnp.var, (1 << 16,)),  # in a cache
        (lambda x: tnp.var(x, axis=1), (1 << 10, 1 << 10)),  # rows are blocks
        (tracer.nn.standardize, (1 << 7, 1 << 14)),  # so they are
        (lambda x: tnp.var(x, mean=tnp.ones(1)), (1 << 20,)),  # no sum of these
        (lambda x: ((x - tnp.mean(x)) * (x - 1)).sum(), (1 << 20,)),  # no square
        (lambda x: ((x - tnp.mean(x, axis=0)) ** 2).sum(axis=1), (1 << 10, 1 << 10)),  # over other axes
        (lambda x: tnp.var(x, axis=0), (4, 1 << 18)),  # a column has four elements
    ],
)
def test_others_stay_as_they_are(f: Callable[..., Any], shape: tuple[int, ...]) -> None:
    program = optimized(f, np.zeros(shape))
    assert block_variances(program) is program


def test_within_loops() -> None:
    whole, cut = both(lambda x: tracer.lax.map(lambda row: tnp.var(row) * row[0], x), RNG.standard_normal((3, 256)))
    np.testing.assert_allclose(cut, whole, rtol=1e-14)


def test_of_squares_that_are_summed_again() -> None:
    """The sum of squares is what the second variance has its mean of: one of both is cut."""
    x = RNG.standard_normal(300)
    whole, cut = both(lambda x: tnp.var((x - tnp.mean(x)) ** 2), x)
    np.testing.assert_allclose(cut, whole, rtol=1e-13)


# Values


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((500,), None), ((503,), None), ((30, 31), None), ((60, 5), 0), ((61, 5), 0), ((5, 60), 1),
     ((6, 3, 4, 5), (0, 2, 3)), ((7, 6, 5, 3), (0, 1, 2)), ((3, 50, 4), 1)],
)  # fmt: skip
def test_values(shape: tuple[int, ...], axis: Any, dtype: str) -> None:
    x = drawn(shape, dtype) + np.dtype(dtype).type(3)

    def f(x: Any) -> Any:
        return tnp.var(x, axis=axis, ddof=1), tnp.mean(x, axis=axis)

    tolerance = 16 * np.finfo(dtype).eps
    _, (variance, mean) = both(f, x)
    np.testing.assert_allclose(variance, exact(x, axis, 1), rtol=tolerance)
    np.testing.assert_allclose(
        mean, np.mean(x.astype(np.result_type(dtype, np.longdouble)), axis), rtol=tolerance, atol=tolerance
    )
    assert variance.dtype == x.real.dtype


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("n", [10**6, 1_000_003])
def test_compiled_values(n: int, dtype: str) -> None:
    x = drawn((n,), dtype)
    np.testing.assert_allclose(tracer.jit(tnp.var)(x), exact(x), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("n", [130, 200, 512])
def test_threads_do_not_change_bits(n: int) -> None:
    x = RNG.standard_normal((n, 3))
    program = block_variances(optimized(lambda x: (tnp.var(x), tnp.var(x, axis=0)), x), TINY)
    scheduled = schedule(program, TINY)
    runnable, results = executable(scheduled.module), []
    for count in (1, 2, 3):
        with config.using(threads=count):
            results.append([y.tobytes() for y in call(scheduled, runnable, program, [x])])
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("shape", [(300, 1), (61, 5)])
def test_sums_of_differences(shape: tuple[int, ...]) -> None:
    """They are what rounding the mean left: those of blocks, which are smaller, lose no more."""
    x = RNG.standard_normal(shape) + 100.0
    whole, cut = both(lambda x: -((x - (tnp.mean(x, axis=0) - 2.0)) * x[0, ..., 0] * 3.0).sum(axis=0), x)
    np.testing.assert_allclose(cut, whole, rtol=1e-12)


# What is hard


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
def test_large_offsets_lose_no_more_than_by_two_passes(offset: float) -> None:
    x = (offset + 100 * RNG.standard_normal(1 << 20)).astype(np.float32)
    expected = float(exact(x))
    ulp = float(np.spacing(np.float32(offset)))
    assert abs(float(tracer.jit(tnp.var)(x)) - expected) <= 1e-5 * expected + 4 * ulp**2


def test_means_of_blocks_that_are_rounded_do_not_show() -> None:
    x = 1e8 + RNG.standard_normal(10**6)
    np.testing.assert_allclose(tracer.jit(tnp.var)(x), exact(x), rtol=1e-14)


@pytest.mark.parametrize("value", [3.0, -(2.0**99), 0.0])
def test_of_one_number_it_is_zero(value: float) -> None:
    assert tracer.jit(tnp.var)(np.full(10**6, value)) == 0.0


def test_of_a_number_whose_multiples_are_rounded_it_is_what_the_mean_loses() -> None:
    x = np.full(10**6, 0.1)
    assert float(tracer.jit(tnp.var)(x)) <= (16 * np.spacing(0.1)) ** 2


@pytest.mark.parametrize("special", [[np.nan], [np.inf], [-np.inf, np.inf]])
def test_what_is_not_finite_makes_it_nan(special: list[float]) -> None:
    x = RNG.standard_normal(300)
    x[100 : 100 + len(special)] = special
    with np.errstate(all="ignore"):
        for results in both(tnp.var, x):
            assert np.isnan(results[0])


@pytest.mark.parametrize("x", [np.full(300, 1e308), np.r_[np.ones(200), np.full(100, 1e300)]])
def test_what_is_too_large_makes_it_infinite(x: Any) -> None:
    with np.errstate(all="ignore"):
        for results in both(tnp.var, x):
            assert np.isposinf(results[0])


# Derivatives


def test_derivatives_of_large_arrays() -> None:
    x, v = RNG.standard_normal((2, 300_000))
    n, centred = len(x), x - x.mean()
    value, gradient = tracer.jit(tracer.value_and_grad(tnp.var))(x)
    np.testing.assert_allclose(value, exact(x), rtol=1e-14)
    np.testing.assert_allclose(gradient, 2 * centred / n, rtol=1e-10, atol=1e-18)
    _, tangent = tracer.jit(lambda x, v: tracer.jvp(tnp.var, (x,), (v,)))(x, v)
    np.testing.assert_allclose(tangent, 2 * (centred @ v) / n, rtol=1e-10)
    (product,) = tracer.jit(lambda x, v: tracer.hvp(tnp.var, (x,), (v,)))(x, v)
    np.testing.assert_allclose(product, 2 * (v - v.mean()) / n, rtol=1e-10, atol=1e-18)


def test_in_lanes() -> None:
    x = RNG.standard_normal((3, 200_000))
    np.testing.assert_allclose(tracer.jit(tracer.vmap(tnp.var))(x), exact(x, 1), rtol=1e-14)
