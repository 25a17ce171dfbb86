"""`f.lower(x)`: every stage between a Python function and machine code, to look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir.program import Program, Source
from tracer.ir.types import storage_type
from tracer.lazy import LazyModule
from tracer.runtime.analysis.cost import CostReport, flops, report
from tracer.runtime.analysis.memory_report import Memory, memory_of
from tracer.runtime.jit.donation import Donated, consume
from tracer.runtime.jit.explain import Text
from tracer.runtime.jit.signature import Call, Signature
from tracer.runtime.jit.trace_call import Traced, shapes
from tracer.runtime.values.shape_dtype_struct import ShapeDtypeStruct
from tracer.trace import trees
from tracer.trace.array import concrete_value
from tracer.trace.convert import as_array
from tracer.trace.source import here

if TYPE_CHECKING:
    from tracer import markup
    from tracer.codegen.llvm.emit import opt_level
    from tracer.codegen.llvm.kernels import routines
    from tracer.codegen.llvm.toolchain import object_code as llvm
    from tracer.codegen.llvm.toolchain import outlined_functions
    from tracer.ir import target
    from tracer.ir.loop import Module
    from tracer.passes import pipeline
    from tracer.runtime.compile import compile as compiling
    from tracer.runtime.compile import located as locating
    from tracer.runtime.compile import this_machine
    from tracer.runtime.jit import cuda_text
    from tracer.schedule import pipeline as scheduling
else:
    markup = LazyModule("tracer.markup")
    outlined_functions = LazyModule("tracer.codegen.llvm.toolchain.outlined_functions")
    llvm = LazyModule("tracer.codegen.llvm.toolchain.object_code")
    opt_level = LazyModule("tracer.codegen.llvm.emit.opt_level")
    routines = LazyModule("tracer.codegen.llvm.kernels.routines")
    target = LazyModule("tracer.ir.target")
    pipeline = LazyModule("tracer.passes.pipeline")
    cuda_text = LazyModule("tracer.runtime.jit.cuda_text")
    compiling = LazyModule("tracer.runtime.compile.compile")
    locating = LazyModule("tracer.runtime.compile.located")
    this_machine = LazyModule("tracer.runtime.compile.this_machine")
    scheduling = LazyModule("tracer.schedule.pipeline")


@dataclass(frozen=True, slots=True)
class Stage:
    """A program or its loops, as text, after the pass `name`. Prints as both."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"# {self.name}\n{self.text}"

    __repr__ = __str__


class Stages(tuple[Stage, ...]):
    """Stages of a program in order. Prints as their texts, one below the other.

    unchanged: the names of the program passes that changed nothing, which have no stage.
    """

    unchanged: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        parts = [
            f"<details{' open' * (n == 0)}><summary>{stage.name}</summary>{markup.code(stage.text)}</details>"
            for n, stage in enumerate(self)
        ]
        return markup.view("stages", *parts, note=f"{len(self)}, each after the pass of that name")

    def __str__(self) -> str:
        rest = [f"unchanged by {', '.join(self.unchanged)}"] if self.unchanged else []
        return "\n".join([*map(str, self), *rest])

    __repr__ = __str__


