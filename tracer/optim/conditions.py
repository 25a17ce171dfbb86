"""Transformations under conditions: finite gradients, also of scaled losses, steps of a kind, a loss on a plateau."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.optim.scalars import at, count, increment, wide
from tracer.optim.selecting import all_finite, chosen, zeroed
from tracer.optim.states import tree_get_all_with_path
from tracer.optim.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    map_leaves,
    parts_of,
    transformation,
    with_extra_args_support,
)
from tracer.trace import trees
from tracer.trace.source import here


class ApplyIfFiniteState(NamedTuple):
    """State of `apply_if_finite`: how many updates in a row, and in all, were not finite; whether the last was.

    >>> tracer.optim.apply_if_finite(tracer.optim.sgd(0.1), 5).init(tnp.zeros(1)).total_notfinite
    Array(0, i32)
    """

    notfinite_count: Any
    last_finite: Any
    total_notfinite: Any
    inner_state: Any


class DynamicLossScaleState(NamedTuple):
    """State of `dynamic_loss_scale`: the scale, float32; numbers of updates since it changed, and left out.

    >>> tracer.optim.dynamic_loss_scale(tracer.optim.sgd(0.1)).init(tnp.zeros(1)).scale
    Array(65536., f32)
    """

    scale: Any
    count: Any
    total_notfinite: Any
    inner_state: Any


class ConditionallyTransformState(NamedTuple):
    """State of `conditionally_transform`: the inner state, and the count of updates.

    >>> tx = tracer.optim.conditionally_transform(tracer.optim.scale(2.0), lambda step: step < 1)
    >>> tx.init(tnp.zeros(1)).step
    Array(0, i32)
    """

    inner_state: Any
    step: Any


class ConditionallyMaskState(NamedTuple):
    """State of `conditionally_mask`: the count of updates, and the inner state.

    >>> tracer.optim.conditionally_mask(tracer.optim.scale(2.0), lambda step: step < 1).init(tnp.zeros(1)).step
    Array(0, i32)
    """

    step: Any
    inner_state: Any


class ReduceLROnPlateauState(NamedTuple):
    """State of `reduce_on_plateau`: the factor of updates, the best loss, and counts.

    >>> tracer.optim.reduce_on_plateau().init(tnp.zeros(1)).scale
    Array(1., f64)
    """

    scale: Any
    best_value: Any
    plateau_count: Any
    cooldown_count: Any
    count: Any
    avg_value: Any


def apply_if_finite(inner: GradientTransformation, max_consecutive_errors: int) -> GradientTransformationExtraArgs:
    """Return the transformation that hands on zeros, and keeps its state, where gradients are not finite.

    inner: the transformation. max_consecutive_errors: after as many such updates in a row the next one is applied as it
    is. The state of a step that failed is left to be examined.

    >>> tx = tracer.optim.apply_if_finite(tracer.optim.sgd(1.0), 5)
    >>> tx.update(tnp.asarray([tnp.nan]), tx.init(tnp.zeros(1)))[0]
    Array([0.], f64)
    """
    run = with_extra_args_support(inner).update

    def init(params: Any) -> ApplyIfFiniteState:
        return ApplyIfFiniteState(count(), tnp.asarray(True), count(), inner.init(params))

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        del scalars
        finite = all_finite(updates)
        wrong = tnp.where(finite, 0, increment(state.notfinite_count))
        accept = finite | (wrong > max_consecutive_errors)
        new, inner_state = run(updates, state.inner_state, params, **extra)
        total = tnp.where(finite, state.total_notfinite, increment(state.total_notfinite))
        after = ApplyIfFiniteState(wrong, finite, total, chosen(accept, inner_state, state.inner_state))
        return zeroed(~accept, new), after

    return transformation("", init, apply, need=parts_of(inner).need, kind=ApplyIfFiniteState)


def dynamic_loss_scale(
    inner: GradientTransformation, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
    growth_interval: int = 2000, min_scale: float = 1.0,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the transformation for gradients of a loss times `loss_scale(state)`, which float16 does not lose.

    inner: gets the gradients divided by the scale, in float32 at least. init_scale: of the first step. Where a gradient
    is not finite, updates are zeros and inner keeps its state. The scale is multiplied by backoff_factor, down to
    min_scale. After growth_interval updates in a row it is multiplied by growth_factor. Names and defaults are
    PyTorch's, of `GradScaler`. bfloat16 needs no scale. Micikevicius et al. 2018, arXiv:1710.03740. Raises
    ArgumentError unless 0 < backoff_factor < 1 < growth_factor, and the other numbers are positive.

    >>> tx = tracer.optim.dynamic_loss_scale(tracer.optim.sgd(1.0))
    >>> state = tx.init(tnp.zeros(1, "float16"))
    >>> loss = lambda x: x.astype("float32").sum() * 2.0**-26
    >>> scaled = lambda x: loss(x) * tracer.optim.loss_scale(state)
    >>> x = tnp.ones(1, "float16")
    >>> tracer.grad(loss)(x), tx.update(tracer.grad(scaled)(x), state)[0]
    (Array([0.], f16), Array([-1.4901161e-08], f32))
    """
    if not (0 < backoff_factor < 1 < growth_factor and min(init_scale, growth_interval, min_scale) > 0):
        expected = "0 < backoff_factor < 1 < growth_factor, and positive scales and intervals"
        got = f"{backoff_factor=}, {growth_factor=}, {init_scale=}, {growth_interval=}, {min_scale=}"
        raise ArgumentError(message(f"dynamic_loss_scale{here()}: expected {expected}", f"got {got}"))
    run = with_extra_args_support(inner).update

    def init(params: Any) -> DynamicLossScaleState:
        return DynamicLossScaleState(tnp.asarray(init_scale, "float32"), count(), count(), inner.init(params))

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        del scalars
        finite = all_finite(updates)
        new, inner_state = run(map_leaves(lambda g: wide(g) / at(state.scale, wide(g)), updates),
                               state.inner_state, params, **extra)  # fmt: skip
        waited = increment(state.count)
        due = finite & (waited >= growth_interval)
        grown = tnp.where(due, state.scale * growth_factor, state.scale)
        scale = tnp.where(finite, grown, tnp.maximum(state.scale * backoff_factor, min_scale))
        after = DynamicLossScaleState(
            tnp.where(tnp.isfinite(scale), scale, state.scale).astype("float32"),
            tnp.where(finite & ~due, waited, 0).astype("int32"),
            tnp.where(finite, state.total_notfinite, increment(state.total_notfinite)),
            chosen(finite, inner_state, state.inner_state),
        )
        return zeroed(~finite, new), after

    return transformation("", init, apply, need=parts_of(inner).need, kind=DynamicLossScaleState)


