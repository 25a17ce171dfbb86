"""From a program to a module of loop IR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tracer.ir.loop import Buffer, Function, Module, Space
from tracer.ir.loop_build import Builder
from tracer.ir.primitive import Effect
from tracer.ir.program import Program
from tracer.ir.types import Type
from tracer.schedule.blocks import BlockWriter, ModuleState, entry_buffer
from tracer.schedule.cache_blocks import in_blocks
from tracer.schedule.cpu import map_to_cpu
from tracer.schedule.extremes import key_extremes
from tracer.schedule.math.legalise import expand_math
from tracer.schedule.others import write_other
from tracer.schedule.partials import split_reductions
from tracer.schedule.row_buffers import keep_rows_local
from tracer.schedule.rows import fuse_rows
from tracer.schedule.threads import LEAST_WORK, share_loops
from tracer.schedule.windows import FaultSite, FaultSites

ENTRY = "main"


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A module and what a runtime must know to call it.

    sites: the faulting equations, by the number that a fault reports. callbacks: by slot. constants: the contents of
    the CONSTANT buffers, which follow the INPUT and OUTPUT buffers among the entry's parameters.
    """

    module: Module
    sites: tuple[FaultSite, ...]
    callbacks: tuple[Callable[..., Any], ...]
    constants: tuple[np.ndarray[Any, Any], ...]
    input_types: tuple[Type, ...]
    output_types: tuple[Type, ...]


def loops(program: Program) -> Scheduled:
    """The program's loop nests, not yet mapped to a machine."""
    state = ModuleState(write_other)
    _number_sites(program, state.sites)
    inputs = [entry_buffer(f"in{n}", t, Space.INPUT) for n, t in enumerate(program.input_types)]
    outputs = [entry_buffer(f"out{n}", t, Space.OUTPUT) for n, t in enumerate(program.output_types)]
    builder = Builder()
    BlockWriter(state, builder, program, inputs, outputs).write()
    parameters: tuple[Buffer, ...] = tuple(m.buffer for m in (*inputs, *outputs))
    main = Function(ENTRY, parameters, builder.finish())
    module = Module((*state.functions, main), ENTRY, state.arena.size, state.stacks)
    return Scheduled(
        module, tuple(state.sites.sites), tuple(state.callbacks), (), program.input_types, program.output_types
    )


def schedule(program: Program, *, least_work: float = LEAST_WORK) -> Scheduled:
    """The program's loops mapped to a CPU, mathematical functions written out.

    least_work: nests that are estimated to take less than so many nanoseconds are not shared by threads.
    """
    plain = loops(in_blocks(program))
    module = keep_rows_local(fuse_rows(plain.module, least_work))
    module = split_reductions(module) if least_work else split_reductions(module, block=16)
    module = share_loops(expand_math(key_extremes(map_to_cpu(module))), least_work)
    return replace(plain, module=module)


def _number_sites(program: Program, sites: FaultSites) -> None:
    """Give faulting equations their numbers in program order, nested programs where they stand."""
    for equation in program.equations:
        if Effect.FAULT not in equation.effects:
            continue
        nested = list(equation.nested())
        for _, inner in nested:
            _number_sites(inner, sites)
        if not nested:
            if equation.primitive.name == "check":
                sites.number(equation, "check", equation.params["text"])
            else:
                sites.number(equation)