class Lowered:
    """The stages of a function for one signature. Each is made on demand."""

    def __init__(self, traced: Traced, call: Call, signature: Signature) -> None:
        self._traced = traced
        self._call = call
        self._signature = signature
        self._contracts = this_machine.contracts()

    @cached_property
    def _compiled(self) -> compiling.Compiled:
        donated = self._traced.inputs_of(self._signature.donated(self._call))
        return compiling.compile_program(self._traced.program, donated, contracts=self._contracts)

    def program(self) -> Program:
        """Return the traced program. Its inputs are captured arrays, then the arguments' leaves."""
        return self._traced.program

    @property
    def jaxpr(self) -> Program:
        """JAX's name for `program()`."""
        return self.program()

    @property
    def out_info(self) -> Any:
        """The result with a `ShapeDtypeStruct` for every array."""
        return shapes(self._traced)

    def lower(self) -> Lowered:
        """Return this object: `jit(f).trace(x).lower()` is `jit(f).lower(x)`."""
        return self

    def optimized(self) -> Program:
        """Return the program after its passes."""
        return pipeline.optimize(self._traced.program, this_machine.this_cpu(), contracts=self._contracts)

    def stages(self) -> Stages:
        """Return every stage up to the loops of the CPU, as text. The result prints as a whole.

        First comes the program as traced, then the program after each pass that changed it; `unchanged` names all other
        passes. Then its loop nests, before and after each loop pass.

        >>> [stage.name for stage in tracer.jit(lambda x: x + x).lower(np.zeros(4)).stages()[:3]]
        ['traced', 'loops', 'fuse_rows']
        """
        on = this_machine.this_cpu()
        found = [Stage("traced", str(self._traced.program))]
        changed = self.programs()
        found += [Stage(name, str(after)) for name, after in changed]
        donated = self._traced.inputs_of(self._signature.donated(self._call))
        module = scheduling.loops(self.optimized(), on, donated=donated).module
        found.append(Stage("loops", str(module)))
        looped = compiling.in_force(scheduling.LOOP_PIPELINE)
        found += [Stage(step.name, str(after)) for step, after in scheduling.loop_stages(module, on, looped)]
        stages = Stages(found)
        stages.unchanged = tuple(name for name in pipeline.names() if name not in dict(changed))
        return stages

    def programs(self) -> list[tuple[str, Program]]:
        """Return the name of every pass that changed the program, with the program after it."""
        steps = pipeline.stages(self._traced.program, this_machine.this_cpu(), contracts=self._contracts)
        return [(step.name, after) for step, after in steps]

    def loops(self) -> Module:
        """Return the scheduled loop nests and buffers."""
        return self._compiled.scheduled.module

    def llvm(self) -> Text:
        """Return the LLVM text."""
        return Text(self._compiled.text)

    def asm(self) -> Text:
        """Return the assembly text of this machine."""
        compiled = self._compiled
        program, shared = outlined_functions.apart(compiled.text)
        own = llvm.assembly(program, opt=opt_level.level(compiled.scheduled.module))
        return Text("\n".join([own, *map(llvm.assembly, shared.values())]))

    def located(self) -> locating.Located:
        """Return the loops, LLVM and assembly, each line with the line that it comes from."""
        return locating.located(self.optimized(), self._traced.inputs_of(self._signature.donated(self._call)))

    def cuda(self, arch: str = "sm_90") -> cuda_text.CudaText:
        """Return CUDA C++, with missing kernels in comments, and with methods: `manifest`, `resources`, `traffic`.

        Raises DeviceError for an unknown architecture.
        """
        on_gpu, program = target.cuda(arch), self._traced.program
        optimized = pipeline.optimize(program, on_gpu, contracts=self._contracts)
        return cuda_text.CudaText(program, optimized, on_gpu, self._values, len(self._traced.captured))

    def _values(self) -> list[Any]:
        """Return the program's inputs as NumPy arrays, zeros where only a type is known."""
        values: list[Any] = []
        for x, type in zip((*self._traced.captured, *self._call.leaves), self.program().input_types, strict=True):
            storage = storage_type(type)
            is_type = isinstance(x, ShapeDtypeStruct)
            values.append(np.zeros(storage.shape, storage.dtype) if is_type else concrete_value(as_array(x)))
        return values

    def cuda_lines(self, arch: str = "sm_90") -> dict[str, tuple[Source, ...]]:
        """Return the user's lines of each nest of the CUDA program, by its name, which its kernel has too."""
        on_gpu = target.cuda(arch)
        return locating.nest_lines(
            pipeline.optimize(self._traced.program, on_gpu, contracts=self._contracts), on_gpu
        )  # fmt: skip

    def cost(self) -> CostReport:
        """Return arithmetic and memory traffic of the optimised program, by equation and in total."""
        return report(self.optimized())

    def flops(self) -> int:
        """Return the weighted operations of the optimised program: see `runtime.analysis.cost.flops`."""
        return flops(self.optimized())

    def memory(self) -> Memory:
        """Return bytes of arguments, results, temporaries and copies of arguments, known before anything runs.

        Loops of unknown length that are differentiated in reverse keep values of all their iterations. `growth` says
        how many bytes, and `after(n)` is the peak for n iterations. On Linux, tests/runtime/analysis/test_memory.py
        holds calls of 50 MB or more to 5 % of this, and such loops to 6 %. It holds calls of linear algebra from 100 MB
        on with the first call. Its peak, `first`, counts compilation and the libraries that are loaded. Not counted:
        memory in which BLAS packs complex matrices, some MB a thread.

        >>> print(tracer.jit(lambda x: tnp.sort(x) + x).lower(np.zeros(1000)).memory())
        arguments            8,000 B
        results              8,000 B
        arena                8,000 B
        constants                0 B
        peak                24,000 B
        """
        program, compiled = self._traced.program, self._compiled
        scheduled, names = compiled.scheduled, compiling.library_names(compiled.scheduled.module)
        return memory_of(
            program, self.optimized(), scheduled.module.arena, scheduled.constants, scheduled.donors,
            copies=sum(map(_copied, (*self._traced.captured, *self._call.leaves))),
            calls_scipy=routines.calls_scipy(names, compiled.text),
        )  # fmt: skip

    def compile(self) -> CompiledFunction:
        """Return the function for exactly these types."""
        return CompiledFunction(self, self._compiled)

    def _repr_html_(self) -> str:
        from tracer.explorer.exploration import explore  # noqa: PLC0415  # the page stands above this room

        return explore(self)._repr_html_()

    def __repr__(self) -> str:
        return f"<lowered {self._traced.program.name}({', '.join(map(str, self._call.key.types))})>"


