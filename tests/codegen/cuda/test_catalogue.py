"""Every primitive as CUDA: NVRTC compiles its kernels, or the mapping to a GPU says what keeps it on the host."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.laws.cases import Case, cases_of
from tests.laws.machines import together
from tracer.codegen.cuda import nvrtc
from tracer.codegen.cuda.emit import emit_cuda
from tracer.ir.primitive import Primitive
from tracer.ir.program import Program
from tracer.ir.target import CUDA
from tracer.ir.types import ArrayType, size
from tracer.passes.pipeline import optimize
from tracer.primitives.catalogue import CATALOGUE
from tracer.schedule.gpu.mapping import GpuSchedule, map_to_gpu
from tracer.schedule.math.legalise import expand_math
from tracer.schedule.pipeline import loops

COMPILED = 4  # cases, as one source

_IN_ORDER = "a loop whose rounds follow each other, with nothing around it for threads to share"
_STACK = "a stack of values kept for the backward pass"
_LOOP, _COUNTED = "a while loop", "a loop with a known number of rounds (scan)"
LEFT = {
    **dict.fromkeys(("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"), _IN_ORDER),
    **dict.fromkeys(("sort", "top_k"), _IN_ORDER),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin"), _IN_ORDER),  # of one row: many share threads
    **dict.fromkeys(("dot_general", "conv"), "the library routine gemm"),
    **dict.fromkeys(("cholesky", "lu", "triangular_solve", "solve"), "Alloc within a loop"),  # scratch memory of lanes
    **dict.fromkeys(("stack_empty", "stack_spread", "stack_push", "stack_pop"), _STACK),
    **dict.fromkeys(("stack_item", "stack_add_at", "stack_put", "stack_sum"), _STACK),
    "cond": "a branch (cond)",
    **dict.fromkeys(("while_loop", "loop_push", "loop_pull", "loop_bend"), _LOOP),
    **dict.fromkeys(("for_loop", "scan"), _COUNTED),
    "callback": "a callback into Python",
}


def cases_by_dtype(primitive: Primitive) -> Iterator[Case]:
    """A case of some elements for each choice of dtypes."""
    seen = set()
    for case in cases_of(primitive.name):
        kinds = tuple(t.dtype if isinstance(t, ArrayType) else "key" for t in case.types)
        if kinds not in seen and all(map(size, (*case.types, *case.program.output_types))):
            seen.add(kinds)
            yield case


def mapped(program: Program) -> GpuSchedule:
    return map_to_gpu(loops(optimize(program, CUDA), CUDA).module)


@pytest.mark.parametrize("primitive", [p for p in CATALOGUE if cases_of(p.name)], ids=str)
def test_every_primitive_has_kernels_or_a_reason(primitive: Primitive) -> None:
    whole, left = [], []
    for case in cases_by_dtype(primitive):
        found = mapped(case.program).left
        left += found
        if not found:
            whole.append(case.program)
    assert whole or left, "no case has elements"
    if primitive.name in LEFT:
        assert any(LEFT[primitive.name] in reason for reason in left), "it has kernels now: take its reason away"
    else:
        assert left == []
    if whole and nvrtc.is_available():
        compiles(together(whole[:COMPILED]))


def compiles(program: Program) -> None:
    """NVRTC takes the kernels of the program, and no thread of theirs needs a stack."""
    source = emit_cuda(expand_math(mapped(program).require(program.name)))
    compiled = nvrtc.compile_cuda(source.text, "sm_90")
    assert set(compiled.resources) == {kernel.name for kernel in source.kernels}
    for found in compiled.resources.values():
        assert (found.stack, found.spill_stores, found.spill_loads) == (0, 0, 0)