def loss_scale(state: Any) -> Any:
    """Return the factor of the next loss: the scale in a state of `dynamic_loss_scale`, float32.

    state: of any chain that has it once. Raises ArgumentError for other states.

    >>> tx = tracer.optim.dynamic_loss_scale(tracer.optim.adam(1e-3))
    >>> tracer.optim.loss_scale(tx.init(tnp.zeros(1)))
    Array(65536., f32)
    """
    found = tree_get_all_with_path(state, "DynamicLossScaleState")
    if len(found) != 1:
        raise ArgumentError(
            message(
                f"loss_scale{here()}: the state has {len(found)} loss scales, expected one",
                f"got {trees.structure_text(trees.flatten(state)[1])}",
                help="tx = optim.dynamic_loss_scale(optim.adamw(1e-3))",
            )
        )
    return found[0][1].scale


def conditionally_transform(
    inner: GradientTransformation, should_transform_fn: Callable[..., Any], forward_extra_args: bool = False
) -> GradientTransformationExtraArgs:
    """Return the transformation at steps where a function of the count is true; other steps leave updates unchanged.

    should_transform_fn: from the count, int32, to a scalar bool. forward_extra_args: whether it gets update's keywords.

    >>> tx = tracer.optim.conditionally_transform(tracer.optim.scale(2.0), lambda step: step >= 1)
    >>> first, state = tx.update(tnp.asarray([1.0]), tx.init(tnp.zeros(1)))
    >>> first, tx.update(tnp.asarray([1.0]), state)[0]
    (Array([1.], f64), Array([2.], f64))
    """
    run = with_extra_args_support(inner).update

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        del scalars
        accept = should_transform_fn(state.step, **(extra if forward_extra_args else {}))
        new, inner_state = run(updates, state.inner_state, params, **extra)
        kept = chosen(accept, inner_state, state.inner_state)
        return chosen(accept, new, updates), ConditionallyTransformState(kept, increment(state.step))

    def init(params: Any) -> ConditionallyTransformState:
        return ConditionallyTransformState(inner.init(params), count())

    return transformation("", init, apply, need=parts_of(inner).need, kind=ConditionallyTransformState)