def _copied(leaf: Any) -> int:
    """Return the bytes of the copy that a call makes of an array, 0 if none: see `tracer.trace.convert.native`."""
    if not isinstance(leaf, np.ndarray):
        return 0
    read_in_place = leaf.flags.c_contiguous and leaf.flags.aligned and leaf.dtype.isnative
    return 0 if read_in_place else leaf.nbytes


class CompiledFunction:
    """A function compiled ahead of time. It takes arguments of the types that it was compiled for."""

    def __init__(self, lowered: Lowered, compiled: compiling.Compiled) -> None:
        self._lowered = lowered
        self._compiled = compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        signature, traced, key = self._lowered._signature, self._lowered._traced, self._lowered._call.key
        call = signature.sort(args, kwargs)
        if (call.key.structure, call.key.types, call.key.statics) != (key.structure, key.types, key.statics):
            raise ArgumentError(
                message(
                    f"call of compiled {signature.name}{here()}: arguments of other types than it was compiled for",
                    f"compiled for ({', '.join(map(str, key.types))})",
                    f"got          ({', '.join(map(str, call.key.types))})",
                    help="jit(f)(...) compiles for every kind of arguments that it meets",
                )
            )
        operands = [as_array(leaf, copy=False) for leaf in (*traced.captured, *call.leaves)]
        donated = {n: Donated(call.key.types[n], signature.name) for n in signature.donated(call)}
        try:
            return trees.unflatten(traced.structure, self._compiled.call(operands))
        finally:
            if donated:
                consume([call.leaves[n] for n in donated], list(donated.values()))

    def cost(self) -> CostReport:
        """Return `Lowered.cost()`."""
        return self._lowered.cost()

    def memory(self) -> Memory:
        """Return `Lowered.memory()`."""
        return self._lowered.memory()
