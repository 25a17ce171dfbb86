"""Transformations that multiply: by numbers, learning rates and schedules, by norms of parameters and updates."""

from __future__ import annotations

from typing import Any, NamedTuple

from tracer import numpy as tnp
from tracer.optim.scalars import (
    Dtypes,
    Scalar,
    at,
    checked_rate,
    count,
    global_norm,
    increment,
    squared,
    wide,
)
from tracer.optim.transformation import (
    GradientTransformationExtraArgs,
    elementwise,
    identity,
    map_leaves,
    no_state,
    transformation,
)
from tracer.trace.array import Array


class ScaleByScheduleState(NamedTuple):
    """State of `scale_by_schedule`: the count of updates, int32, and the rate that was used last, float32.

    >>> tracer.optim.scale_by_schedule(lambda count: 0.5).init(None)
    ScaleByScheduleState(count=Array(0, i32), rate=Array(0.5, f32))
    """

    count: Any
    rate: Any


def scale(step_size: Any) -> GradientTransformationExtraArgs:
    """Return the multiplication of updates by a number or scalar array.

    >>> tracer.optim.scale(-0.1).update(tnp.asarray([10.0]), tracer.optim.EmptyState())[0]
    Array([-1.], f64)
    """
    return elementwise("scale", lambda g: at(step_size, g) * g)


def scale_by_learning_rate(learning_rate: Any = None, *, flip_sign: bool = True) -> GradientTransformationExtraArgs:
    """Return the multiplication of updates by minus the learning rate.

    learning_rate: a number, a scalar array, a schedule (a function of the count), or None for no change.
    flip_sign: False multiplies by the learning rate. Raises ArgumentError for other learning rates.

    >>> tracer.optim.scale_by_learning_rate(0.1).update(tnp.asarray([10.0]), tracer.optim.EmptyState())[0]
    Array([-1.], f64)
    """
    if learning_rate is None:
        return identity()
    return descent("scale_by_learning_rate", learning_rate, flip_sign)


def descent(name: str, learning_rate: Any, flip_sign: bool = True) -> GradientTransformationExtraArgs:
    """Return the last step of the optimizer `name`. Raises ArgumentError for a wrong learning rate."""
    rate = checked_rate(name, learning_rate)
    if callable(rate):
        return _scheduled(rate, flip_sign)
    return scale(-1 * rate if flip_sign else rate)


def scale_by_schedule(step_size_fn: Any) -> GradientTransformationExtraArgs:
    """Return the multiplication of updates by a function of the count of updates.

    step_size_fn: from a count, int32 from 0, to a scalar.

    >>> tx = tracer.optim.scale_by_schedule(lambda count: 1.0 / (1 + count))
    >>> updates, state = tx.update(tnp.asarray([3.0]), tx.init(None))
    >>> tx.update(tnp.asarray([3.0]), state)[0]
    Array([1.5], f64)
    """
    return _scheduled(step_size_fn, False)


def _scheduled(schedule: Any, flip_sign: bool) -> GradientTransformationExtraArgs:
    def init(params: Any) -> ScaleByScheduleState:
        del params
        start = count()
        return ScaleByScheduleState(start, tnp.asarray(schedule(start)).astype("float32"))

    def scalars(state: Any, among: Dtypes) -> Any:
        rate = tnp.asarray(schedule(state.count))
        return Scalar(-rate if flip_sign else rate, among), rate.astype("float32")

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        del params, extra
        factor, rate = scalars
        return map_leaves(lambda g: factor.of(g) * g, updates), ScaleByScheduleState(increment(state.count), rate)

    return transformation("scale_by_schedule", init, apply, scalars=scalars, kind=ScaleByScheduleState)


def norm(x: Any, least: Any = 0.0) -> Array:
    """Return the Euclidean norm of an array, at least `least`; its derivative is finite where the norm is."""
    total = tnp.sum(squared(wide(x)))
    small = total <= at(least, total) ** 2
    return tnp.where(small, at(least, total), tnp.sqrt(tnp.where(small, 1.0, total)))


def root_mean_square(x: Any, least: Any = 0.0) -> Array:
    """Return the root of the mean square of an array, at least `least`."""
    mean = tnp.mean(squared(wide(x)))
    small = mean <= at(least, mean) ** 2
    return tnp.where(small, at(least, mean), tnp.sqrt(tnp.where(small, 1.0, mean)))


