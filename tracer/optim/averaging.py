"""Averages of parameters beside their updates: exponential ones, lookahead, schedule-free training."""

from __future__ import annotations

from typing import Any, NamedTuple

from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.optim.adding import add_decayed_weights
from tracer.optim.combining import chained
from tracer.optim.scalars import Dtypes, Scalar, at, checked_rate, count, duplicate, increment, power_of, wide
from tracer.optim.scaling import descent
from tracer.optim.schedules import warmup_constant_schedule
from tracer.optim.selecting import chosen
from tracer.optim.square_rules import scale_by_rms
from tracer.optim.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    applied,
    init_leaves,
    map_leaves,
    parts_of,
    transformation,
    update_leaves,
)
from tracer.trace import trees
from tracer.trace.source import here


class EmaParamsState(NamedTuple):
    """State of `ema_params`: the count of updates, int32, and the average of parameters.

    >>> tracer.optim.ema_params(0.9).init(tnp.ones(1)).ema
    Array([1.], f64)
    """

    count: Any
    ema: Any


class LookaheadState(NamedTuple):
    """State of `lookahead`: the fast optimizer's state, and the steps since the slow parameters last moved.

    >>> tx = tracer.optim.lookahead(tracer.optim.sgd(0.1), 5, 0.5)
    >>> tx.init(tracer.optim.LookaheadParams.init_synced(tnp.zeros(1))).steps_since_sync
    Array(0, i32)
    """

    fast_state: Any
    steps_since_sync: Any


class LookaheadParams(NamedTuple):
    """Parameters of `lookahead`: the fast ones, which the loss takes, and the slow ones, for evaluation.

    >>> tracer.optim.LookaheadParams.init_synced(tnp.zeros(1)).slow
    Array([0.], f64)
    """

    fast: Any
    slow: Any

    @classmethod
    def init_synced(cls, params: Any) -> LookaheadParams:
        """Return the pair of parameters and a copy of them."""
        return cls(params, init_leaves(duplicate, params))


class ScheduleFreeState(NamedTuple):
    """State of `schedule_free`: weights of the average, the base optimizer's state, and its parameters z.

    >>> tracer.optim.schedule_free_sgd(0.1).init(tnp.ones(1)).z
    Array([1.], f64)
    """

    b1: Any
    weight_sum: Any
    step_count: Any
    max_lr: Any
    base_optimizer_state: Any
    z: Any


def incremental_update(new_tensors: Any, old_tensors: Any, step_size: Any) -> Any:
    """Return step_size new + (1 - step_size) old, leaf by leaf; None stays None.

    new_tensors, old_tensors: trees of arrays; step_size: a number. Polyak & Juditsky 1992.

    >>> tracer.optim.incremental_update(tnp.asarray([1.0]), tnp.asarray([0.0]), 0.25)
    Array([0.25], f64)
    """
    return map_leaves(
        lambda new, old: at(step_size, new) * new + (1.0 - at(step_size, new)) * old, new_tensors, old_tensors
    )


def periodic_update(new_tensors: Any, old_tensors: Any, steps: Any, update_period: Any) -> Any:
    """Return the new tree where `update_period` divides the count of steps, else the old one.

    >>> tracer.optim.periodic_update(tnp.asarray([1.0]), tnp.asarray([0.0]), steps=3, update_period=2)
    Array([0.], f64)
    """
    due = tnp.asarray(steps) % update_period == 0
    return chosen(due, new_tensors, init_leaves(tnp.asarray, old_tensors))


def ema_params(decay: Any, debias: bool = True) -> GradientTransformationExtraArgs:
    """Return the transformation that changes no updates and averages parameters: `state.ema` is for evaluation.

    Chain it last: it averages the parameters with their updates added. decay: of the average. debias: whether the
    average is of the parameters after updates alone, each weighted by decay^age; else it starts at `init`'s parameters.

    >>> tx = tracer.optim.chain(tracer.optim.sgd(1.0), tracer.optim.ema_params(0.5))
    >>> params = tnp.asarray([4.0])
    >>> updates, state = tx.update(tnp.asarray([1.0]), tx.init(params), params)
    >>> tx.update(tnp.asarray([1.0]), state, tracer.optim.apply_updates(params, updates))[1][1].ema.round(4)
    Array([2.3333], f64)
    """

    def init(params: Any) -> EmaParamsState:
        return EmaParamsState(count(), init_leaves(duplicate, params))

    def scalars(state: Any, among: Dtypes) -> Any:
        number = increment(state.count)
        weight = (1.0 - tnp.asarray(decay).astype("float64")) / (1.0 - power_of(decay, number)) if debias else None
        return number, 1 - decay if weight is None else Scalar(weight, among)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        number, weight = scalars

        def rule(u: Any, old: Any, p: Any) -> Any:
            new = (p + u).astype(p.dtype)
            return u, old + at(weight, new) * (wide(new) - wide(old))

        updates, average = update_leaves(rule, updates, (state.ema,), params)
        return updates, EmaParamsState(number, average)

    return transformation("ema_params", init, apply, scalars=scalars, need="averages them", kind=EmaParamsState)


