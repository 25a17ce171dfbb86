"""From programs to machine code: passes, schedule, LLVM text, object code, and an executable with its faults' texts."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.llvm.emit.opt_level import USUAL, level
from tracer.codegen.llvm.emit.polls import patient
from tracer.codegen.llvm.kernel_modules import common_symbols, outside_symbols
from tracer.codegen.llvm.toolchain.ctypes_executable import Executable
from tracer.codegen.llvm.toolchain.object_code import LoadedModule, binds_c_alone, compile_object, load_object
from tracer.codegen.llvm.toolchain.outlined_functions import apart
from tracer.codegen.status import Status
from tracer.ir.loop import Block, Library, Module
from tracer.ir.loop.walk import blocks_of
from tracer.ir.primitive import Effect
from tracer.ir.program import Program
from tracer.ir.types import Type, storage_type
from tracer.passes.pipeline import optimize
from tracer.runtime.analysis.cost import least_work, work_of
from tracer.runtime.compile.this_machine import this_cpu
from tracer.runtime.native.entry_point import EntryPoint
from tracer.runtime.native.object_cache import objects
from tracer.runtime.native.sigint_ctypes import interruptible
from tracer.runtime.system.gc_pause import collector_paused
from tracer.runtime.system.long_calls import HEARD, LONG
from tracer.runtime.system.run_time_errors import error_of, failed
from tracer.runtime.system.spans import Work, working
from tracer.runtime.values.wrapping import wrapped
from tracer.schedule.pipeline import LOOP_PIPELINE, ONE_AT_A_TIME, LoopPass, Scheduled, schedule
from tracer.settings import config
from tracer.trace.array import Array
from tracer.trace.source import user_source

if TYPE_CHECKING:
    from tracer.runtime.compile.kept_programs import Place

Value = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program ready to run: every stage it went through, and the executable. Holds no state of any call.

    work: of a call, see `cost.work_of`.
    """

    program: Program
    scheduled: Scheduled
    text: str
    loaded: LoadedModule
    work: int

    @property
    def is_repeatable(self) -> bool:
        """Whether running it twice is as running it once: no ordered callbacks, no operand overwritten."""
        callbacks: tuple[Any, ...] = self.scheduled.callbacks  # Equations
        return not self.scheduled.donors and not any(Effect.IO in equation.effects for equation in callbacks)

    @property
    def entry_point(self) -> EntryPoint:
        """The module's entry for calls through the compiled entry."""
        s = self.scheduled
        return EntryPoint(
            self.loaded, s.input_types, s.output_types, self.work, s.constants, s.donors, s.sites, s.module.arena,
            s.module.stacks, self.call_back if s.callbacks else None, self.is_repeatable,
            patient(s.module) and least_work(self.program) <= LONG,
        )  # fmt: skip

    @cached_property
    def executable(self) -> Executable:
        """The module's entry for calls through ctypes."""
        return Executable(self.scheduled.module, self.loaded)

    def run(self, values: Sequence[Value]) -> list[Value]:
        """Call through ctypes: the outputs for one NumPy array an input, each as `storage_type` says.

        Used for versions of Python and NumPy whose C interface the compiled entry does not support. Donated values are
        copied. Raises the errors of the program's faults, callbacks and interrupts.
        """
        storage = [storage_type(type) for type in self.scheduled.output_types]
        outputs, given = [np.empty(s.shape, s.dtype) for s in storage], list(values)
        for output, donor in self.scheduled.donors.items():
            outputs[output][...] = values[donor]
            given[donor] = outputs[output]
        arrays = [*given, *outputs, *self.scheduled.constants]
        parameters = self.executable.parameters
        flat = [a.reshape(-1).view(p.dtype) for a, p in zip(arrays, parameters, strict=True)]
        status = Status.INTERRUPTED
        while status is Status.INTERRUPTED:
            with interruptible(self.work > HEARD) as stop:
                status, context = self.executable.run(flat, stop=stop, callback=self.call_back)
            if not self.is_repeatable:
                break
        error = error_of(self.scheduled.sites, status, context)
        if error is not None:
            raise error
        return outputs

    def call(self, operands: Sequence[Array]) -> list[Array]:
        """Return the outputs for concrete arrays, one for each input."""
        values = self.run([x._value for x in operands])
        return [wrapped(value, type) for value, type in zip(values, self.scheduled.output_types, strict=True)]

    def call_back(self, slot: int, inputs: int, outputs: int) -> None:
        """Run a callback: `inputs` and `outputs` are the addresses of arrays of pointers to the values."""
        equation: Any = self.scheduled.callbacks[slot]  # an Equation
        values = [_at(inputs, n, atom.type) for n, atom in enumerate(equation.inputs)]
        try:
            results = equation.primitive.reference(*values, **equation.params)
        except BaseException:
            failed()
            raise
        for n, (variable, result) in enumerate(zip(equation.outputs, results, strict=True)):
            _at(outputs, n, variable.type)[...] = result


