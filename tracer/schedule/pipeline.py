"""From a program to a module of loop IR."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tracer.ir.loop import Buffer, Function, Module, Space
from tracer.ir.loop.build import Builder
from tracer.ir.primitive import Effect
from tracer.ir.program import Program
from tracer.ir.types import Type
from tracer.passes.blocked_variance import variances_in_blocks
from tracer.passes.cache_blocking import in_blocks
from tracer.schedule.algorithms.cumulative_tiles import TILE
from tracer.schedule.algorithms.library_kernels import choose_kernels
from tracer.schedule.cpu.nontemporal_stores import LEAST, streamed_results
from tracer.schedule.cpu.outlined_reductions import outline_reductions
from tracer.schedule.cpu.parallelise import LEAST_WORK, share_loops
from tracer.schedule.cpu.vectorise import map_to_cpu
from tracer.schedule.dispatch import write_other
from tracer.schedule.elements.gather_bounds import FaultSite, FaultSites
from tracer.schedule.loops.minmax_keys import key_extremes
from tracer.schedule.loops.reduction_splitting import split_reductions
from tracer.schedule.loops.row_fusion import fuse_rows
from tracer.schedule.loops.storage_folding import keep_rows_local
from tracer.schedule.math.legalise import expand_math
from tracer.schedule.memory.arena_allocation import planned, written_over
from tracer.schedule.plan.donation import Donor, donors_of
from tracer.schedule.terms.value_locations import Memory, Source
from tracer.schedule.write.program_writer import BlockWriter, ModuleState, entry_buffer

ENTRY = "main"
_SMALL_TILE = 128  # bytes, where all is shared and split that can be


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A module and what a runtime must know to call it.

    sites: the faulting equations, by the number that a fault reports. callbacks: by slot. constants: the contents of
    the CONSTANT buffers, which follow the INPUT and OUTPUT buffers among the entry's parameters. donors: for the
    results that are left in a DONATED operand's memory, that operand's number; their OUTPUT buffers are not used.
    """

    module: Module
    sites: tuple[FaultSite, ...]
    callbacks: tuple[Callable[..., Any], ...]
    constants: tuple[np.ndarray[Any, Any], ...]
    input_types: tuple[Type, ...]
    output_types: tuple[Type, ...]
    donors: Mapping[int, int] = field(default_factory=dict)


def loops(
    program: Program,
    donated: Collection[int] = (),
    *,
    short_products: bool = False,
    takes_numbers: bool = False,
    tile: int | None = None,
) -> Scheduled:
    """The program's loop nests, not yet mapped to a machine.

    donated: inputs that may be overwritten. short_products: whether the machine multiplies matrices of bf16.
    takes_numbers: whether nests that differ in numbers alone may be a function of those. tile: of what is cumulative,
    in bytes, where the machine is a CPU.
    """
    donors = donors_of(program, donated)
    while True:
        state = ModuleState(write_other, short_products=short_products, takes_numbers=takes_numbers, tile=tile)
        scheduled, missed = _write(program, donors, state)
        if not missed:
            return scheduled
        donors = {result: donor for result, donor in donors.items() if result not in missed}


def _write(program: Program, donors: Mapping[int, Donor], state: ModuleState) -> tuple[Scheduled, set[int]]:
    """The loops, and the results that were made elsewhere than in their donors' memory."""
    _number_sites(program, state.sites)
    given = {donor.operand for donor in donors.values()}
    spaces = [Space.DONATED if n in given else Space.INPUT for n in range(len(program.inputs))]
    inputs = [entry_buffer(f"in{n}", t, s) for (n, t), s in zip(enumerate(program.input_types), spaces, strict=True)]
    outputs = [entry_buffer(f"out{n}", t, Space.OUTPUT) for n, t in enumerate(program.output_types)]
    places = {n: replace(inputs[d.operand], type=outputs[n].type) for n, d in donors.items()}
    targets: list[Memory | None] = [places.get(n, output) for n, output in enumerate(outputs)]
    for n, donor in donors.items():
        if donor.is_updated:
            targets[n] = None
    builder = Builder()
    results = BlockWriter(state, builder, program, inputs, targets, [n in given for n in range(len(inputs))]).write()
    parameters: tuple[Buffer, ...] = tuple(m.buffer for m in (*inputs, *outputs))
    main = Function(ENTRY, parameters, builder.finish())
    module = Module((*state.functions, main), ENTRY, state.arena.size, state.stacks)
    scheduled = Scheduled(
        module, tuple(state.sites.sites), tuple(state.callbacks), (), program.input_types, program.output_types,
        {n: donor.operand for n, donor in donors.items()},
    )  # fmt: skip
    return scheduled, {n for n, place in places.items() if not _is_at(results[n], place)}


def _is_at(source: Source, place: Memory) -> bool:
    return isinstance(source, Memory) and source.view == place.view


def schedule(
    program: Program,
    *,
    least_work: float = LEAST_WORK,
    donated: Collection[int] = (),
    short_products: bool = False,
    tiles: bool = False,
) -> Scheduled:
    """The program's loops mapped to a CPU, mathematical functions written out.

    least_work: nests that are estimated to take less than so many nanoseconds are not shared by threads.
    donated: the inputs whose memory may be given to results. short_products: whether the machine multiplies matrices of
    bf16; elsewhere they are converted. tiles: whether in AMX tiles.
    """
    tile = TILE if least_work else _SMALL_TILE
    program = variances_in_blocks(program)
    plain = loops(in_blocks(program), donated, short_products=short_products, takes_numbers=True, tile=tile)
    module = planned(written_over(keep_rows_local(fuse_rows(plain.module, least_work))))
    module = split_reductions(module) if least_work else split_reductions(module, block=16, far=0)
    module = streamed_results(map_to_cpu(module), LEAST if least_work else _SMALL_TILE)
    module = share_loops(expand_math(key_extremes(module)), least_work)
    module = outline_reductions(choose_kernels(module, tiles=tiles))
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