def lookahead(
    fast_optimizer: GradientTransformation, sync_period: int, slow_step_size: Any, reset_state: bool = False
) -> GradientTransformationExtraArgs:
    """Return the optimizer of fast parameters that meet slow ones at every `sync_period`-th step.

    Parameters are `LookaheadParams`; gradients are of the fast ones. slow_step_size: how far the slow ones move towards
    the fast ones. reset_state: whether the fast optimizer starts anew there. Raises ArgumentError for a period below 1.
    Zhang et al. 2019, arXiv:1907.08610.

    >>> tx = tracer.optim.lookahead(tracer.optim.sgd(1.0), sync_period=1, slow_step_size=0.5)
    >>> params = tracer.optim.LookaheadParams.init_synced(tnp.asarray([0.0]))
    >>> tx.update(tnp.asarray([1.0]), tx.init(params), params)[0].slow
    Array([-0.5], f64)
    """
    check_period("lookahead", sync_period)

    def init(params: Any) -> LookaheadState:
        return LookaheadState(fast_optimizer.init(getattr(params, "fast", params)), count())

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        del scalars
        updates, fast = parts_run(fast_optimizer, updates, state.fast_state, params.fast, extra)
        meet = state.steps_since_sync == sync_period - 1
        if reset_state:
            fast = chosen(meet, fast_optimizer.init(params.fast), fast)

        def rule(u: Any, slow: Any, p: Any) -> Any:
            apart = p + u - slow
            size = at(slow_step_size, u)
            return tnp.where(meet, u - (1 - size) * apart, u), tnp.where(meet, size * apart, tnp.zeros_like(apart))

        quick, steady = update_leaves(rule, updates, (params.slow,), params.fast)
        return LookaheadParams(quick, steady), LookaheadState(fast, (state.steps_since_sync + 1) % sync_period)

    return transformation("lookahead", init, apply, need="moves fast and slow parameters", kind=LookaheadState)


def parts_run(tx: GradientTransformation, updates: Any, state: Any, params: Any, extra: dict[str, Any]) -> Any:
    """Run the update of a transformation with keywords."""
    part = parts_of(tx)
    among = frozenset[Any]()
    return applied(part, updates, state, params, part.scalars(state, among), extra)


def check_period(name: str, period: Any) -> None:
    """Raise ArgumentError for a period below 1."""
    if not period >= 1:
        raise ArgumentError(message(f"{name}{here()}: sync_period is at least 1", f"got {period!r}"))