def _at(pointers: int, number: int, type: Type) -> Value:
    """Return a view of the value at one of an array of pointers."""
    storage = storage_type(type)
    count = math.prod(storage.shape)
    address = ctypes.c_void_p.from_address(pointers + 8 * number).value or 0
    memory = (ctypes.c_ubyte * max(count * storage.dtype.itemsize, 1)).from_address(address)
    flat: Value = np.ndarray(count, storage.dtype, memoryview(memory))
    return flat.reshape(storage.shape)


def compile_program(
    program: Program, donated: Collection[int] = (), *, contracts: bool = False, place: Place | None = None
) -> Compiled:
    """Return the program compiled through all stages. Raises InternalError for statements the backend cannot emit.

    donated: the inputs whose memory results may take over. contracts: as in `optimize`. place: the file to keep it in.
    """
    with collector_paused(), working("compile", program.name, user_source()) as work:
        target = this_cpu()
        work.at("program passes")
        optimized = optimize(program, target, contracts=contracts)
        work.at("loops")
        scheduled = schedule(optimized, target, donated=donated, passes=in_force(LOOP_PIPELINE))
        compiled = compile_scheduled(program, scheduled, work, by_text=place is None)
        if place is not None:
            module = scheduled.module
            place.write(scheduled, compiled.text, level(module), library_names(module), compiled.entry_point)
        return compiled


def in_force(passes: tuple[LoopPass, ...]) -> tuple[LoopPass, ...]:
    """Return the loop passes that the settings ask for: without vectors, `ONE_AT_A_TIME` is the last."""
    return (*passes, ONE_AT_A_TIME) if config.vector_bits == 0 else passes


def compile_scheduled(
    program: Program, scheduled: Scheduled, work: Work | None = None, *, by_text: bool = True
) -> Compiled:
    """Return a scheduled program as machine code. work: is told of the phases. by_text: as in `load`."""
    module = scheduled.module
    if work is not None:
        work.at("LLVM text")
    text = emit_module(module)
    if work is not None:
        work.at("machine code")
    loaded = load(text, library_names(module), level(module), by_text=by_text)
    return Compiled(program, scheduled, text, loaded, work_of(program))


def compile_alone(program: Program, scheduled: Scheduled) -> tuple[Compiled, bytes] | None:
    """Return a scheduled program as machine code, and its object code, which holds the outlined functions too.

    Return None where calls need more than the code and C's functions: routines, callbacks, errors, donated memory.
    """
    text = emit_module(scheduled.module)
    if scheduled.sites or scheduled.callbacks or scheduled.donors or not binds_c_alone(text):
        return None
    code = compile_object(text, opt=level(scheduled.module))
    return Compiled(program, scheduled, text, load_object(code, {}), work_of(program)), code


def load(text: str, routines: Sequence[str], opt: int = USUAL, *, by_text: bool = True) -> LoadedModule:
    """Load LLVM text as machine code in this process. by_text: whether files keep its object code by its text."""
    program, common = apart(text)
    symbols = {**outside_symbols(program, routines, objects.kernel), **common_symbols(common, objects.kernel)}
    return load_object(objects.get(program, opt, kept=by_text), symbols)


def library_names(module: Module) -> list[str]:
    """Return the library routines that a module calls, in alphabetical order."""
    found: set[str] = set()
    for function in module.functions:
        _collect(function.body, found)
    return sorted(found)


def _collect(block: Block, found: set[str]) -> None:
    for statement in block.statements:
        if isinstance(statement, Library):
            found.add(statement.name)
        for inner in blocks_of(statement):
            _collect(inner, found)
