"""Running programs: on the array reference, on interpreted loop IR and on LLVM, many cases in one program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.laws.values import Array
from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.llvm.kernel_modules import outside_symbols
from tracer.codegen.llvm.kernels.routines import library_names
from tracer.codegen.llvm.toolchain.ctypes_executable import Executable
from tracer.codegen.llvm.toolchain.object_code import compile_object, load_object
from tracer.codegen.reference.interpreter import Order, interpret
from tracer.codegen.status import Status
from tracer.ir.program import Program
from tracer.ir.types import Type, storage_type
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference
from tracer.runtime.compile.compile import Compiled
from tracer.runtime.system.run_time_errors import error_of
from tracer.schedule.loops.scalarise import one_at_a_time
from tracer.schedule.pipeline import Scheduled, schedule


def together(programs: Sequence[Program]) -> Program:
    """One program that does what all of them do: inputs after inputs, outputs after outputs."""
    return Program(
        tuple(v for p in programs for v in p.inputs),
        tuple(e for p in programs for e in p.equations),
        tuple(a for p in programs for a in p.outputs),
        "together",
    )


Width = int | None
WIDTHS: tuple[Width, ...] = (0, 128, 256, 512, None)
"""Bits of vectors: of 0, all that can be runs one element at a time; of None, this machine's own."""


class Native:
    """A program compiled by LLVM, for vectors of a width."""

    def __init__(self, scheduled: Scheduled, width: Width = None) -> None:
        module = scheduled.module if width != 0 else one_at_a_time(scheduled.module)
        self.scheduled, vector_bits = replace(scheduled, module=module), width or None
        text = emit_module(module, vector_bits=vector_bits)
        code = compile_object(text, vector_bits=vector_bits)
        loaded = load_object(code, outside_symbols(text, library_names(module)))
        self.executable = Executable(module, loaded)
        self.compiled = Compiled(Program((), (), ()), self.scheduled, text, loaded, work=0)

    def run(self, values: Sequence[Array]) -> list[Array]:
        """The outputs, in storage form. Raises what the program's faults mean."""
        arrays, outputs = _buffers(self.scheduled, values, [p.dtype for p in self.executable.parameters])
        status, context = self.executable.run(arrays, callback=self.compiled.call_back)
        error = error_of(self.scheduled.sites, status, context)
        if error is not None:
            raise error
        return outputs


def native(program: Program, width: Width = None) -> Native:
    """The program through all passes, the schedule and LLVM."""
    return Native(schedule(optimize(program)), width)


def run_loops(
    scheduled: Scheduled, values: Sequence[Array], order: Order = Order.FORWARD, *, verify: bool = True
) -> list[Array]:  # fmt: skip
    """The outputs by the interpreter of loop IR, every access checked; `verify` as in `interpret`."""
    module = scheduled.module
    entry = next(function for function in module.functions if function.name == module.entry)
    arrays, outputs = _buffers(scheduled, values, [p.dtype for p in entry.parameters])
    callbacks = [_interpreted(equation) for equation in scheduled.callbacks]
    outcome = interpret(module, arrays, callbacks=callbacks, order=order, verify=verify)
    if outcome.error is not None:
        raise outcome.error
    if outcome.status is not Status.DONE:
        raise RuntimeError(f"{outcome.status}: {outcome.fault}")
    return outputs


def _interpreted(equation: Any) -> Callable[[Sequence[Array], Sequence[Array]], None]:
    """A callback on flat arrays."""

    def call(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        given = [_shaped(x, atom.type) for x, atom in zip(inputs, equation.inputs, strict=True)]
        results = equation.primitive.reference(*given, **equation.params)
        for memory, variable, result in zip(outputs, equation.outputs, results, strict=True):
            _shaped(memory, variable.type)[...] = result

    return call


def _shaped(memory: Array, type: Type) -> Array:
    stored = storage_type(type)
    count = math.prod(stored.shape) * stored.dtype.itemsize
    return memory.view(np.uint8)[:count].view(stored.dtype).reshape(stored.shape)


def _buffers(scheduled: Scheduled, values: Sequence[Array], dtypes: Sequence[Any]) -> tuple[list[Array], list[Array]]:
    """The flat arrays of a call, and the outputs among them in their shapes, full of what no result leaves."""
    storage = [storage_type(type) for type in scheduled.output_types]
    outputs = [np.full(s.shape, _untouched(s.dtype), s.dtype) for s in storage]
    given = list(map(np.ascontiguousarray, values))
    for number, donor in scheduled.donors.items():
        outputs[number][...] = given[donor]
        given[donor] = outputs[number]
    arrays = [*given, *outputs, *scheduled.constants]
    return [a.reshape(-1).view(dtype) for a, dtype in zip(arrays, dtypes, strict=True)], outputs


def _untouched(dtype: np.dtype[Any]) -> Any:
    return True if dtype.kind == "b" else np.frombuffer(b"\xa5" * dtype.itemsize, dtype)[0]


__all__ = ["Native", "Order", "native", "run_loops", "run_reference", "schedule", "together"]
