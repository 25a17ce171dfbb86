"""Reductions along short rows: rows in lanes, and the bits that a loop along each row gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.codegen.llvm.llvm_programs import WIDTHS, executable
from tests.grids import covering
from tests.schedule.running import call
from tracer.ir.loop import For, LoopKind
from tracer.ir.loop.check import check_module
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Program
from tracer.ir.target import CPU
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.schedule.pipeline import schedule
from tracer.trace.stage import stage

ROWS = 1003
ALONG_ROWS = replace(CPU, machine=replace(CPU.machine, lane_rows=ROWS + 1))


def moments(length: int, dtype: str) -> Program:
    type = array_type(np.dtype(dtype), (ROWS, length))
    return stage(lambda xs: [tnp.sum(xs[0], axis=1), tnp.max(xs[0] * xs[0], axis=1)], [type]).program


@pytest.mark.parametrize(
    ("dtype", "length", "bits"),
    covering(["float32", "float64", "float16", "int8", "uint32"], [2, 3, 5, 8], WIDTHS, least=20),
)
def test_bits_are_those_of_a_loop_along_each_row(dtype: str, length: int, bits: int) -> None:
    p = optimize(moments(length, dtype))
    random = np.random.default_rng(length)
    x = (random.uniform(-100, 100, (ROWS, length))).astype(dtype)
    across = schedule(p)
    check_module(across.module)
    along = schedule(p, ALONG_ROWS)
    assert across.module.functions != along.module.functions
    results = [call(s, executable(s.module, vector_bits=bits), p, [x]) for s in (across, along)]
    for got, expected in zip(*results, strict=True):
        assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("length", [2, 3, 8])
def test_what_is_reduced_is_stored_from_lanes_too(length: int, bits: int) -> None:
    types = [array_type(np.dtype("float32"), (ROWS, length)), array_type(np.dtype("float32"), (length,))]

    def distances(xs: Any) -> Any:
        r = 2 * xs[0] - xs[1]
        return [r, tnp.sum(r * r, axis=1)]

    p = optimize(stage(distances, types).program)
    given = [np.random.default_rng(length).standard_normal(t.shape).astype(np.float32) for t in types]
    across = schedule(p)
    check_module(across.module)
    assert all(not s.carries for f in across.module.functions for s in statements_of(f.body) if isinstance(s, For))
    along = schedule(p, ALONG_ROWS)
    results = [call(s, executable(s.module, vector_bits=bits), p, given) for s in (across, along)]
    for got, expected in zip(*results, strict=True):
        assert got.tobytes() == expected.tobytes()


def vector_loops(length: int, rows: int = ROWS) -> list[For]:
    type = array_type(np.dtype("float32"), (rows, length))
    module = schedule(optimize(stage(lambda xs: [tnp.sum(xs[0], axis=1)], [type]).program)).module
    found = [s for f in module.functions for s in statements_of(f.body) if isinstance(s, For)]
    return [s for s in found if s.kind is LoopKind.VECTOR]


def test_short_rows_have_one_loop_without_a_sum_that_is_carried() -> None:
    for length in (2, 8):
        assert all(not loop.carries for loop in vector_loops(length))
    for loops in (vector_loops(9), vector_loops(4, rows=10)):
        assert any(loop.carries for loop in loops)
