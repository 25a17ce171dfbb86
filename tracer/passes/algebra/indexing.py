"""Rewrites of reads, writes and checks at computed indices, where indices and predicates are constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.ir.program import Atom, Equation, Literal
from tracer.passes.algebra.layouts import slice_of
from tracer.passes.base.rewriter import Rewriter
from tracer.passes.base.rules import Rules
from tracer.primitives.arrays.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from tracer.primitives.arrays.indexing.dimension_numbers import GatherScatterMode
from tracer.primitives.arrays.indexing.gather import gather_p, scatter_add_p
from tracer.primitives.arrays.indexing.scatter import scatter_max_p, scatter_min_p, scatter_p
from tracer.primitives.arrays.slice_pad_concatenate import concatenate_p
from tracer.primitives.base.broadcasting import broadcast_in_dim_p
from tracer.primitives.base.shapes import squeeze_p
from tracer.primitives.control.scatter_mul import scatter_mul_p
from tracer.primitives.elementwise.bits import and_p
from tracer.primitives.elementwise.comparison import select_p


def slice_at_literals(equation: Equation, at: Rewriter) -> Atom | None:
    """Drop a dynamic_slice of everything; rewrite one whose indices are constant to a slice."""
    x, *starts = equation.inputs
    taken = equation.params["slice_sizes"]
    if taken == x.type.shape:
        return x
    begins = []
    for start, n, size in zip(starts, taken, x.type.shape, strict=True):
        if n == size:
            begins.append(0)
        elif isinstance(start, Literal):
            begins.append(min(max(int(start.value), 0), size - n))
        else:
            return None
    return slice_of(x, begins, [b + n for b, n in zip(begins, taken, strict=True)], [1] * len(begins), at)


def update_all(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite a dynamic_update_slice of everything to the update, of nothing to the operand."""
    x, update = equation.inputs[:2]
    if update.type.shape == x.type.shape:
        return at.fit(update, x.type)
    return x if 0 in update.type.shape else None


def _is_false(atom: Atom, at: Rewriter) -> bool:
    value = at.splat(atom)
    return value is not None and not value.value


def gather_nothing(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite a gather whose predicate is false to zeros."""
    return at.zeros(equation.outputs[0].type) if _is_false(equation.inputs[2], at) else None


def scatter_nothing(equation: Equation, at: Rewriter) -> Atom | None:
    """Drop a scatter whose predicate is false, or that has no updates."""
    x, _, updates, predicate = equation.inputs
    return x if _is_false(predicate, at) or 0 in updates.type.shape else None


def gather_one_window(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite a gather of one window, at a constant index within bounds, to a slice."""
    x, indices, predicate = equation.inputs
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    known = _known_vector(indices, at)
    if known is None or numbers.operand_batching_dims or not _is_true(predicate, at):
        return None
    starts = [0] * len(sizes)
    for axis, start in zip(numbers.start_index_map, known, strict=True):
        last = x.type.shape[axis] - sizes[axis]
        clips = last >= 0 and equation.params["mode"] is GatherScatterMode.CLIP  # no window fits where last is negative
        if not (0 <= start <= last or clips):
            return None
        starts[axis] = min(max(start, 0), last)
    limits = [start + n for start, n in zip(starts, sizes, strict=True)]
    window = slice_of(x, starts, limits, [1] * len(starts), at)
    if numbers.collapsed_slice_dims:
        window = at.emit(squeeze_p, window, dimensions=tuple(numbers.collapsed_slice_dims))
    return at.spread(window, equation.outputs[0].type.shape, numbers.offset_dims)


def _is_true(atom: Atom, at: Rewriter) -> bool:
    value = at.splat(atom)
    return value is not None and bool(value.value)


def _known_vector(indices: Atom, at: Rewriter) -> list[int] | None:
    """Return the index vector, if all are equal and constant."""
    shape = indices.type.shape
    value = at.splat(indices)
    if value is not None:
        return [int(value.value)] * shape[-1]
    joined = at.definition(indices, concatenate_p)
    if joined is None or joined.params["dimension"] != len(shape) - 1:
        return None
    vector: list[int] = []
    for part in joined.inputs:
        value = at.splat(part)
        if value is None:
            return None
        vector += [int(value.value)] * part.type.shape[-1]
    return vector


def update_where_chosen(equation: Equation, at: Rewriter) -> Atom | None:
    """Rewrite select(p, x with updates, x) to x with updates where p holds, if p has a value for each update.

    Lanes that have finished then need no choice between arrays at every step of the other lanes.
    """
    which, updated, x = equation.inputs
    chain: list[Equation] = []
    while updated is not x:
        update = at.definition(updated, *SCATTERS)
        if update is None or len(chain) == _MAX_UPDATES:
            return None
        chain.append(update)
        updated = update.inputs[0]
    for update in reversed(chain):
        _, indices, updates, predicate = update.inputs
        chosen = _by_update(which, update, at)
        if chosen is None:
            return None
        if _implies(predicate, chosen, at):
            chosen = predicate
        elif update.params["mode"] is GatherScatterMode.CHECKED:  # every update in the predicate may fault
            return None
        elif not _is_true(predicate, at):
            batch = indices.type.shape[:-1] if chosen.type.shape or predicate.type.shape else ()
            both = (at.spread(p, batch, range(len(p.type.shape))) for p in (predicate, chosen))
            chosen = at.emit(and_p, *both)
        x = at.emit(update.primitive, x, indices, updates, chosen, **update.params)
    return x


def _implies(predicate: Atom, other: Atom, at: Rewriter) -> bool:
    """Whether a predicate implies another: it is equal to it, or a conjunction that contains it."""
    parts, spread = [predicate], at.definition(other, broadcast_in_dim_p)
    for part in parts:
        found = at.definition(part, broadcast_in_dim_p) if spread is not None else None
        if part is other or (
            found is not None and spread is not None and (found.inputs, found.params) == (spread.inputs, spread.params)
        ):
            return True
        both = at.definition(part, and_p)
        if both is not None and len(parts) < _MAX_PARTS:
            parts += both.inputs
    return False


def _by_update(which: Atom, update: Equation, at: Rewriter) -> Atom | None:
    """Return a predicate of an updated array as one for each index vector; None if it differs within a window."""
    if not which.type.shape:
        return which
    spread = at.definition(which, broadcast_in_dim_p)
    if spread is None:
        return None
    mask, numbers = spread.inputs[0], update.params["dimension_numbers"]
    paired = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
    dims = [paired.get(axis, -1) for axis in spread.params["broadcast_dimensions"]]
    batch = update.inputs[1].type.shape[:-1]
    fits = -1 not in dims and dims == sorted(dims) and mask.type.shape == tuple(batch[d] for d in dims)
    return at.spread(mask, batch, dims) if fits else None


def without_true_checks(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
    """Drop a check that holds for certain, or whose guard is false."""
    condition, guard = equation.inputs
    holds = isinstance(condition, Literal) and bool(condition.value)
    dead = isinstance(guard, Literal) and not guard.value
    return () if holds or dead else None


SCATTERS: Final = (scatter_p, scatter_add_p, scatter_mul_p, scatter_min_p, scatter_max_p)
_MAX_UPDATES: Final = 16  # consecutive updates of an array
_MAX_PARTS: Final = 16  # examined parts of a predicate

INDEXING: Final[Rules] = (
    ((dynamic_slice_p,), (slice_at_literals,)),
    ((dynamic_update_slice_p,), (update_all,)),
    ((gather_p,), (gather_nothing, gather_one_window)),
    (SCATTERS, (scatter_nothing,)),
    ((select_p,), (update_where_chosen,)),
)
