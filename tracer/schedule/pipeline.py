"""The loop passes in order: the table of contents of everything between a program and machine code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np

from tracer.ir.loop import Buffer, Function, Module, Space
from tracer.ir.loop.build import Builder
from tracer.ir.primitive import Effect
from tracer.ir.program import Program
from tracer.ir.target import CPU, PLAIN, Target
from tracer.ir.types import Type
from tracer.schedule import dispatch
from tracer.schedule.algorithms.library_kernels import choose_kernels, runs_in_place
from tracer.schedule.cpu.nontemporal_stores import store_nontemporal
from tracer.schedule.cpu.outlined_reductions import outline_reductions
from tracer.schedule.cpu.parallelise import parallelise
from tracer.schedule.cpu.root_products import multiply_roots
from tracer.schedule.cpu.unroll_and_inline import unroll_and_inline
from tracer.schedule.cpu.vectorise import vectorise
from tracer.schedule.elements.gather_bounds import FaultSite, FaultSites
from tracer.schedule.gpu.block_loops import loops_to_kernels
from tracer.schedule.gpu.joined_maps import join_maps
from tracer.schedule.gpu.mapping import GpuSchedule, map_to_gpu
from tracer.schedule.gpu.narrow_indices import narrow_indices
from tracer.schedule.gpu.reduction_chunks import chunk_reductions
from tracer.schedule.gpu.row_programs import folds, has_blocks
from tracer.schedule.gpu.scatter_chunks import chunk_scatters
from tracer.schedule.gpu.wide_accesses import align_buffers
from tracer.schedule.loops.minmax_keys import key_minmax
from tracer.schedule.loops.reduction_splitting import split_reductions
from tracer.schedule.loops.row_fusion import fuse_rows
from tracer.schedule.loops.scalarise import one_at_a_time
from tracer.schedule.loops.storage_folding import fold_storage
from tracer.schedule.math.legalise import expand_math
from tracer.schedule.memory.arena_allocation import allocate_arena, reuse_buffers
from tracer.schedule.plan.donation import Donor, donors_of
from tracer.schedule.plan.fusion import plan_block
from tracer.schedule.plan.steps import BlockPlan
from tracer.schedule.terms.origins import Origins
from tracer.schedule.terms.schedules import Schedules
from tracer.schedule.terms.value_locations import Memory, Source
from tracer.schedule.write.program_writer import BlockWriter, ModuleState, entry_buffer

ENTRY = "main"


@dataclass(frozen=True, slots=True)
class LoopPass:
    """A rewrite of loop IR that preserves its results.

    rewrite: a function of the module or, where `targeted`, of the module and the target.
    """

    name: str
    rewrite: Callable[..., Module]
    targeted: bool = False

    def run(self, module: Module, target: Target = CPU) -> Module:
        """Return the rewritten module."""
        changed: Module = self.rewrite(module, target) if self.targeted else self.rewrite(module)
        return changed


LOOP_PIPELINE: Final[tuple[LoopPass, ...]] = (
    LoopPass("fuse_rows", fuse_rows, targeted=True),
    LoopPass("fold_storage", fold_storage),
    LoopPass("reuse_buffers", partial(reuse_buffers, in_place=runs_in_place)),
    LoopPass("allocate_arena", allocate_arena),
    LoopPass("split_reductions", split_reductions, targeted=True),
    LoopPass("vectorise", vectorise, targeted=True),
    LoopPass("store_nontemporal", store_nontemporal, targeted=True),
    LoopPass("key_minmax", key_minmax),
    LoopPass("expand_math", partial(expand_math, calls=True)),
    LoopPass("parallelise", parallelise, targeted=True),
    LoopPass("choose_kernels", choose_kernels, targeted=True),
    LoopPass("outline_reductions", outline_reductions),
    LoopPass("multiply_roots", multiply_roots, targeted=True),
    LoopPass("unroll_and_inline", unroll_and_inline),
)
"""The passes from a program's loop nests to those of a CPU."""
ELEMENTWISE_PIPELINE: Final = tuple(
    each for each in LOOP_PIPELINE if each.name in ("vectorise", "expand_math", "multiply_roots")
)
"""The passes of a single loop over the elements: see `symbolic_size`."""
GPU_PIPELINE: Final[tuple[LoopPass, ...]] = (
    LoopPass("fuse_rows", partial(fuse_rows, runs_rows=has_blocks, with_values=True), targeted=True),
    LoopPass("fold_storage", partial(fold_storage, may_fold=folds)),
    LoopPass("allocate_arena", allocate_arena),
    LoopPass("chunk_scatters", chunk_scatters),
    LoopPass("chunk_reductions", chunk_reductions),
    LoopPass("align_buffers", align_buffers),
    LoopPass("join_maps", join_maps),
    LoopPass("map_to_gpu", lambda module: map_to_gpu(module).module),
    LoopPass("loops_to_kernels", loops_to_kernels),
    LoopPass("narrow_indices", narrow_indices),
    LoopPass("expand_math", expand_math),
)
"""The passes from a program's loop nests to a GPU's kernels."""
ONE_AT_A_TIME: Final = LoopPass("one_at_a_time", one_at_a_time)
"""The last pass where vectors are switched off."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A module and the data that a runtime needs to call it.

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
    program: Program, target: Target = PLAIN, *, donated: Collection[int] = (), origins: Origins | None = None
) -> Scheduled:
    """Return the program's loop nests, before any loop pass.

    donated: inputs whose memory results may take over. origins: a table of the user's lines, to be filled.
    """
    schedules = Schedules(dispatch.SCHEDULES, target.limits)
    plan = plan_block(program, schedules)
    donors = donors_of(program, plan, schedules, donated)
    while True:
        state = ModuleState(schedules, target, origins)
        scheduled, missed = _write(program, plan, donors, state)
        if not missed:
            return scheduled
        donors = {result: donor for result, donor in donors.items() if result not in missed}


def _write(
    program: Program, plan: BlockPlan, donors: Mapping[int, Donor], state: ModuleState
) -> tuple[Scheduled, set[int]]:
    """Return the loops, and the results that did not end up in their donors' memory."""
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
    owned = [n in given for n in range(len(inputs))]
    results = BlockWriter(state, builder, program, inputs, targets, owned, plan=plan).write()
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
    target: Target = CPU,
    *,
    donated: Collection[int] = (),
    passes: Sequence[LoopPass] = LOOP_PIPELINE,
    origins: Origins | None = None,
) -> Scheduled:
    """Return an optimised program's loops mapped to a CPU, mathematical functions written out.

    donated: inputs whose memory results may take over. origins: a table of the user's lines, to be filled.
    """
    plain = loops(program, target, donated=donated, origins=origins)
    *_, (_, module) = loop_stages(plain.module, target, passes)
    return replace(plain, module=module)


def gpu_schedule(
    program: Program, target: Target, passes: Sequence[LoopPass] = GPU_PIPELINE, *, donated: Collection[int] = ()
) -> tuple[Scheduled, GpuSchedule]:
    """Return the loops of a program optimised for a GPU, its kernels, and the steps that still need the host.

    donated: inputs whose memory results may take over.
    """
    plain = loops(program, target, donated=donated)
    *_, (_, module) = loop_stages(plain.module, target, passes)
    return plain, GpuSchedule(module)


def loop_stages(
    module: Module, target: Target = CPU, passes: Sequence[LoopPass] = LOOP_PIPELINE
) -> Iterator[tuple[LoopPass, Module]]:
    """Yield every loop pass with the module after it, in order."""
    for each in passes:
        module = each.run(module, target)
        yield each, module


def _number_sites(program: Program, sites: FaultSites) -> None:
    """Number the faulting equations in program order, nested programs in line."""
    for equation in program.equations:
        if Effect.FAULT not in equation.effects:
            continue
        nested = list(equation.nested())
        for _, inner in nested:
            _number_sites(inner, sites)
        if not nested:
            sites.number(equation)