def scale_by_trust_ratio(
    min_norm: Any = 0.0, trust_coefficient: Any = 1.0, eps: Any = 0.0
) -> GradientTransformationExtraArgs:
    """Return the multiplication of each update u by c |p| / (|u| + eps), p the parameter.

    min_norm: the least that norms count as. trust_coefficient: c. eps: added to the norm of the update. Where a norm is
    zero the factor is 1. You, Gitman & Ginsburg 2017, arXiv:1708.03888.

    >>> tx = tracer.optim.scale_by_trust_ratio()
    >>> tx.update(tnp.asarray([2.0]), tx.init(None), tnp.asarray([3.0]))[0]
    Array([3.], f64)
    """

    def rule(u: Any, p: Any) -> Any:
        own, other = norm(u, min_norm), norm(p, min_norm)
        whole = (own == 0) | (other == 0)
        ratio = at(trust_coefficient, own) * other / (tnp.where(whole, 1.0, own) + at(eps, own))
        return u * tnp.where(whole, 1.0, ratio).astype(own.dtype)

    return elementwise("scale_by_trust_ratio", rule, need="compares norms with those of the parameters")


def scale_by_param_block_norm(min_scale: Any = 1e-3) -> GradientTransformationExtraArgs:
    """Return the multiplication of each update by the norm of its parameter, at least `min_scale`.

    >>> tx = tracer.optim.scale_by_param_block_norm()
    >>> tx.update(tnp.asarray([1.0, 2.0]), tx.init(None), tnp.asarray([3.0, 4.0]))[0]
    Array([ 5., 10.], f64)
    """
    need = "scales by norms of the parameters"
    return elementwise("scale_by_param_block_norm", lambda u, p: u * norm(p, min_scale), need=need)


def scale_by_param_block_rms(min_scale: Any = 1e-3) -> GradientTransformationExtraArgs:
    """Return the multiplication of each update by the root mean square of its parameter, at least `min_scale`.

    >>> tx = tracer.optim.scale_by_param_block_rms()
    >>> tx.update(tnp.asarray([1.0, 2.0]), tx.init(None), tnp.asarray([2.0, -2.0]))[0]
    Array([2., 4.], f64)
    """
    need = "scales by the size of the parameters"
    return elementwise("scale_by_param_block_rms", lambda u, p: u * root_mean_square(p, min_scale), need=need)


def scale_by_sign() -> GradientTransformationExtraArgs:
    """Return the transformation of updates to their signs; complex ones to length 1.

    >>> tracer.optim.scale_by_sign().update(tnp.asarray([-3.0, 0.0]), tracer.optim.EmptyState())[0]
    Array([-1.,  0.], f64)
    """
    return elementwise("scale_by_sign", tnp.sign)


def centralize() -> GradientTransformationExtraArgs:
    """Return the subtraction, from updates of two axes or more, of their mean over all axes but the first.

    Yong et al. 2020, arXiv:2004.01461.

    >>> tracer.optim.centralize().update(tnp.asarray([[1.0, 3.0]]), tracer.optim.EmptyState())[0]
    Array([[-1.,  1.]], f64)
    """
    return elementwise(
        "centralize", lambda g: g - tnp.mean(g, axis=tuple(range(1, g.ndim)), keepdims=True) if g.ndim > 1 else g
    )


def normalize_by_update_norm(scale_factor: Any = 1.0, eps: Any = 1e-6) -> GradientTransformationExtraArgs:
    """Return the division of updates by their global norm plus `eps`, times `scale_factor`.

    >>> tx = tracer.optim.normalize_by_update_norm(eps=0.0)
    >>> tx.update(tnp.asarray([3.0, 4.0]), tx.init(None))[0]
    Array([0.6, 0.8], f64)
    """

    def apply(updates: Any, state: Any, *_: Any, **extra: Any) -> Any:
        size = (global_norm(updates) + eps) / scale_factor
        return map_leaves(lambda g: g / at(size, g), updates), state

    return transformation("normalize_by_update_norm", no_state, apply)


def normalize() -> GradientTransformationExtraArgs:
    """Return the division of updates by their global norm, as `sam` steps to the worst point near by.

    >>> tracer.optim.normalize().update(tnp.asarray([3.0, 4.0]), tracer.optim.EmptyState())[0]
    Array([0.6, 0.8], f64)
    """
    return normalize_by_update_norm(eps=0.0)