def schedule_free(
    base_optimizer: GradientTransformation, learning_rate: Any, b1: Any = 0.9, weight_lr_power: Any = 2.0,
    state_dtype: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the optimizer whose parameters lie between a base optimizer's parameters, z, and their average, x.

    Gradients are taken at b1 x + (1 - b1) z; evaluate at x, `schedule_free_eval_params`. base_optimizer: without
    momentum. learning_rate: the base optimizer's. weight_lr_power: the average is weighted by rates to this
    power. state_dtype: dtype of z. Defazio et al. 2024, arXiv:2405.15682.

    >>> tx = tracer.optim.schedule_free(tracer.optim.sgd(1.0), 1.0)
    >>> params = tnp.asarray([0.0])
    >>> tx.update(tnp.asarray([1.0]), tx.init(params), params)[0]
    Array([-1.], f64)
    """
    rate = checked_rate("schedule_free", learning_rate)
    part = parts_of(base_optimizer)

    def init(params: Any) -> ScheduleFreeState:
        kinds = [wide(tnp.asarray(leaf)).dtype for leaf in trees.flatten(params)[0]]
        dtype = "float64" if kinds and all(str(kind) in ("float64", "complex128") for kind in kinds) else "float32"
        z = init_leaves(lambda p: duplicate(p) if state_dtype is None else p.astype(state_dtype), params)
        zero = tnp.zeros((), dtype)
        return ScheduleFreeState(
            tnp.asarray(b1).astype(dtype),
            zero,
            increment(count()),
            tnp.zeros((), dtype),
            base_optimizer.init(params),
            z,
        )

    def scalars(state: Any, among: Dtypes) -> Any:
        now = tnp.asarray(rate(state.step_count) if callable(rate) else rate).astype(state.max_lr.dtype)
        most = tnp.maximum(state.max_lr, now)
        weight = tnp.power(most, weight_lr_power)
        total = state.weight_sum + weight
        part_of_z = tnp.where(total == 0, 0.0, weight / tnp.where(total == 0, 1.0, total))
        return most, total, Scalar(part_of_z, among), part.scalars(state.base_optimizer_state, among)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        most, total, share, inner = scalars
        updates, base = applied(part, updates, state.base_optimizer_state, params, inner, extra)

        def rule(u: Any, z: Any, p: Any) -> Any:
            new, mean = (z + u).astype(z.dtype), (p - (1.0 - at(b1, u)) * z) / at(b1, u)
            mean = (1.0 - share.of(p)) * mean + share.of(p) * new
            return at(b1, u) * mean + (1.0 - at(b1, u)) * new - p, new

        found, z = update_leaves(rule, updates, (state.z,), params)
        return found, ScheduleFreeState(state.b1, total, increment(state.step_count), most, base, z)

    return transformation("schedule_free", init, apply, scalars=scalars, need="averages them", kind=ScheduleFreeState)


def schedule_free_eval_params(state: Any, params: Any) -> Any:
    """Return the average x, at which to evaluate, from the state of `schedule_free` and its parameters.

    Raises ArgumentError for other states.

    >>> tx = tracer.optim.schedule_free_sgd(0.1)
    >>> params = tnp.asarray([3.0])
    >>> tracer.optim.schedule_free_eval_params(tx.init(params), params).round(6)
    Array([3.], f64)
    """
    if not isinstance(state, ScheduleFreeState):
        raise ArgumentError(
            message(
                f"schedule_free_eval_params{here()} takes the state of schedule_free",
                f"got {type(state).__name__}",
                help="in a chain, its part: state[0]",
            )
        )
    return map_leaves(lambda p, z: (p - (1.0 - at(state.b1, p)) * z) / at(state.b1, p), params, state.z)


def schedule_free_sgd(
    learning_rate: Any = 1.0, warmup_steps: int | None = None, b1: Any = 0.9, weight_decay: Any = None,
    weight_lr_power: Any = 2.0, state_dtype: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return `schedule_free` of gradient descent.

    warmup_steps: of a line from 0 to the learning rate. weight_decay: before the learning rate. For the other arguments
    see `schedule_free`.

    >>> tx = tracer.optim.schedule_free_sgd(1.0)
    >>> params = tnp.asarray([0.0])
    >>> tx.update(tnp.asarray([1.0]), tx.init(params), params)[0]
    Array([-1.], f64)
    """
    rate = learning_rate if warmup_steps is None else warmup_constant_schedule(0, learning_rate, warmup_steps)
    parts = [] if weight_decay is None else [add_decayed_weights(weight_decay)]
    base = chained("schedule_free_sgd", *parts, descent("schedule_free_sgd", rate))
    return schedule_free(base, rate, b1, weight_lr_power, state_dtype)


def schedule_free_adamw(
    learning_rate: Any = 0.0025, warmup_steps: int | None = None, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8,
    weight_decay: Any = 0.0, weight_lr_power: Any = 2.0, state_dtype: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return `schedule_free` of AdamW without momentum.

    warmup_steps: of a line from 0 to the learning rate. b2, eps: as of `adam`. The other arguments are as in
    `schedule_free`.

    >>> tx = tracer.optim.schedule_free_adamw(0.1)
    >>> params = tnp.asarray([0.0])
    >>> tx.update(tnp.asarray([2.0]), tx.init(params), params)[0].round(6)
    Array([-0.1], f64)
    """
    rate = learning_rate if warmup_steps is None else warmup_constant_schedule(0, learning_rate, warmup_steps)
    base = chained(
        "schedule_free_adamw",
        scale_by_rms(b2, eps, eps_in_sqrt=False, bias_correction=True),
        add_decayed_weights(weight_decay),
        descent("schedule_free_adamw", rate),
    )
    return schedule_free(base, rate, b1, weight_lr_power, state_dtype)
