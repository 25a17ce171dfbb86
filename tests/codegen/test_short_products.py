"""Products of bf16 by our kernels: by pairs, by conversion, and in tiles, which a model of the instructions runs."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.codegen.tile_model import INSTRUCTIONS, TileUnit
from tests.laws.tolerances import TOLERANCES, close
from tracer.codegen.llvm.jit import LoadedModule, compile_object, load_object
from tracer.codegen.llvm.machine import is_x86, llvm
from tracer.codegen.llvm.shared import PRODUCT
from tracer.codegen.llvm.short_products import DEPTH, has_dots, has_tiles, short_products_text
from tracer.codegen.llvm.tiles import agrees, permitted
from tracer.codegen.llvm.transposes import SYMBOL, transpose_text

Array = np.ndarray[Any, Any]
Sizes = tuple[int, int, int]
NAME = "tracer_product_bf16"
NO_TILES = ctypes.c_int32(0)
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
TILED: list[Sizes] = [
    (32, 32, 32),
    (33, 64, 96),
    (40, 33, 31),
    (64, 48, 513),
    (64, 48, 1025),
    (70, 95, 1090),
    (95, 17, 64),
]


@cache
def loaded() -> LoadedModule:
    code = compile_object(runnable(short_products_text(with_tiles=False)))
    return load_object(code, {"tracer_tiles": ctypes.addressof(NO_TILES)}, export=NAME)


@cache
def turns() -> LoadedModule:
    """What transposes pairs."""
    return load_object(compile_object(transpose_text(4)), {}, export=f"{SYMBOL}4")


def pairs() -> Any:
    return PRODUCT(loaded().address(NAME))


def runnable(text: str) -> str:
    """The kernels' text with a model of products of pairs where the machine has none."""
    if has_dots():
        return text
    lines = [line for line in text.splitlines() if not line.startswith(f"declare <16 x float> @{DOT}")]
    return "\n".join([*lines, MODEL_OF_DOT]).replace(f"@{DOT}(", "@model.dot(")


def tiled(unit: TileUnit, tiles: ctypes.c_int32) -> Any:
    """The kernels with a model of the tiles, which the module must not outlive."""
    symbols = {**unit.symbols(), "tracer_tiles": ctypes.addressof(tiles)}
    module = load_object(
        compile_object(unit.text(runnable(short_products_text(with_tiles=True)))), symbols, export=NAME
    )
    function = PRODUCT(module.address(NAME))
    return lambda *given: (module, function(*given))[1]


def both_ways(shapes: list[Sizes]) -> list[tuple[Sizes, bool]]:
    """Pairs of a transposed operand lie next to each other where k is even."""
    return [
        (sizes, transposed) for sizes in shapes for transposed in (False, True) if not (transposed and sizes[2] % 2)
    ]


def operands(m: int, n: int, k: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(m + n + k)
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    return a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)


def product(function: Any, a: Array, b: Array, *, transposed: bool = False, margin: int = 0) -> Array:
    """a @ b by a kernel; `margin` elements follow each row of the result."""
    (m, k), n = a.shape, b.shape[1]
    given = np.ascontiguousarray(b.T if transposed else b)
    out = np.full((m, n + margin), np.nan, "f4")
    steps = (1, k) if transposed else (n, 1)
    turn = turns().address(f"{SYMBOL}4")
    function(a.ctypes.data, given.ctypes.data, out.ctypes.data, m, n, k, k, 1, *steps, n + margin, turn)
    assert np.isnan(out[:, n:]).all()
    return out[:, :n]


def assert_near(got: Array, a: Array, b: Array) -> None:
    exact, scale = a.astype("f8") @ b.astype("f8"), np.abs(a).astype("f8") @ np.abs(b).astype("f8")
    assert close(got, exact, TOLERANCES["dot_general"], scale).all()


@pytest.mark.parametrize(("sizes", "transposed"), both_ways(SHAPES), ids=str)
def test_products_are_sums_of_products(sizes: Sizes, transposed: bool) -> None:
    a, b = operands(*sizes)
    assert_near(product(pairs(), a, b, transposed=transposed, margin=3), a, b)


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


# -- tiles ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sizes", "transposed"), both_ways(TILED), ids=str)
def test_tiles_multiply(sizes: Sizes, transposed: bool) -> None:
    unit, tiles = TileUnit(), ctypes.c_int32(1)
    a, b = operands(*sizes)
    assert_near(product(tiled(unit, tiles), a, b, transposed=transposed, margin=5), a, b)
    assert not unit.faults
    m, n, k = sizes
    wide = n // 32 + (n % 32 > 16)  # panels of columns that fill two tiles
    steps = sum(-(-min(DEPTH, k - p) // 32) for p in range(0, k, DEPTH))
    assert unit.counts["tdpbf16ps"] == 4 * wide * -(-m // 32) * steps
    assert unit.counts["ldtilecfg"] == unit.counts["tilerelease"] == wide * -(-k // DEPTH)


def test_tiles_are_left_alone_unless_they_may_be_used() -> None:
    unit, tiles = TileUnit(), ctypes.c_int32(0)
    a, b = operands(64, 64, 64)
    assert_near(product(tiled(unit, tiles), a, b), a, b)
    tiles.value = 1
    few, _ = operands(31, 64, 64)
    assert_near(product(tiled(unit, tiles), few, b), few, b)
    assert not any(unit.counts.values())


def test_tiles_are_used_only_where_they_give_what_registers_give() -> None:
    tiles = ctypes.c_int32(0)
    unit, wrong = TileUnit(), TileUnit(flips=True)
    assert agrees(tiled(unit, tiles), tiles)
    assert not agrees(tiled(wrong, tiles), tiles)
    assert unit.counts["tdpbf16ps"] == wrong.counts["tdpbf16ps"] > 0
    assert not unit.faults
    assert tiles.value == 0


@pytest.mark.skipif(not is_x86(), reason="AMX is x86's")
def test_the_tiles_of_a_sapphire_rapids_are_its_instructions() -> None:
    binding = llvm()
    target = binding.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="sapphirerapids", opt=2, reloc="pic", codemodel="small", jit=True)
    module = binding.parse_assembly(short_products_text(with_tiles=True), context=binding.create_context())
    module.triple = "x86_64-unknown-linux-gnu"
    module.verify()
    text = machine.emit_assembly(module)
    body = text[text.index("\ntiles:") : text.index(".size\ttiles")]
    names = [word for line in body.splitlines() for word in line.split()[:1]]
    counts = {name: names.count(name) for name in ("tdpbf16ps", "tileloadd", "tilestored", "tilezero")}
    assert counts == {"tdpbf16ps": 8, "tileloadd": 8, "tilestored": 4, "tilezero": 4}
    assert names.count("ldtilecfg") == names.count("tilerelease") == 1
    assert f"@llvm.x86.{next(iter(INSTRUCTIONS))}" in short_products_text(with_tiles=True)


def test_only_machines_with_tiles_ask_for_them() -> None:
    assert ("@tiles(" in short_products_text()) == has_tiles()
    assert permitted() in (True, False)
