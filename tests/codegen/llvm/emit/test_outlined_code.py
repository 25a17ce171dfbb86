"""Blocks that hardly any lane wants, and math functions of scalars, are functions that programs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer.codegen.llvm.toolchain.outlined_functions import apart
from tracer.runtime.native.object_cache import objects

FAR = np.concatenate([np.linspace(-3, 3, 40), 10.0 ** np.arange(10, 300, 6), [np.inf, np.nan, -1e22]])


def text(function: Callable[[Any], Any], x: Any) -> str:
    return str(tracer.jit(function).lower(x).llvm())


def test_programs_share_the_last_reduction_of_a_sine() -> None:
    """Whatever stands around it, and however many elements there are."""
    (first, one), (second, other) = (
        apart(text(f, x)) for f, x in ((tnp.sin, FAR), (lambda x: 2 * tnp.sin(x) + x, FAR[:77]))
    )
    (name,) = one
    assert one == other
    for program in (first, second):
        assert f"declare void @{name}(" in program
        assert f"call void @{name}(" in program
        assert f"define void @{name}(" not in program
    assert f"define void @{name}(" in one[name]
    assert "tracer_main" not in one[name]


def test_a_second_program_compiles_no_rare_block_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels: list[str] = []
    kernel = objects.kernel
    monkeypatch.setattr(objects, "kernel", lambda text, opt=2: kernels.append(text) or kernel(text, opt))
    shift = 0.123456
    tracer.jit(lambda x: tnp.cos(x) - shift)(FAR)
    kernels.clear()
    x = FAR[::2].copy()
    np.testing.assert_allclose(np.asarray(tracer.jit(lambda x: 3 * tnp.cos(x) - shift)(x)), 3 * np.cos(x) - shift)
    assert not [text for text in kernels if "tracer_rare_" in text]


def test_text_without_rare_blocks_stays_as_it_is() -> None:
    program = text(lambda x: x + 1, FAR)
    assert apart(program) == (program, {})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [8, 16, 61])
def test_lanes_that_want_the_rare_block_have_its_values(dtype: str, count: int) -> None:
    """Each lane in turn is the only one that does."""
    f = tracer.jit(lambda x: (tnp.sin(x), tnp.tan(x)))
    for lane in range(0, count, 5):
        x = np.linspace(-1, 1, count, dtype=dtype)
        x[lane] = 1e15
        wide = x.astype(np.float64)
        for found, expected in zip(f(x), (np.sin(wide), np.tan(wide)), strict=True):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=4 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_functions_outside_vector_loops_are_calls_with_the_bits_of_lanes(dtype: str) -> None:
    def several(x: Any, y: Any) -> Any:
        return tnp.sin(x), tnp.sin(y), tnp.tanh(x) ** tnp.exp(y)

    x, y = np.geomspace(1e-3, 6e4, 10).astype(dtype), np.linspace(-2, 2, 10).astype(dtype)
    one = tracer.jit(several)
    program, common = apart(whole := str(one.lower(x[0], y[0]).llvm()))
    sines = [name for name in common if program.count(f"@{name}(") == 3]
    assert len(sines) == 1, "two calls and a declaration"
    assert whole.count("define") == 1 + len(common) == 5
    lanes = tracer.jit(several)(x, y)
    for n in range(len(x)):
        for scalar, array in zip(one(x[n], y[n]), lanes, strict=True):
            assert np.asarray(scalar).tobytes() == np.asarray(array)[n].tobytes()


@pytest.mark.parametrize(("uses", "calls"), [(1, False), (5, False), (6, True)])
def test_functions_within_loops_are_calls_where_they_are_repeated(uses: int, calls: bool) -> None:
    def step(x: Any) -> Any:
        return sum(tnp.sin(x + n) for n in range(uses))

    program = text(lambda x: tracer.lax.while_loop(lambda x: x < 2, step, x), 0.5)
    assert ("@tracer_math_" in program) == calls


def test_sine_and_cosine_of_one_value_are_calls() -> None:
    assert text(lambda x: (tnp.sin(2 * x), tnp.cos(2 * x)), 0.5).count("define double @tracer_math_") == 2
