"""`where_to_run`: the estimated time of a call on this CPU and on a GPU, with and without copies of its arrays.

The CPU's limits are measured. A GPU's are a data sheet's and common figures, as no program has run on a card yet.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tracer.codegen.cuda.emit import emit_cuda
from tracer.codegen.cuda.source import CudaSource
from tracer.ir import loop
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Program
from tracer.ir.target import CPU, CUDA
from tracer.lazy import LazyModule
from tracer.passes.pipeline import optimize
from tracer.runtime.analysis.cost import bytes_of, equation_cost, program_cost
from tracer.runtime.jit.jit import jit
from tracer.runtime.profile import roofline
from tracer.runtime.profile.report import duration
from tracer.runtime.system.devices import CPU as HERE
from tracer.schedule.pipeline import gpu_schedule
from tracer.schedule.terms.cost import FUNCTION, Cost
from tracer.schedule.terms.cost_model import trips, work
from tracer.settings import config
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.tracebacks import boundary

if TYPE_CHECKING:
    from tracer import markup
else:
    markup = LazyModule("tracer.markup")

_CALL: Final = 2e-6
"""Seconds of a call of a compiled program on the CPU."""
_CACHE: Final = 1 << 24
"""Bytes of a call's arrays that the CPU's caches hold, so that memory is not waited for."""
_COMPARISON: Final = 5e-10
"""Seconds of a comparison in the CPU's sorts, which no vector makes faster."""


