"""Programs through the passes, the schedule and LLVM: what the tests of the schedule share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.codegen.llvm.llvm_programs import executable
from tests.targets import TINY
from tracer.codegen.reference.interpreter import Order, interpret
from tracer.codegen.status import Status
from tracer.ir.dtypes import F64, I64
from tracer.ir.loop import Module
from tracer.ir.loop.check import check_module
from tracer.ir.program import Program, literal
from tracer.ir.target import CPU, PLAIN, Limits, Target
from tracer.ir.types import Type, array_type, storage_type
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import add
from tracer.primitives.elementwise.comparison import lt
from tracer.schedule.pipeline import Scheduled, loops, schedule
from tracer.trace.stage import stage

Array = np.ndarray[Any, Any]

# by dtype of the result: relative to the value, and to the largest value
TOLERANCE = {
    "float16": 4e-3, "bfloat16": 3e-2, "float32": 3e-6, "float64": 1e-13, "complex64": 5e-6, "complex128": 1e-13,
}  # fmt: skip


def scalar(dtype: Any = F64) -> Type:
    return array_type(np.dtype(dtype), ())


def vector(n: int, dtype: Any = F64) -> Type:
    return array_type(np.dtype(dtype), (n,))


def program(function: Callable[..., Any], *types: Type) -> Program:
    """The function on inputs of these types; it may return one result or a sequence."""

    def body(xs: Sequence[Any]) -> Sequence[Any]:
        result = function(*xs)
        return list(result) if isinstance(result, tuple | list) else [result]

    return stage(body, types).program


def counted(function: Callable[..., Sequence[Any]], *start: Any, trips: int, consts: Sequence[Any] = ()) -> Any:
    """(i, *carries) from 0 to `trips`: function(*consts, i, *carries) -> carries."""
    types = [scalar(I64), *(x.type for x in start)]
    given = [x.type for x in consts]
    cond = program(lambda i, *_: lt(i, trips), *types)
    n = len(given)
    body = program(lambda *xs: (add(xs[n], 1), *function(*xs)), *given, *types)
    return while_program(cond, body, [], consts, [literal(0, I64), *start])[1:]


def staged(function: Callable[..., Any], arrays: Sequence[Array], types: Sequence[Type] | None = None) -> Program:
    """The function as a program on inputs like the arrays."""
    return program(function, *(types or [array_type(a.dtype, a.shape) for a in arrays]))


def fresh_outputs(program: Program) -> list[Array]:
    """Arrays for the results, full of what no result is likely to be."""
    outputs = []
    for type in program.output_types:
        held = storage_type(type)
        outputs.append(np.full(held.shape, 77, held.dtype))
    return outputs


def flat(array: Array) -> Array:
    """The array as the entry takes it: complex numbers as pairs."""
    if array.dtype.kind == "c":
        return array.reshape(-1).view(array.real.dtype)
    return array.reshape(-1)


def compiled(program: Program, target: Target = CPU) -> tuple[Scheduled, Any]:
    """The scheduled program and its executable; every stage is verified."""
    optimized = optimize(program)
    check_module(loops(optimized, replace(PLAIN, limits=target.limits)).module)
    scheduled = schedule(optimized, target)
    check_module(scheduled.module)
    return scheduled, executable(scheduled.module)


def call(scheduled: Scheduled, runnable: Any, program: Program, arrays: Sequence[Array], **options: Any) -> list[Array]:
    """Call an executable; a fault raises the user's exception."""
    outputs = fresh_outputs(program)
    given = [flat(np.ascontiguousarray(a)) for a in arrays]
    status, context = runnable.run([*given, *map(flat, outputs)], **options)
    if status == Status.FAULT:
        site = scheduled.sites[context.fault_site]
        raise site.error(list(context.fault_values), context.fault_position)
    assert status == Status.DONE
    return outputs


def run(program: Program, arrays: Sequence[Array], target: Target = CPU) -> list[Array]:
    """Compile by LLVM and call."""
    scheduled, runnable = compiled(program, target)
    return call(scheduled, runnable, program, arrays)


def shared(program: Program, arrays: Sequence[Array], limits: Limits | None = None) -> list[Array]:
    """Share every nest among threads, and interpret with the parts out of order; races are found."""
    target = replace(TINY, limits=limits or TINY.limits)
    return _interpret(schedule(optimize(program), target).module, program, arrays, Order.SHUFFLED)


def interpreted(
    program: Program, arrays: Sequence[Array], order: Order = Order.FORWARD, limits: Limits | None = None
) -> list[Array]:
    """The program's loops, not mapped to a machine, in the checking interpreter."""
    target = replace(PLAIN, limits=limits or PLAIN.limits)
    return _interpret(loops(optimize(program), target).module, program, arrays, order)


def _interpret(module: Module, program: Program, arrays: Sequence[Array], order: Order) -> list[Array]:
    outputs = fresh_outputs(program)
    given = [flat(np.ascontiguousarray(a)) for a in arrays]
    outcome = interpret(module, [*given, *map(flat, outputs)], order=order)
    assert outcome.status == Status.DONE, outcome
    return outputs


def agree(function: Callable[..., Any], *arrays: Any, types: Sequence[Type] | None = None) -> list[Array]:
    """Compile and compare with the reference; the results."""
    given = [np.asarray(a) for a in arrays]
    return agree_program(staged(function, given, types), given)


def agree_program(program: Program, arrays: Sequence[Array], backend: Any = run) -> list[Array]:
    """Run and compare with the reference: exactly for integers, within `TOLERANCE` for the rest."""
    results = backend(program, arrays)
    expected = run_reference(program, list(arrays))
    for got, wanted in zip(results, expected, strict=True):
        same(got, np.asarray(wanted))
    return results


def same(got: Array, wanted: Array) -> None:
    """Fail unless the arrays agree."""
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    tolerance = TOLERANCE.get(str(got.dtype), 0)
    if not tolerance:
        np.testing.assert_array_equal(got, wanted)
        return
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), wanted.astype(wide)
    finite = np.abs(b[np.isfinite(b)])
    scale = float(finite.max()) if finite.size else 0.0
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * min(scale, 1e300))