def conditionally_mask(
    inner: GradientTransformation, should_transform_fn: Callable[..., Any], forward_extra_args: bool = False
) -> GradientTransformationExtraArgs:
    """Return the transformation at the steps where a function of the count is true; other steps have zero updates.

    should_transform_fn, forward_extra_args: as of `conditionally_transform`.

    >>> tx = tracer.optim.conditionally_mask(tracer.optim.scale(2.0), lambda step: step >= 1)
    >>> first, state = tx.update(tnp.asarray([1.0]), tx.init(tnp.zeros(1)))
    >>> first, tx.update(tnp.asarray([1.0]), state)[0]
    (Array([0.], f64), Array([2.], f64))
    """
    run = with_extra_args_support(inner).update

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        del scalars
        accept = tnp.asarray(should_transform_fn(state.step, **(extra if forward_extra_args else {})))
        new, inner_state = run(updates, state.inner_state, params, **extra)
        kept = chosen(accept, inner_state, state.inner_state)
        return zeroed(~accept, new), ConditionallyMaskState(increment(state.step), kept)

    def init(params: Any) -> ConditionallyMaskState:
        return ConditionallyMaskState(count(), inner.init(params))

    return transformation("", init, apply, need=parts_of(inner).need, kind=ConditionallyMaskState)


def reduce_on_plateau(
    factor: float = 0.1, patience: int = 10, rtol: float = 1e-4, atol: float = 0.0, cooldown: int = 0,
    accumulation_size: int = 1, min_scale: float = 0.0,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the scaling of updates that shrinks while the loss does not; give `update` the loss as `value=`.

    factor: of the scale after `patience` values without one below (1 - rtol) best - atol. cooldown: values after that
    are not counted. accumulation_size: values to average before one is judged. min_scale: the least scale. Raises
    ArgumentError unless 0 < factor < 1 and tolerances are in [0, 1], one of them positive.

    >>> tx = tracer.optim.reduce_on_plateau(factor=0.5, patience=1)
    >>> _, state = tx.update(tnp.asarray([1.0]), tx.init(tnp.zeros(1)), value=3.0)
    >>> tx.update(tnp.asarray([1.0]), state, value=3.0)[0]
    Array([0.5], f64)
    """
    if not 0 < factor < 1 or not (0 <= rtol <= 1 and atol >= 0) or rtol == atol == 0:
        expected = "0 < factor < 1, 0 <= rtol <= 1, atol >= 0, rtol or atol positive"
        got = f"got factor={factor}, rtol={rtol}, atol={atol}"
        raise ArgumentError(message(f"reduce_on_plateau{here()}: expected {expected}", got))

    def init(params: Any) -> ReduceLROnPlateauState:
        leaves = [tnp.asarray(leaf).dtype for leaf in trees.flatten(params)[0]]
        wide = "float64" if any(dtype.itemsize > 8 or str(dtype) == "float64" for dtype in leaves) else "float32"
        one, best = tnp.ones((), wide), tnp.full((), tnp.inf, wide)
        return ReduceLROnPlateauState(one, best, count(), count(), count(), tnp.zeros((), wide))

    def judged(state: Any) -> Any:
        better = state.avg_value < (1 - rtol) * state.best_value - atol
        waited = tnp.where(better, 0, increment(state.plateau_count))
        cooling, over = state.cooldown_count > 0, waited == patience
        lower = tnp.where(over, state.scale * factor, state.scale)
        return ReduceLROnPlateauState(
            tnp.where(cooling, state.scale, tnp.maximum(lower, min_scale)),
            tnp.where(better, state.avg_value, state.best_value),
            tnp.where(cooling | over, 0, waited),
            tnp.where(cooling, state.cooldown_count - 1, tnp.where(over, cooldown, 0)),
            tnp.zeros_like(state.count),
            tnp.zeros_like(state.avg_value),
        )

    def apply(updates: Any, state: Any, params: Any, scalars: Any, *, value: Any = None, **extra: Any) -> Any:
        del params, scalars, extra
        if value is None:
            raise ArgumentError(
                message(
                    f"update{here()}: reduce_on_plateau needs the loss",
                    help="updates, state = tx.update(grads, state, params, value=loss)",
                )
            )
        number = increment(state.count)
        dtype = state.avg_value.dtype
        mean = (state.count.astype(dtype) * state.avg_value + tnp.asarray(value).astype(dtype)) / number.astype(dtype)
        now = state._replace(avg_value=mean, count=number)
        new = chosen(number == accumulation_size, judged(now), now)
        return map_leaves(lambda g: at(new.scale, g) * g, updates), new

    return transformation("reduce_on_plateau", init, apply, kind=ReduceLROnPlateauState)