@dataclass(frozen=True, slots=True)
class Card:
    """Figures of a GPU, in seconds and bytes: by default an H100's data sheet, and common ones of drivers and buses.

    bandwidth: bytes a second. peak: operations a second on float32, without tensor cores; half of them on float64.
    launch: of a kernel. call, wait: of a program's call, and of the host for a condition. copy: of an array's first
    byte. bus: bytes a second. thread: how many times as long one thread takes as a CPU's core. threads: as many as keep
    the card busy. measured: whether the figures were measured on a card.
    """

    name: str = "H100, data sheet"
    bandwidth: float = 3.35e12
    peak: float = 67e12
    launch: float = 4e-6
    call: float = 15e-6
    wait: float = 10e-6
    copy: float = 10e-6
    bus: float = 25e9
    thread: float = 20.0
    threads: int = 132 * 2048
    measured: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """Estimated seconds of a call: on the CPU, on a GPU that holds the arguments, and to copy them there and back.

    launches: of kernels and library routines in a call. unknown_trips: whether a while_loop counts as one iteration.
    missing: steps that tracer cannot run on a card yet.
    """

    name: str
    cpu: float
    gpu: float
    copies: float
    launches: int
    unknown_trips: bool
    missing: tuple[str, ...]
    card: Card

    @property
    def device(self) -> str:
        """The faster one, "cpu" or "cuda", for arguments that lie where they lie now."""
        return "cuda" if self.gpu + self.copies < self.cpu else "cpu"

    def _rows(self) -> list[tuple[str, str]]:
        launches = f"{self.launches:,} launch{'es' * (self.launches != 1)}"
        return [
            ("on the CPU", duration(self.cpu)),
            ("on a GPU that holds the data", f"{duration(self.gpu)}, {launches}"),
            ("copies there and back", duration(self.copies)),
        ]

    def _notes(self) -> list[str]:
        notes = [] if self.card.measured else [f"GPU: {self.card.name}; not measured, no program has run on a card"]
        if self.unknown_trips:
            notes.append("a while_loop is counted as one iteration")
        if self.missing:
            notes.append(f"not on a card yet: {', '.join(self.missing)}")
        return notes

    def __str__(self) -> str:
        rows = [f"  {name:<30}{text}" for name, text in self._rows()]
        return "\n".join([f"{self.name}: {self.device}", *rows, *(f"  {note}" for note in self._notes())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return markup.view(
            f"{self.name}: {self.device}", markup.table(("", "time"), self._rows(), text=(0, 1)),
            note="; ".join(self._notes()),
        )  # fmt: skip


@boundary
def where_to_run(fun: Callable[..., Any], /, *args: Any, card: Card | None = None, **kwargs: Any) -> Placement:
    """Estimate whether a call runs faster on this CPU or on a GPU, copies counted. The function is not run.

    fun: a function of arrays. args, kwargs: arrays, or `ShapeDtypeStruct`s. Arrays on the CPU are copied to the
    GPU, and results come back. card: the GPU's figures, an H100's data sheet unless given. The CPU's bandwidth and
    peak are measured once a process, in a second.

    An estimate counts operations, bytes of arrays and temporaries, launches and waits; it may be wrong by a factor of
    three. Small work is faster on the CPU, since each kernel has to be launched, and each array copied.

    >>> tracer.where_to_run(lambda x: tnp.sin(x) + 1.0, np.ones(100)).device
    'cpu'
    """
    card = card or Card()
    lowered = jit(fun).lower(*args, **kwargs)
    program = lowered.program()
    kernels = gpu_schedule(optimize(program, CUDA), CUDA)[1].module
    source = emit_cuda(kernels)
    cost, is_wide = program_cost(lowered.optimized()), _is_wide(program)
    inputs, outputs = ([*map(bytes_of, types)] for types in (program.input_types, program.output_types))
    moved = sum(inputs) + sum(outputs)
    cpu = _cpu_seconds(lowered.loops(), program, cost, moved + 2 * lowered.memory().arena, is_wide)
    gpu, launches = _gpu_seconds(kernels, source, cost, moved + 2 * source.arena, is_wide, card)
    there = [leaf for leaf in trees.flatten((args, kwargs))[0] if isinstance(leaf, Array) and leaf.device != HERE]
    copied = sum(inputs) - sum(leaf.nbytes for leaf in there) + sum(outputs)
    rate = min(card.bus, roofline.machine().bandwidth)  # the bus reads the CPU's memory
    copies = card.copy * (len(inputs) - len(there) + len(outputs)) + copied / rate
    missing = tuple(dict.fromkeys([*source.left, *_routines(source.entry.body)]))
    return Placement(program.name, cpu, gpu, copies, launches, cost.unknown_trips, missing, card)


def _routines(block: loop.Block) -> list[str]:
    return [s.name for s in statements_of(block) if isinstance(s, loop.Library)]


def _is_wide(program: Program) -> bool:
    """Whether a program takes or returns float64 or complex128."""
    types = (*program.input_types, *program.output_types)
    return any(str(getattr(type, "dtype", "")) in ("float64", "complex128") for type in types)


def _operations(cost: Cost) -> int:
    return cost.flops + FUNCTION * cost.functions


def _cpu_seconds(module: loop.Module, program: Program, cost: Cost, moved: int, is_wide: bool) -> float:
    """Return the largest of three estimates: by the loops, by the peak, and by the memory's bandwidth."""
    limits, functions = roofline.machine(), {function.name: function.body for function in module.functions}
    threads = config.threads or len(os.sched_getaffinity(0))

    def seconds(s: loop.Statement) -> float:
        if isinstance(s, loop.Library):
            return 0.0  # by the peak
        if isinstance(s, loop.Invoke):
            return 1e-9 * work(functions[s.function].statements, CPU.machine) / (1 if s.share is None else threads)
        return 1e-9 * work((s,), CPU.machine)

    sorts = [e for e in program.equations if getattr(e.primitive.lower, "kind", None) in ("sort", "top_k")]
    comparisons = sum(equation_cost(e).flops for e in sorts)
    by_peak = _operations(cost) / (limits.peak if is_wide else 2 * limits.peak) + _COMPARISON * comparisons
    by_memory = max(moved - _CACHE, 0) / limits.bandwidth
    return _CALL + max(_total(functions[module.entry], seconds), by_peak, by_memory)


def _gpu_seconds(
    module: loop.Module, source: CudaSource, cost: Cost, moved: int, is_wide: bool, card: Card
) -> tuple[float, int]:
    """Return the seconds of a call whose data is there, and its launches."""
    functions = {function.name: function.body for function in module.functions}
    threads = {kernel.name: min(max(kernel.grid * kernel.block, 1), card.threads) for kernel in source.kernels}

    def seconds(s: loop.Statement) -> float:
        if not isinstance(s, loop.Invoke):
            return card.launch * _is_launch(s)
        busy = 1e-9 * card.thread * work(functions[s.function].statements, CUDA.machine) / threads.get(s.function, 1)
        return max(card.launch, busy)

    by_peak = _operations(cost) / (card.peak / 2 if is_wide else card.peak)
    entry = source.entry.body
    time = max(_total(entry, seconds, card.wait), by_peak, moved / card.bandwidth)
    return card.call + time, round(_total(entry, lambda s: float(_is_launch(s))))


def _is_launch(s: loop.Statement) -> bool:
    return isinstance(s, loop.Invoke | loop.Library | loop.Copy | loop.Transpose)


def _total(block: loop.Block, of: Callable[[loop.Statement], float], wait: float = 0.0) -> float:
    """Return the sum over the statements that run, loops counted. wait: for a condition that the host reads."""
    total = 0.0
    for s in block.statements:
        match s:
            case loop.For() if any(map(_is_launch, statements_of(s.body))):
                total += trips(s) * _total(s.body, of, wait)
            case loop.While():
                total += wait + _total(s.condition, of, wait) + _total(s.body, of, wait)
            case loop.If():
                total += wait + max(_total(s.then, of, wait), _total(s.otherwise, of, wait))
            case _:
                total += of(s)
    return total
