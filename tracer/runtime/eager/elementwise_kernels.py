"""Compiled loops over the elements of arrays, each for one tuple of dtypes and every shape.

Eager execution uses them for primitives whose compiled bits differ from NumPy's, so that `f(x)` and `jit(f)(x)` call
one exponential.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tracer.ir.types import ArrayType, Type, with_shape
from tracer.lazy import LazyModule
from tracer.trace.stage import stage

if TYPE_CHECKING:
    from tracer.passes import pipeline
    from tracer.runtime.analysis import cost
    from tracer.runtime.compile import compile as compiling
    from tracer.runtime.jit import entry as entries
    from tracer.schedule import symbolic_size
else:
    symbolic_size = LazyModule("tracer.schedule.symbolic_size")
    compiling = LazyModule("tracer.runtime.compile.compile")
    cost = LazyModule("tracer.runtime.analysis.cost")
    entries = LazyModule("tracer.runtime.jit.entry")
    pipeline = LazyModule("tracer.passes.pipeline")

Types = tuple[ArrayType, ...]  # with shape () for arrays, too


def kernel(
    function: Callable[[list[Any]], Sequence[Any]],
    types: Sequence[Type],
    scalars: Sequence[bool],
    expected: Types | None = None,
) -> Any:
    """Compile a function of arrays and scalars of the types, for arrays of any one shape, as an entry's `Recognised`.

    Return None where the function needs more than one loop over the elements, a result has not the expected type, or
    the platform has no entries.
    """
    if not entries.entries_enabled():
        return None
    size = symbolic_size.SIZE
    given = [t if scalar else with_shape(t, (size,)) for t, scalar in zip(types, scalars, strict=True)]
    staged = stage(function, given, name="elementwise")
    results = staged.program.output_types
    if staged.constants or not all(isinstance(t, ArrayType) and t.shape == (size,) for t in results):
        return None
    if expected is not None and tuple(with_shape(t, ()) for t in results) != expected:
        return None
    scheduled = symbolic_size.schedule_for_any_size(pipeline.optimize(staged.program))
    if scheduled is None:
        return None
    compiled = compiling.compile_scheduled(staged.program, scheduled)
    return entries.Recognised.elementwise(compiled, scalars, cost.work_of(staged.program) / size)
