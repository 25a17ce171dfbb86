"""Reductions of memory by functions that programs share: the bits of loops written in place, and little to compile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.grids import covering
from tests.schedule.running import staged
from tracer import jit, lax
from tracer.codegen.llvm.emit.opt_level import level
from tracer.codegen.llvm.toolchain.outlined_functions import apart
from tracer.ir.target import CPU, Target
from tracer.passes.pipeline import optimize
from tracer.runtime.compile.compile import Compiled, compile_scheduled
from tracer.runtime.native.object_cache import objects
from tracer.schedule.pipeline import LOOP_PIPELINE, LoopPass, schedule

BLOCK = CPU.blocks.reduction
RNG = np.random.default_rng(12)
REDUCTIONS = (tnp.sum, tnp.prod, tnp.max, tnp.min, tnp.mean)


def array(dtype: str, n: int) -> Any:
    """Numbers whose sums and products are rounded."""
    if np.dtype(dtype).kind != "f":
        return RNG.integers(0, 100, n).astype(dtype)
    return (1 + RNG.standard_normal(n) * 1e-3).astype(dtype)


def computed(function: Any, x: Any, *, target: Target = CPU) -> np.ndarray[Any, Any]:
    return compiled(function, x, target=target).run([x])[0]


def compiled(function: Any, x: Any, *, target: Target = CPU, passes: Sequence[LoopPass] = LOOP_PIPELINE) -> Compiled:
    p = staged(lambda x: [function(x)], [x])
    return compile_scheduled(p, schedule(optimize(p, target), target, passes=passes))


def results(arrays: Sequence[Any], passes: Sequence[LoopPass] = LOOP_PIPELINE) -> list[Any]:
    """Each reduction on its own, and all bitwise ones of integers, of arrays of one shape."""
    functions = list(REDUCTIONS)
    if arrays[0].dtype.kind != "f":
        functions += [lambda x: lax.reduce_and(x, (0,)), lambda x: lax.reduce_or(x, (0,))]
    made = [compiled(f, arrays[0], passes=passes) for f in functions]
    return [program.run([x])[0] for program in made for x in arrays]


LENGTHS = (5003, 1, 5, 64, 1000, 8 * BLOCK, 8 * BLOCK + 77)


@pytest.mark.parametrize(
    ("dtype", "lengths"),
    [
        ("float32", LENGTHS), ("float64", LENGTHS), ("int32", LENGTHS[::2]), ("int64", LENGTHS[1::2]),
        ("uint32", LENGTHS[1::2]), ("uint64", LENGTHS[::2]),
    ],
)  # fmt: skip
def test_calls_give_the_bits_of_loops_in_place(dtype: str, lengths: tuple[int, ...]) -> None:
    first, *others = [array(dtype, n) for n in lengths]
    shapes = [[first], *([x] for x in others)]
    if dtype.startswith("f"):
        special = ((7, np.nan), (5002, np.inf), (0, -0.0), (9, 1e-40))
        shapes[0] += [np.where(np.arange(5003) == k, np.dtype(dtype).type(value), first) for k, value in special]
        shapes.append([np.full(100, -0.0, dtype)])
    in_place = [step for step in LOOP_PIPELINE if step.name != "outline_reductions"]
    assert len(in_place) == len(LOOP_PIPELINE) - 1
    for arrays in shapes:
        for one, other in zip(results(arrays), results(arrays, in_place), strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize(("dtype", "n", "times"), [("float64", 1 << 22, 4), ("float32", 10**7, 2)])
def test_blocks_of_large_arrays_are_read_side_by_side(dtype: str, n: int, times: int) -> None:
    """To the bits of one after another, as calls and in place."""
    x = array(dtype, n)
    name = f"@tracer_total_add_{'f64' if dtype == 'float64' else 'f32'}_{256 // x.itemsize}"
    found: list[list[Any]] = []
    for streams in (CPU.machine.streams, ()):
        target = replace(CPU, machine=replace(CPU.machine, streams=streams))
        programs = [staged(lambda x, k=k: tnp.sum(x * x) if k else tnp.sum(x), [x]) for k in (0, 1)]
        made = [compile_scheduled(p, schedule(optimize(p, target), target)) for p in programs]
        assert (f"{name}_{times}(" in made[0].text) == bool(streams)
        assert (f"{name}(" in made[0].text) != bool(streams)
        found.append([compiled.run([x])[0] for compiled in made])
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()


def lowered(function: Any, *shape: int, dtype: str = "float32") -> Any:
    return jit(function).lower(np.ones(shape, dtype))


def test_a_long_sum_has_no_vectors_of_its_own_and_is_compiled_at_level_0(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = lowered(tnp.sum, 10**6)
    assert "call float @tracer_total_add_f32_64(" in sums.llvm()
    assert "call float @tracer_total_add_f32_16(" in sums.llvm()
    assert "fadd <" not in sums.llvm()
    levels: list[int] = []
    get = objects.get
    monkeypatch.setattr(
        objects, "get", lambda text, opt=2, kept=True: (levels.append(opt), get(text, opt, kept=kept))[1]
    )
    for function, shape in ((tnp.sum, (10**6,)), (lambda x: x @ x, (64, 64)), (lambda x: tnp.sum(x * x), (10**6,))):
        lowered(function, *shape).compile()
    assert levels == [0, 0, 2]


def test_what_computes_or_is_short_stays_in_place() -> None:
    assert "@tracer_total_" in lowered(tnp.sum, 16).llvm()
    assert "@tracer_total_" not in lowered(lambda x: tnp.sum(x, axis=1), 1000, 64).llvm()
    assert "@tracer_total_" in lowered(lambda x: tnp.sum(x, axis=1), 100, 8192).llvm()
    for function in (lambda x: tnp.sum(x + 1), lambda x: (tnp.sum(x), tnp.max(x))):
        assert "@tracer_total_" not in lowered(function, 5000).llvm()


def test_short_programs_are_compiled_at_the_usual_level() -> None:
    assert level(lowered(tnp.sum, 16)._compiled.scheduled.module) == 2
    assert level(lowered(lambda x: x + 1, 10**6)._compiled.scheduled.module) == 2


def test_extremes_of_floats_are_common_functions_of_programs() -> None:
    """A block and what is left of one, the partial results: one function, for every length."""
    (first, one), (second, other) = (apart(lowered(tnp.max, n).llvm()) for n in (10**6, 3 * 10**5 + 1))
    assert one.keys() & other.keys()
    for program in (first, second):
        assert "call i32 @tracer_total_" in program
        assert "umax.v" not in program.partition("define ")[2]
    assert level(lowered(tnp.max, 10**6)._compiled.scheduled.module) == 0
    assert ".globl\ttracer_total_" in lowered(tnp.max, 10**6).asm()


@pytest.mark.parametrize(("n", "dtype"), covering([1, 3, 8, 9, 16, 17, 33, 64, 129], ["float32", "float64"], least=9))
def test_short_reductions_have_the_bits_of_all_lanes(dtype: str, n: int) -> None:
    """Lanes without elements are left out, where halves of them have none: whole vectors have no mask."""
    last = np.where(np.arange(n) == n - 1, np.nan, 1).astype(dtype)
    arrays = [array(dtype, n), np.full(n, -0.0, dtype), last]
    functions = [lambda x: tnp.sum(x * x), tnp.sum, tnp.max, tnp.prod]
    every_lane = replace(CPU, machine=replace(CPU.machine, reduction_bytes=256))
    text = jit(lambda x: tnp.sum(x * x)).lower(arrays[0]).llvm()
    vector = 64 // last.itemsize
    assert ("masked.load" in text) == (n not in (1, vector, 2 * vector, 4 * vector, 64))
    for f in functions:
        for x in arrays:
            assert computed(f, x).tobytes() == computed(f, x, target=every_lane).tobytes()


@pytest.mark.parametrize("n", [12, 128, 5000])
def test_sums_of_what_is_computed_beside_plain_sums_are_no_plain_sums(n: int) -> None:
    x = np.arange(1.0, n + 1)
    first, squares = jit(lambda x: (x.sum(), (x * x).sum()))(x)
    assert (float(first), float(squares)) == (n * (n + 1) / 2, n * (n + 1) * (2 * n + 1) / 6)
    greatest, halves = jit(lambda x: (x.max(), (0 - x).max()))(x)
    assert (float(greatest), float(halves)) == (n, -1)
