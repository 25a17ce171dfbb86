"""Products of bf16 in AMX's tiles: on the processor where it has them, by a model of the instructions everywhere."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from functools import cache
from typing import Any

import numpy as np
import pytest

import tracer
from tests.codegen.llvm.kernels.gemm.pair_products import NAME, Array, Sizes, assert_near, both_ways, operands, product
from tests.codegen.llvm.kernels.gemm.tile_model import INSTRUCTIONS, TileUnit
from tracer.codegen.llvm.kernel_modules import PRODUCT, _Modules, _Shared
from tracer.codegen.llvm.kernels.gemm import amx
from tracer.codegen.llvm.kernels.gemm.bf16_amx import COLUMNS, DEPTH, ROWS, tile_products_text
from tracer.codegen.llvm.kernels.gemm.bf16_dot import dots_text, short_products_text
from tracer.codegen.llvm.toolchain.object_code import LoadedModule, compile_object, load_object
from tracer.codegen.llvm.toolchain.target import is_x86, llvm

SHAPES: list[Sizes] = [
    (1, 1, 1), (32, 32, 32), (33, 64, 96), (40, 33, 31), (16, 17, 34), (5, 9, 64), (64, 48, 513), (95, 17, 64),
    (70, 95, 1090), (ROWS + 33, 20, 40), (17, COLUMNS + 49, 66),
]  # fmt: skip
needs_tiles = pytest.mark.skipif(not amx.in_use(), reason="the processor has no tiles, or the system none to give")


@cache
def loaded() -> LoadedModule:
    return load_object(compile_object(tile_products_text()), {}, export=NAME)


def by_tiles() -> Any:
    return PRODUCT(loaded().address(NAME))


def modelled(unit: TileUnit) -> Any:
    """The kernel with a model of the tiles, which the module must not outlive."""
    module = load_object(compile_object(unit.text(tile_products_text())), unit.symbols(), export=NAME)
    function = PRODUCT(module.address(NAME))
    return lambda *given: (module, function(*given))[1]


# -- by the model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sizes", "transposed"), both_ways(SHAPES), ids=str)
def test_tiles_multiply(sizes: Sizes, transposed: bool) -> None:
    unit = TileUnit()
    a, b = operands(*sizes)
    assert_near(product(modelled(unit), a, b, transposed=transposed, margin=6), a, b)
    assert not unit.faults
    m, n, k = sizes
    steps = sum(-(-min(DEPTH, k - p) // 32) for p in range(0, k, DEPTH))
    assert unit.counts["tdpbf16ps"] == -(-m // 16) * -(-n // 16) * steps
    assert unit.counts["tilerelease"] == 1


def test_tiles_are_used_only_where_their_product_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amx, "has_tiles", lambda: True)
    monkeypatch.setattr(amx, "permitted", lambda: True)
    monkeypatch.setattr(amx, "_WRONG", [])
    unit, wrong = TileUnit(), TileUnit(flips=True)
    assert amx.tried_out(modelled(unit))
    assert amx.in_use()
    assert short_products_text() == tile_products_text()
    assert not amx.tried_out(modelled(wrong))
    assert not amx.in_use()
    assert short_products_text() == dots_text()
    assert unit.counts["tdpbf16ps"] == wrong.counts["tdpbf16ps"] > 0
    assert not unit.faults


@pytest.mark.skipif(not is_x86(), reason="AMX is x86's")
def test_the_tiles_of_a_sapphire_rapids_are_its_instructions() -> None:
    binding = llvm()
    target = binding.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="sapphirerapids", opt=2, reloc="pic", codemodel="small", jit=True)
    module = binding.parse_assembly(tile_products_text(), context=binding.create_context())
    module.triple = "x86_64-unknown-linux-gnu"
    module.verify()
    text = machine.emit_assembly(module)
    body = text[text.index("\nblock22:") : text.index(".size\tblock22")]
    names = [word for line in body.splitlines() for word in line.split()[:1]]
    counts = {name: names.count(name) for name in ("tdpbf16ps", "tileloadd", "tilestored", "tilezero")}
    assert counts == {"tdpbf16ps": 4, "tileloadd": 8, "tilestored": 4, "tilezero": 4}
    assert f"@llvm.x86.{next(iter(INSTRUCTIONS))}" in tile_products_text()


# -- on the processor ----------------------------------------------------------------------------------------------


@needs_tiles
def test_programs_multiply_in_tiles() -> None:
    assert short_products_text() == tile_products_text()
    assert amx.agrees(by_tiles())


@needs_tiles
@pytest.mark.parametrize(("sizes", "transposed"), both_ways([*SHAPES, (300, 520, 1100), (513, 97, 2050)]), ids=str)
def test_processors_tiles_multiply(sizes: Sizes, transposed: bool) -> None:
    a, b = operands(*sizes)
    assert_near(product(by_tiles(), a, b, transposed=transposed, margin=6), a, b)


@needs_tiles
def test_random_shapes_are_multiplied_on_the_processor() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        m, n, k = (int(2 ** rng.uniform(0, 9)) for _ in range(3))
        a, b = operands(m, n, k)
        assert_near(product(by_tiles(), a, b, margin=2), a, b)


@needs_tiles
def test_elements_do_not_depend_on_their_neighbours() -> None:
    a, b = operands(100, 150, 700)
    whole = product(by_tiles(), a, b)
    part = product(by_tiles(), a[5:25], b[:, 48:97])
    assert part.tobytes() == np.ascontiguousarray(whole[5:25, 48:97]).tobytes()


@needs_tiles
def test_subnormal_numbers_are_zeros_and_infinite_ones_spread() -> None:
    a, b = operands(40, 70, 500)
    a[3], b[:, 5] = 1e-39, 2.0
    assert product(by_tiles(), a, b)[3, 5] == 0
    b[:, 7] = np.inf
    assert np.isnan(product(by_tiles(), a, b)[3, 7])


_STORE = """\
declare void @llvm.x86.sttilecfg(ptr)
define void @configured(ptr %to) {
  call void @llvm.x86.sttilecfg(ptr %to)
  ret void
}
"""


@needs_tiles
def test_a_call_releases_the_tiles() -> None:
    module = load_object(compile_object(_STORE), {}, export="configured")
    found = (ctypes.c_uint8 * 64)(*[1] * 64)
    product(by_tiles(), *operands(33, 40, 50))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(module.address("configured"))(ctypes.addressof(found))
    assert bytes(found) == bytes(64)


def shared_product(a: Array, b: Array, threads: int) -> bytes:
    multiply = tracer.jit(lambda a, b: tracer.lax.dot_general(a, b, (((1,), (0,)), ((), ())), None, np.float32))
    with tracer.config.using(threads=threads):
        return np.asarray(multiply(a, b)).tobytes()


@pytest.mark.parametrize("sizes", [(300, 600, 700), (1000, 100, 333), (512, 512, 512)], ids=str)
def test_bits_do_not_depend_on_how_many_threads_multiply(sizes: Sizes) -> None:
    a, b = operands(*sizes)
    results = {shared_product(a, b, threads) for threads in (1, 2, 3, 7)}
    assert len(results) == 1
    assert_near(np.frombuffer(results.pop(), "f4").reshape(sizes[0], sizes[1]), a, b)


def test_new_threads_multiply() -> None:
    a, b = operands(100, 130, 200)
    expected, results = shared_product(a, b, 1), []
    others = [threading.Thread(target=lambda: results.append(shared_product(a, b, 2))) for _ in range(4)]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join()
    assert results == [expected] * 4


_FORK = """
import os
from tests.codegen.llvm.kernels.gemm.pair_products import operands
from tests.codegen.llvm.kernels.gemm.test_bf16_amx import shared_product
a, b = operands(300, 256, 300)
expected = shared_product(a, b, 2)
child = os.fork()
if not child:
    os._exit(0 if shared_product(a, b, 2) == shared_product(a, b, 1) == expected else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("equal")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_children_multiply() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORK], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.stdout.strip() == "equal", run.stderr


def test_a_module_that_does_not_hold_is_made_anew() -> None:
    texts = iter(["define void @one() {\n  ret void\n}", "define void @one() {\n  unreachable\n}"])
    made: list[str] = []

    def compiled(text: str, *, opt: int = 2) -> bytes:
        made.append(text)
        return compile_object(text, opt=opt)

    _Modules().get(_Shared(("one",), lambda: next(texts), holds=lambda loaded: False), compiled)
    assert ["unreachable" in text for text in made] == [False, True]
