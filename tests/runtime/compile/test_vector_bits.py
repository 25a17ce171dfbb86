"""`config.vector_bits`: the same results by vectors of every width, and by one element at a time."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tracer
from tests.grids import each
from tracer import jit, lax
from tracer import numpy as tnp
from tracer.codegen.llvm.toolchain.target import features, is_x86, preferred_bits
from tracer.errors import SettingError

WIDTHS = (0, 128, 256, 512)
REGISTERS = {128: "xmm", 256: "ymm", 512: "zmm"}
needs_512 = pytest.mark.skipif(preferred_bits() < 512, reason="the machine's vectors are narrower")


@pytest.fixture(autouse=True)
def machines_own() -> object:
    with tracer.config.using(vector_bits=None):
        yield


def everything(x: tracer.Array, y: tracer.Array) -> tuple[tracer.Array, ...]:
    """Loops, reductions, what is shared as a kernel (sorts, totals, transposes), and scans."""
    z = tnp.tanh(x) * y + tnp.exp(-y)
    return z, z.sum(), z.mean(axis=0), tnp.sort(z, axis=1), tnp.cumsum(z), tnp.argmax(z), tnp.where(x > y, z.T @ y, 0)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_results_have_the_same_bits_at_every_width(dtype: str) -> None:
    """Products of matrices aside, where a machine does not multiply and add in one step."""
    x, y = np.random.default_rng(0).normal(size=(2, 131, 131)).astype(dtype)
    expected = jit(everything)(x, y)
    for bits in WIDTHS:
        with tracer.config.using(vector_bits=bits):
            found = jit(everything)(x, y)
            fused = dict(features()).get("fma", True)
        for ours, theirs in zip(found[:-1], expected[:-1], strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=f"{bits} bits")
        if fused or not is_x86():
            np.testing.assert_array_equal(found[-1], expected[-1])
        np.testing.assert_allclose(found[-1], expected[-1], rtol=2e-4 if dtype == "f4" else 1e-12, atol=1e-4)


@needs_512
@pytest.mark.skipif(not is_x86(), reason="the registers of x86")
@pytest.mark.parametrize("bits", [128, 256, 512])
def test_programs_use_registers_of_that_width_and_no_wider(bits: int) -> None:
    with tracer.config.using(vector_bits=bits):
        text = str(jit(lambda x: tnp.sin(x) * 2).lower(np.ones(1000, "f4")).asm())
    used = {width for width, name in REGISTERS.items() if re.search(rf"%{name}\d", text)}
    assert max(used) == bits


@needs_512
def test_without_vectors_loops_take_one_element_at_a_time() -> None:
    lowered = jit(lambda x: tnp.sqrt(x) * 2).lower(np.ones(1000, "f4"))
    assert "sqrtps" in str(lowered.asm())
    with tracer.config.using(vector_bits=0):
        lowered = jit(lambda x: tnp.sqrt(x) * 2).lower(np.ones(1000, "f4"))
        assert "sqrtss" in str(lowered.asm())
        assert "sqrtps" not in str(lowered.asm())


def test_a_change_compiles_again_and_is_explained() -> None:
    f = jit(lambda x: x * 2)
    f(1.0)
    with tracer.config.using(vector_bits=128):
        f(1.0)
    assert "config.vector_bits: None -> 128" in f.explain()


def test_shared_kernels_are_made_for_each_width() -> None:
    """A product's kernel is shared by programs: those of another width have one of their own."""
    a = np.random.default_rng(0).normal(size=(2, 300, 300))
    product = jit(lambda a, b: a @ b)
    for bits in (None, *WIDTHS, None):
        with tracer.config.using(vector_bits=bits):
            np.testing.assert_allclose(product(*a), np.matmul(*a), atol=1e-11)


def test_what_an_eager_call_compiles_belongs_to_a_width() -> None:
    """A loop's body is compiled under `jit` or not: its products have the same bits."""
    a, b = map(tnp.asarray, np.random.default_rng(0).normal(size=(2, 37, 37)))

    def squares(a: tracer.Array, b: tracer.Array) -> tracer.Array:
        return lax.fori_loop(0, 2, lambda _, x: x @ b, a)

    for bits in (None, *WIDTHS, None):
        with tracer.config.using(vector_bits=bits):
            np.testing.assert_array_equal(squares(a, b), jit(squares)(a, b), err_msg=f"{bits} bits")


@each("bad", [64, 1, True, 128.0, "wide", -1])
def test_what_is_no_width_is_refused(bad: object) -> None:
    with pytest.raises(SettingError, match=r"config\.vector_bits does not take (.|\n)*give 0, 128, 256, 512 or None"):
        tracer.config.update("vector_bits", bad)
