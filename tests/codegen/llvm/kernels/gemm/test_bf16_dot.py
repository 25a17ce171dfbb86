"""Products of bf16 by pairs in registers, for which a model stands in where the machine has no instruction."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.codegen.llvm.kernels.gemm.pair_products import NAME, Sizes, assert_near, both_ways, operands, product
from tracer.codegen.llvm.kernel_modules import PRODUCT
from tracer.codegen.llvm.kernels.gemm.bf16_dot import dots_text, has_dots
from tracer.codegen.llvm.toolchain.object_code import LoadedModule, compile_object, load_object

DOT = "llvm.x86.avx512bf16.dpbf16ps.512"
_WORDS, _FLOATS = "<16 x i32>", "<16 x float>"
MODEL_OF_DOT = f"""\
declare {_FLOATS} @llvm.fma.v16f32({_FLOATS}, {_FLOATS}, {_FLOATS})
define internal {_FLOATS} @model.dot({_FLOATS} %total, <32 x bfloat> %x, <32 x bfloat> %y) {{
  %x.words = bitcast <32 x bfloat> %x to {_WORDS}
  %y.words = bitcast <32 x bfloat> %y to {_WORDS}
  %x.high = and {_WORDS} %x.words, splat (i32 -65536)
  %y.high = and {_WORDS} %y.words, splat (i32 -65536)
  %x.low = shl {_WORDS} %x.words, splat (i32 16)
  %y.low = shl {_WORDS} %y.words, splat (i32 16)
  %a = bitcast {_WORDS} %x.high to {_FLOATS}
  %b = bitcast {_WORDS} %y.high to {_FLOATS}
  %c = bitcast {_WORDS} %x.low to {_FLOATS}
  %d = bitcast {_WORDS} %y.low to {_FLOATS}
  %first = call {_FLOATS} @llvm.fma.v16f32({_FLOATS} %a, {_FLOATS} %b, {_FLOATS} %total)
  %second = call {_FLOATS} @llvm.fma.v16f32({_FLOATS} %c, {_FLOATS} %d, {_FLOATS} %first)
  ret {_FLOATS} %second
}}"""
SHAPES: list[Sizes] = [
    (1, 1, 2), (3, 5, 7), (8, 48, 256), (9, 49, 257), (100, 17, 1300), (7, 100, 513), (33, 200, 40), (13, 97, 1),
    (5, 70, 1026),
]  # fmt: skip


@cache
def loaded() -> LoadedModule:
    return load_object(compile_object(runnable(dots_text())), {}, export=NAME)


def pairs() -> Any:
    return PRODUCT(loaded().address(NAME))


def runnable(text: str) -> str:
    """The kernels' text with a model of products of pairs where the machine has none."""
    if has_dots():
        return text
    lines = [line for line in text.splitlines() if not line.startswith(f"declare <16 x float> @{DOT}")]
    return "\n".join([*lines, MODEL_OF_DOT]).replace(f"@{DOT}(", "@model.dot(")


@pytest.mark.parametrize(("sizes", "transposed"), both_ways(SHAPES), ids=str)
def test_products_are_sums_of_products(sizes: Sizes, transposed: bool) -> None:
    a, b = operands(*sizes)
    assert_near(product(pairs(), a, b, transposed=transposed, margin=2), a, b)


def test_what_lies_beyond_an_odd_row_is_not_multiplied() -> None:
    a, b = operands(20, 40, 33)
    wide = np.full((20, 34), np.nan, ml_dtypes.bfloat16)
    wide[:, :33] = a
    out = np.empty((20, 40), "f4")
    pairs()(wide.ctypes.data, b.ctypes.data, out.ctypes.data, 20, 40, 33, 34, 1, 40, 1, 40, None)
    assert_near(out, a, b)


def test_products_of_pairs_are_the_machines_instruction() -> None:
    if not has_dots():
        pytest.skip("the machine has no AVX512-BF16")
    a, b = operands(40, 70, 500)
    x, y = a.copy(), b.copy()
    x[3], y[:, 5] = 1e-39, 2.0  # a subnormal bf16 is zero to the instruction
    out = product(pairs(), x, y)
    assert out[3, 5] == 0
    y[:, 7] = np.inf
    assert np.isnan(product(pairs(), x, y)[3, 7]).all()
