"""Every primitive as CUDA: NVRTC compiles its kernels, and the simulator runs them beside the array reference.

Library routines and callbacks are steps of the host; NumPy's references play the libraries of a card.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.laws.cases import Case, cases_of
from tests.laws.comparing import check_case
from tests.laws.machines import together
from tests.laws.sampling import THOROUGH, generator
from tests.laws.tolerances import DECOMPOSITIONS
from tests.runtime.cuda.simulator.running import outputs_of
from tracer.codegen.cuda import nvrtc
from tracer.codegen.cuda.emit import emit_cuda
from tracer.codegen.cuda.source import CudaSource
from tracer.ir.loop import Buffer, Space
from tracer.ir.primitive import Primitive
from tracer.ir.program import Program
from tracer.ir.target import CUDA
from tracer.ir.types import ArrayType, size, storage_type
from tracer.passes.pipeline import optimize
from tracer.primitives.base.reference import run_reference
from tracer.primitives.catalogue import CATALOGUE
from tracer.runtime.cuda.simulator.kernels import Order
from tracer.schedule.gpu.mapping import GpuSchedule
from tracer.schedule.pipeline import Scheduled, gpu_schedule

COMPILED = 1000 if THOROUGH else 1  # cases of a primitive; their dtypes differ from primitive to primitive
SOURCES = 1000 if THOROUGH else 15  # few, as to start both compilers takes longer than the kernels of a primitive

ON_HOST = {
    **dict.fromkeys(("dot_general", "conv"), "the library routine gemm"),
    "fft": "the library routine fft",
    "triangular_solve": "the library routine trsm",
    **dict.fromkeys(DECOMPOSITIONS, "the library routine"),
    "callback": "a callback into Python",
    "progress": "the library routine mark",
}
"""Primitives of which some cases are steps of the host: on a card they wait for its libraries."""


def cases_by_dtype(primitive: Primitive) -> Iterator[Case]:
    """A case of some elements for each choice of dtypes."""
    seen = set()
    for case in cases_of(primitive.name):
        kinds = tuple(t.dtype if isinstance(t, ArrayType) else "key" for t in case.types)
        if kinds not in seen and all(map(size, (*case.types, *case.program.output_types))):
            seen.add(kinds)
            yield case


def scheduled(program: Program) -> tuple[Scheduled, GpuSchedule]:
    """The program's loops, with its constants, and the loops mapped to a GPU."""
    return gpu_schedule(optimize(program, CUDA), CUDA)


PRIMITIVES = [p for p in CATALOGUE if cases_of(p.name)]
RUN = [p for p in PRIMITIVES if p.name != "callback"]


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=str)
def test_every_primitive_has_kernels_or_is_a_step_of_the_host(primitive: Primitive) -> None:
    cases, on_host = list(cases_by_dtype(primitive)), []
    for case in cases:
        schedule = scheduled(case.program)[1]
        assert schedule.reasons == ()
        on_host += schedule.on_host
    assert cases, "no case has elements"
    if primitive.name in ON_HOST:
        assert any(ON_HOST[primitive.name] in step for step in on_host), "it has kernels now: take its step away"
    else:
        assert on_host == []


def turn_of(primitive: Primitive) -> list[Case]:
    """The cases of a primitive whose turn it is, by its place in the catalogue."""
    cases = list(cases_by_dtype(primitive))
    turn = CATALOGUE.index(primitive) % len(cases)
    return [*cases[turn:], *cases[:turn]][:COMPILED]


@pytest.mark.parametrize("start", range(min(SOURCES, len(RUN))))
@pytest.mark.rung("NVRTC", "simulator", of="primitives")
def test_kernels_give_what_the_reference_does(start: int) -> None:
    """The simulator gives what the reference does, and NVRTC takes the kernels: of a third, thoroughly of all."""
    cases = [case for primitive in RUN[start::SOURCES] for case in turn_of(primitive)]
    program = together([case.program for case in cases])
    found, mapped = scheduled(program)
    module = mapped.require(program.name)
    if THOROUGH or start % 3 == 0:  # test_scalar_ops.py has every operation compiled
        compiles(emit_cuda(module))
    values = [case.draw(generator(3, case)) for case in cases]
    given = [*(x for xs in values for x in xs), *found.constants]
    entry = next(function for function in module.functions if function.name == module.entry)
    inputs = [p for p in entry.parameters if isinstance(p, Buffer) and p.space is not Space.OUTPUT]
    flat = [np.ascontiguousarray(x).reshape(-1).view(p.dtype) for x, p in zip(given, inputs, strict=True)]
    left = iter(outputs_of(module, flat, Order.BY_CHANCE))
    for case, xs in zip(cases, values, strict=True):
        stored = map(storage_type, case.program.output_types)
        got = [next(left).view(t.dtype).reshape(t.shape) for t in stored]
        check_case(case, xs, got, run_reference(case.program, xs))


def compiles(source: CudaSource) -> None:
    """NVRTC takes the kernels, and no thread of theirs needs a stack."""
    compiled = nvrtc.compile_cuda(source.text, "sm_90")
    assert set(compiled.resources) == {kernel.name for kernel in source.kernels}
    for found in compiled.resources.values():
        assert (found.stack, found.spill_stores, found.spill_loads) == (0, 0, 0)
