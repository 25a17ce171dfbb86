"""The kernels of library calls: which shapes get which, and the panels that threads share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tracer.codegen.llvm.kernels.gemm.skinny import COUNTS, FORMS
from tracer.ir.dtypes import F32
from tracer.ir.loop import Along, Block, Buffer, Constant, Function, Kernel, Library, Module, Space, Split
from tracer.ir.loop.build import Builder
from tracer.schedule.algorithms.library_kernels import (
    cholesky_kernel,
    choose_kernels,
    product_kernel,
    sort_kernel,
    system_kernel,
    top_k_kernel,
)


def product(
    dtype: str, m: int, n: int, k: int, a: int = 0, b: int = 0, *, batch: int = 1, tiles: bool = False
) -> Kernel:
    return product_kernel(dtype, (batch, m, n, k, a, b), tiles=tiles)


def test_large_matrices_beside_skinny_ones_have_kernels_of_their_own() -> None:
    assert product("f32", 4096, 3, 4096).name == "dots3"
    assert product("f64", 4096, 3, 4096, 0, 1).name == "dots3"
    assert product("f64", 2, 4096, 4096, 1, 0).name == "rows2"
    assert product("f32", 7, 4096, 4096, 0, 1).name == "outs7"
    for m, n, k in ((4096, 1, 4096), (200, 3, 200), (4096, 3, 20)):
        assert product("f32", m, n, k).name == ""
    for m, n, k in ((4096, 8, 4096), (8, 4096, 4096)):
        assert product("f32", m, n, k).name == "own"
    assert product("f32", 4096, 3, 4096, 1, 0).name == ""
    assert product("c64", 4096, 3, 4096).name == ""


def test_vectors_and_complex_numbers_are_left_to_blas() -> None:
    assert product("f32", 64, 64, 64).name == product("bf16", 1, 64, 64).name == "own"
    assert product("f32", 64, 1, 64).name == product("f32", 1, 64, 64).name == product("c64", 64, 64, 64).name == ""


def test_panels_of_the_large_matrix() -> None:
    assert product("f32", 300, 3, 300) == Kernel("dots3")
    assert product("f32", 1000, 3, 1000) == Kernel("dots3", Split(Along.ROWS, 4, 264))
    assert product("f64", 4, 4096, 4096) == Kernel("rows4", Split(Along.COLUMNS, 8, 512, 2))
    assert product("f64", 4, 500, 500, batch=9) == Kernel("rows4", Split(Along.BATCHES, 9, 1))


def test_tiles_take_larger_panels() -> None:
    assert product("bf16", 512, 1024, 512) == Kernel("own", Split(Along.COLUMNS, 16, 64, 4))
    assert product("bf16", 512, 1024, 512, tiles=True) == Kernel("own", Split(Along.COLUMNS, 4, 256))
    assert product("f32", 512, 1024, 512, tiles=True) == product("f32", 512, 1024, 512)


SIZES = st.integers(0, 5000)


@given(
    st.sampled_from(("f32", "f64", "c64", "c128", "bf16")), st.integers(0, 40), SIZES, SIZES, SIZES,
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
@example("f32", 1, 78, 78, 414, False, False, False)
def test_panels_cover_the_axis_that_they_split(
    dtype: str, batch: int, m: int, n: int, k: int, a: bool, b: bool, tiles: bool
) -> None:
    kernel = product(dtype, m, n, k, int(a), int(b), batch=batch, tiles=tiles)
    assert kernel.name in ("", "own", *(f"{form}{count}" for form in FORMS for count in COUNTS))
    if (split := kernel.split) is not None:
        length = {Along.BATCHES: batch, Along.ROWS: m, Along.COLUMNS: n}[split.along]
        assert (split.count - 1) * split.width < length <= split.count * split.width
        assert 1 <= split.at_once <= split.count


def test_large_real_matrices_are_factored_in_blocks() -> None:
    assert cholesky_kernel("f64", (1, 192)) == Kernel("blocked")
    assert cholesky_kernel("f64", (1, 191)) == cholesky_kernel("c64", (1, 300)) == Kernel()


def test_systems_by_their_right_hand_sides() -> None:
    assert system_kernel("f32", (3, 100, 1)) == Kernel("vector", Split(Along.BATCHES, 3, 1, 26))
    assert system_kernel("f32", (1, 128, 200)) == Kernel("blocked", Split(Along.COLUMNS, 2, 144, 1))
    assert system_kernel("f32", (1, 127, 200)) == system_kernel("c64", (1, 128, 1)) == Kernel()


@pytest.mark.parametrize(("choose", "at_once"), [(sort_kernel, 81), (lambda d, s: top_k_kernel(d, (*s, 5)), 163)])
def test_rows_are_shared_where_there_is_work_enough(choose: Any, at_once: int) -> None:
    assert choose("f32", (200, 100)) == Kernel("", Split(Along.ROWS, 200, 1, at_once))
    assert choose("f32", (1, 20000)) == choose("f32", (100, 100)) == choose("f32", (5, 0)) == Kernel()


def module(*sizes: int) -> Module:
    matrices = [Buffer(name, F32, 1 << 20, Space.INPUT) for name in "ab"]
    out, b = Buffer("out", F32, 1 << 20, Space.OUTPUT, written=True), Builder()
    with b.for_("i", 0, 3):
        b.library("gemm_f32", *matrices, out, *sizes, 0, 0, 1, 1)
    return Module((Function("main", (*matrices, out), b.finish()),), "main")


def calls(block: Block) -> list[Library]:
    return [s for loop in block.statements for s in loop.body.statements]  # type: ignore[union-attr]


def test_the_pass_chooses_once() -> None:
    chosen = choose_kernels(module(1, 100, 100, 100))
    (call,) = calls(chosen.functions[0].body)
    assert call.kernel == Kernel("own")
    assert all(isinstance(x, Constant) for x in call.arguments[3:])
    assert choose_kernels(chosen) is chosen


def test_a_module_of_plain_calls_stays_as_it_is() -> None:
    plain = module(1, 2, 2, 2)
    assert choose_kernels(plain) is plain
