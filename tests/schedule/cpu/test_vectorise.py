"""Which loop of a nest has lanes, by how its accesses step through memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import executable
from tests.schedule.running import call
from tracer import lax, vmap
from tracer.ir.loop import For, LoopKind
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Program
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.schedule.pipeline import schedule
from tracer.trace.stage import stage

ROWS, LENGTH = 203, 24


def sums_of_rows(table: Any, rows: Any) -> Any:
    return table[rows].sum(1)


def sums_of_windows(table: Any, rows: Any) -> Any:
    flat = table.reshape(-1)
    return vmap(lambda start: lax.dynamic_slice(flat, (start,), (LENGTH,)).sum())(rows)


def sums_of_elements(table: Any, rows: Any) -> Any:
    """The lanes step along the gathered indices, of which each column is contiguous."""
    return table.reshape(-1)[rows].sum(0)


PROGRAMS = {"rows": sums_of_rows, "windows": sums_of_windows, "elements": sums_of_elements}


def program(name: str) -> Program:
    shape = (LENGTH, ROWS) if name == "elements" else (ROWS,)
    types = [array_type(np.dtype("float64"), (50, LENGTH)), array_type(np.dtype("int64"), shape)]
    return optimize(stage(lambda xs: [PROGRAMS[name](*xs)], types).program)


@pytest.mark.parametrize(("name", "reduces"), [("rows", True), ("windows", True), ("elements", False)])
def test_lanes_run_where_memory_is_contiguous_though_a_loaded_index_leads_there(name: str, reduces: bool) -> None:
    p = program(name)
    scheduled = schedule(p)
    loops = [s for f in scheduled.module.functions for s in statements_of(f.body) if isinstance(s, For)]
    vectors = [s for s in loops if s.kind is LoopKind.VECTOR]
    assert vectors
    assert any(bool(s.carries) for s in vectors) is reduces
    random = np.random.default_rng(0)
    table = random.normal(size=(50, LENGTH))
    rows = random.integers(0, 50, p.inputs[1].type.shape)
    (got,) = call(scheduled, executable(scheduled.module), p, [table, rows])
    flat, starts = table.reshape(-1), np.minimum(rows, table.size - LENGTH)
    expected = {
        "rows": lambda: table[rows].sum(1), "elements": lambda: flat[rows].sum(0),
        "windows": lambda: flat[starts[:, None] + np.arange(LENGTH)].sum(1),
    }[name]()  # fmt: skip
    np.testing.assert_allclose(got, expected, rtol=1e-12)
