"""Programs whose object code is whole: which need nothing but functions of C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer.codegen.llvm.toolchain.object_code import binds_c_alone
from tracer.passes.pipeline import optimize
from tracer.runtime.compile import compile as compiling
from tracer.schedule.pipeline import schedule

X = np.linspace(0.1, 3.0, 8)


def alone(f: Callable[..., Any]) -> tuple[compiling.Compiled, bytes] | None:
    program = tracer.make_program(f)(tnp.asarray(X))
    return compiling.compile_alone(program, schedule(optimize(program)))


def test_a_program_by_itself_computes_what_it_computes_with_shared_functions() -> None:
    made = alone(tnp.sin)
    assert made is not None
    compiled, code = made
    assert len(code) > 1000
    (found,) = compiled.run([X])
    assert found.tobytes() == np.asarray(tracer.jit(tnp.sin)(X)).tobytes()


@pytest.mark.parametrize(
    "f",
    [
        tnp.sort,
        lambda x: x[tnp.argmax(x) + 9],
        lambda x: tracer.pure_callback(np.sin, tracer.ShapeDtypeStruct((8,), "float64"), x),
    ],
    ids=["routine", "fault", "callback"],
)
def test_a_program_that_needs_more_is_not_compiled_by_itself(f: Callable[..., Any]) -> None:
    assert alone(f) is None


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("declare double @llvm.fabs.f64(double)\ndeclare ptr @memcpy(ptr, ptr, i64)\n", True),
        ("define void @tracer_rare_1() {\n  ret void\n}\n@table = private constant [1 x i64] [i64 1]\n", True),
        ("declare void @tracer_share(ptr, ptr, i64, i64)\n", False),
        ("@tracer_threads = external global i32\n", False),
    ],
)
def test_outside_symbols_are_found_in_the_text(text: str, holds: bool) -> None:
    assert binds_c_alone(text) is holds
