"""Compiled loops over the elements of arrays, each for one tuple of dtypes and every shape.

Eager execution uses them for primitives whose compiled bits differ from NumPy's, so that `f(x)` and `jit(f)(x)` call
one exponential. They are kept in files, see `kept_kernels`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tracer.ir.primitive import Primitive
from tracer.ir.types import ArrayType, Type, with_shape
from tracer.lazy import LazyModule
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.runtime.system.gc_pause import collector_paused
from tracer.trace.stage import stage
from tracer.trace.trace import bind_all

if TYPE_CHECKING:
    from tracer.passes import pipeline
    from tracer.runtime.compile import compile as compiling
    from tracer.runtime.compile import this_machine
    from tracer.runtime.eager import kept_kernels
    from tracer.runtime.jit import entry as entries
    from tracer.runtime.native.entry_point import EntryPoint
    from tracer.schedule import pipeline as scheduling
    from tracer.schedule import symbolic_size
else:
    scheduling = LazyModule("tracer.schedule.pipeline")
    symbolic_size = LazyModule("tracer.schedule.symbolic_size")
    compiling = LazyModule("tracer.runtime.compile.compile")
    this_machine = LazyModule("tracer.runtime.compile.this_machine")
    kept_kernels = LazyModule("tracer.runtime.eager.kept_kernels")
    entries = LazyModule("tracer.runtime.jit.entry")
    pipeline = LazyModule("tracer.passes.pipeline")


def kernel(primitive: Primitive, params: Mapping[str, Any], types: Sequence[Type], scalars: Sequence[bool]) -> Any:
    """Compile a primitive for arrays of any one shape and scalars, as an entry's `Recognised`.

    Return None where it needs more than one loop over the elements, or the platform has no entries.
    """
    with collector_paused():
        if not entries.entries_enabled():
            return None
        place = kept_kernels.place(primitive, params, types, scalars)
        elements = [t if scalar else with_shape(t, (1,)) for t, scalar in zip(types, scalars, strict=True)]
        point = None if place is None else place.read(elements)
        if point is None:
            point = _compiled(primitive, params, elements, scalars, place)
        return None if point is None else entries.Recognised.elementwise(point, scalars)


def _compiled(
    primitive: Primitive,
    params: Mapping[str, Any],
    elements: Sequence[Type],
    scalars: Sequence[bool],
    place: kept_kernels.Place | None,
) -> EntryPoint | None:
    """Return the entry point of a kernel compiled now, with the types and the work of one element."""
    shape = (symbolic_size.SIZE,)

    def function(inputs: list[Any]) -> list[Any]:
        spread = [x if x.shape == shape else broadcast_in_dim(x, shape, ()) for x in inputs]
        return bind_all(primitive, spread, params)

    given = [t if scalar else with_shape(t, shape) for t, scalar in zip(elements, scalars, strict=True)]
    staged = stage(function, given, name="elementwise")
    results = staged.program.output_types
    if staged.constants or not all(isinstance(t, ArrayType) and t.shape == shape for t in results):
        return None
    passes = compiling.in_force(scheduling.ELEMENTWISE_PIPELINE)
    scheduled = symbolic_size.schedule_for_any_size(pipeline.optimize(staged.program), passes, this_machine.this_cpu())
    if scheduled is None:
        return None
    alone = None if place is None else compiling.compile_alone(staged.program, scheduled)
    compiled = compiling.compile_scheduled(staged.program, scheduled) if alone is None else alone[0]
    point = replace(
        compiled.entry_point, input_types=tuple(elements), output_types=tuple(with_shape(t, (1,)) for t in results),
        work=compiled.work / symbolic_size.SIZE,
    )  # fmt: skip
    if place is not None and alone is not None:
        place.write(alone[1], point)
    return point
