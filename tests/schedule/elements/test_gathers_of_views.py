"""Gathers from slices, squeezed, transposed and reversed arrays, which read the array itself and no copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.codegen.llvm.llvm_programs import executable
from tests.grids import covering
from tests.schedule.running import call
from tracer import lax
from tracer.ir.program import Program
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.schedule.pipeline import schedule
from tracer.trace.stage import stage

ROWS, COLUMNS = 40, 30

VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[1:-1], "strided": lambda x: x[::3, 2::2], "squeezed": lambda x: x[:, None, 3:][:, 0],
    "transposed": lambda x: x.T, "reversed": lambda x: x[::-1], "several": lambda x: x[2:, ::-1].T[1:],
    "nothing": lambda x: x, "expanded": lambda x: x[:, None, 1:][:, 0, :, None][..., 0],
    "axes": lambda x: x[1:, :, None],
}  # fmt: skip
READS: dict[str, Callable[[Any, Any], Any]] = {
    "row": lambda v, i: v[i], "column": lambda v, i: v[:, i], "element": lambda v, i: v[i, i + 1],
    "clip": lambda v, i: v.at[i + 900].get(mode="clip"),
    "fill": lambda v, i: v.at[tnp.stack([i, i + 900])].get(mode="fill", fill_value=-7.0),
    "negative": lambda v, i: v[i - 9],
    "window": lambda v, i: lax.dynamic_slice(v, (i, i + 50, 0)[: v.ndim], (3, 4, 1)[: v.ndim]),
    "rows": lambda v, i: v[tnp.stack([i, i + 2, i])],
}  # fmt: skip


def program(view: str, read: str, dtype: str) -> Program:
    types = [array_type(np.dtype(dtype), (ROWS, COLUMNS)), array_type(np.dtype("int64"), ())]
    return optimize(stage(lambda xs: [READS[read](VIEWS[view](xs[0]), xs[1])], types).program)


@pytest.mark.parametrize(("read", "view"), covering(READS, VIEWS, least=24))
def test_a_view_is_read_where_it_lies(view: str, read: str) -> None:
    for dtype in ("float64", "complex64") if read == "row" else ("float64",):
        p = program(view, read, dtype)
        scheduled = schedule(p)
        x = np.arange(float(ROWS * COLUMNS)).reshape(ROWS, COLUMNS).astype(dtype)
        (got,) = call(scheduled, executable(scheduled.module), p, [x, np.array(4)])
        with tracer.disable_jit():
            expected = READS[read](tnp.asarray(np.ascontiguousarray(VIEWS[view](x))), tnp.asarray(4))
        np.testing.assert_array_equal(got, np.asarray(expected))
        assert scheduled.module.arena < x.nbytes // 4


def test_a_permuted_array_is_copied_for_many_reads() -> None:
    types = [array_type(np.dtype("float64"), (ROWS, COLUMNS)), array_type(np.dtype("int64"), (1000,))]
    p = optimize(stage(lambda xs: [xs[0].T[xs[1]]], types).program)
    assert schedule(p).module.arena >= ROWS * COLUMNS * 8


def test_the_index_in_an_error_is_the_views_own() -> None:
    f = tracer.jit(lambda x, i: x[5:][i])
    with pytest.raises(tracer.errors.OutOfBoundsError, match="index 7 is out of bounds for axis 0 with size 5"):
        f(np.arange(10.0), 7)


@pytest.mark.parametrize("order", ["read, then written", "written, then read"])
def test_a_view_of_an_array_that_is_updated_in_place_keeps_its_time(order: str) -> None:
    """Elements of a view of the old array, and of the new one."""
    n = 12

    def step(i: Any, x: Any) -> Any:
        if order == "read, then written":
            return x.at[1:-1, i].set(x[1:-1][:, i - 1] + x[2:][:, i])
        y = x.at[i, 1:].set(x[1:, 1:].T[i])
        return y.at[i, 0].add(y[1:, 2][i])

    x = np.random.default_rng(0).normal(size=(n, n))
    expected = tnp.asarray(x)
    for i in range(1, n - 2):
        expected = step(i, expected)
    jitted = tracer.jit(lambda x: lax.fori_loop(1, n - 2, step, x))
    np.testing.assert_array_equal(jitted(x), expected)
