"""L-BFGS: directions from the last differences of parameters and gradients, steps from a line search."""

from __future__ import annotations

from typing import Any, NamedTuple

from tracer import lax
from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.optim.combining import chained
from tracer.optim.line_searches import inner_product, line_dtype
from tracer.optim.scalars import at, count, increment, sum_squares
from tracer.optim.scaling import descent, scale
from tracer.optim.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    identity,
    init_leaves,
    map_leaves,
    transformation,
)
from tracer.optim.zoom import scale_by_zoom_linesearch
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here


class ScaleByLBFGSState(NamedTuple):
    """State of `scale_by_lbfgs`: the last parameters and gradients, and their last differences with weights.

    >>> tracer.optim.scale_by_lbfgs(memory_size=3).init(tnp.zeros(2)).diff_params_memory.shape
    (3, 2)
    """

    count: Any
    params: Any
    updates: Any
    diff_params_memory: Any
    diff_updates_memory: Any
    weights_memory: Any


def scale_by_lbfgs(memory_size: int = 10, scale_init_precond: bool = True) -> GradientTransformationExtraArgs:
    """Return the product of gradients with the L-BFGS estimate of the inverse Hessian.

    memory_size: count of differences to keep, at least 1; ArgumentError otherwise. scale_init_precond: whether the
    estimate starts from a multiple of the identity that fits the last difference. Nocedal & Wright 2006, algorithm 7.4.

    >>> tx = tracer.optim.scale_by_lbfgs()
    >>> params = tnp.asarray([3.0, 4.0])
    >>> tx.update(params, tx.init(params), params)[0]
    Array([0.6, 0.8], f64)
    """
    if memory_size < 1:
        raise ArgumentError(message(f"scale_by_lbfgs{here()}: memory_size is at least 1", f"got {memory_size}"))

    def init(params: Any) -> ScaleByLBFGSState:
        old, slopes = init_leaves(tnp.zeros_like, params), init_leaves(tnp.zeros_like, params)
        steps, turns = (
            init_leaves(lambda p: tnp.zeros_like(p, p.dtype, (memory_size, *p.shape)), params) for _ in range(2)
        )
        leaves = trees.flatten(steps)[0]  # beside the parameters
        weights = tnp.zeros_like(leaves[0] if leaves else 0.0, line_dtype(params), memory_size)
        return ScaleByLBFGSState(count(), old, slopes, steps, turns, weights)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        del scalars, extra
        moved = state.count > 0
        place, last = state.count % memory_size, (state.count - 1) % memory_size
        step = map_leaves(
            lambda g, new, old: tnp.where(moved, new - old, 0).astype(old.dtype), updates, params, state.params
        )
        turn = map_leaves(lambda new, old: tnp.where(moved, new - old, 0).astype(old.dtype), updates, state.updates)
        bend = inner_product(turn, step)
        weight = tnp.where(bend == 0, 0.0, 1.0 / tnp.where(bend == 0, 1.0, bend))
        steps, turns, weights = (
            trees.tree_map(lambda m, x: m.at[last].set(x.astype(m.dtype)), memory, new)
            for memory, new in (
                (state.diff_params_memory, step), (state.diff_updates_memory, turn), (state.weights_memory, weight),
            )
        )  # fmt: skip
        size: Any = 1.0
        if scale_init_precond:
            square, length = sum_squares(turn), tnp.sqrt(sum_squares(updates))
            fitted = tnp.where(square > 0, bend / tnp.where(square > 0, square, 1.0), 1.0)
            size = tnp.where(moved, fitted, tnp.minimum(1.0, 1.0 / length))
        order = (place + tnp.arange(memory_size, dtype="int32")) % memory_size
        direction = _two_loops(updates, steps, turns, weights, size, order)
        after = ScaleByLBFGSState(
            increment(state.count),
            map_leaves(lambda g, p, old: p.astype(old.dtype), updates, params, state.params),
            map_leaves(lambda g, old: g.astype(old.dtype), updates, state.updates),
            steps, turns, weights,
        )  # fmt: skip
        return direction, after

    return transformation(
        "scale_by_lbfgs", init, apply, need="compares them with the last ones", kind=ScaleByLBFGSState
    )


def _two_loops(updates: Any, steps: Any, turns: Any, weights: Array, size: Any, order: Array) -> Any:
    """Return the product of gradients with the estimate: from the newest difference to the oldest, and back."""

    def picked(memory: Any, index: Any) -> Any:
        return trees.tree_map(lambda m: m[index], memory)

    def plus(vector: Any, factor: Any, other: Any) -> Any:
        return map_leaves(lambda v, o: (v + at(factor, v) * o).astype(v.dtype), vector, other)

    def back(vector: Any, index: Any) -> tuple[Any, Any]:
        share = weights[index] * inner_product(picked(steps, index), vector)
        return plus(vector, -share, picked(turns, index)), share

    def forth(vector: Any, row: Any) -> tuple[Any, None]:
        index, share = row
        other = weights[index] * inner_product(picked(turns, index), vector)
        return plus(vector, share - other, picked(steps, index)), None

    vector, shares = lax.scan(back, updates, order, reverse=True)
    vector = map_leaves(lambda v: (at(size, v) * v).astype(v.dtype), vector)
    return lax.scan(forth, vector, (order, shares))[0]


def lbfgs(
    learning_rate: Any = None, memory_size: int = 10, scale_init_precond: bool = True,
    linesearch: GradientTransformation | str | None = "zoom",
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return L-BFGS: directions by past differences, steps by a line search; for losses without noise.

    learning_rate: factor of the direction before the search; None is 1. memory_size, scale_init_precond: as of
    `scale_by_lbfgs`. linesearch: a transformation, by default `scale_by_zoom_linesearch(20, initial_guess_strategy=
    "one")`, or None. Give update the keywords value, grad and value_fn. Nocedal & Wright 2006, chapters 3 and 7.

    >>> f = lambda x: tnp.sum((x - 2.0) ** 2)
    >>> tx = tracer.optim.lbfgs()
    >>> params = tnp.asarray([0.0, 1.0])
    >>> state = tx.init(params)
    >>> for _ in range(2):
    ...     value, g = tracer.value_and_grad(f)(params)
    ...     updates, state = tx.update(g, state, params, value=value, grad=g, value_fn=f)
    ...     params = tracer.optim.apply_updates(params, updates)
    >>> params.round(6)
    Array([2., 2.], f64)
    """
    search = scale_by_zoom_linesearch(20, initial_guess_strategy="one") if isinstance(linesearch, str) else linesearch
    return chained(
        "lbfgs",
        scale_by_lbfgs(memory_size, scale_init_precond),
        scale(-1.0) if learning_rate is None else descent("lbfgs", learning_rate),
        identity() if search is None else search,
    )
