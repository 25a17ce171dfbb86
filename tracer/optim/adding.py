"""Transformations that add: decayed weights, noise; and that keep updates in bounds: signs of parameters, no NaN."""

from __future__ import annotations

from typing import Any, NamedTuple

from tracer import numpy as tnp
from tracer import random
from tracer.errors import ArgumentError, message
from tracer.optim.masks import masked
from tracer.optim.scalars import Dtypes, Scalar, at, count, increment
from tracer.optim.transformation import (
    EmptyState,
    GradientTransformationExtraArgs,
    elementwise,
    init_leaves,
    map_leaves,
    no_state,
    transformation,
    update_leaves,
)
from tracer.trace import trees
from tracer.trace.source import here


class WeightDecaySchedule(NamedTuple):
    """State of `add_decayed_weights` with a schedule: the count of updates, int32.

    >>> tracer.optim.add_decayed_weights(lambda count: 0.1).init(None)
    WeightDecaySchedule(count=Array(0, i32))
    """

    count: Any


class AddNoiseState(NamedTuple):
    """State of `add_noise`: the count of updates, int32, and the key of the next noise.

    >>> tracer.optim.add_noise(1.0, 0.5, 0).init(None).count
    Array(0, i32)
    """

    count: Any
    rng_key: Any


class ZeroNansState(NamedTuple):
    """State of `zero_nans`: whether the last update of each array had a NaN.

    >>> tracer.optim.zero_nans().init(tnp.zeros(2))
    ZeroNansState(found_nan=Array(False, bool))
    """

    found_nan: Any


def add_decayed_weights(
    weight_decay: Any = 0.0, mask: Any = None, *, weight_decay_mask: Any = None
) -> GradientTransformationExtraArgs:
    """Return the addition of `weight_decay` times the parameters to updates.

    weight_decay: a number, a scalar array, or a schedule. mask, weight_decay_mask: the parameters that decay, as of
    `masked`, by either name; "matrices" spares biases and norms.

    >>> tx = tracer.optim.add_decayed_weights(0.1)
    >>> tx.update(tnp.asarray([1.0]), tx.init(None), tnp.asarray([2.0]))[0]
    Array([1.2], f64)
    """
    if mask is not None and weight_decay_mask is not None:
        summary = f"add_decayed_weights{here()}: mask and weight_decay_mask are one argument"
        raise ArgumentError(message(summary, help="give one"))
    mask = weight_decay_mask if mask is None else mask
    scheduled = callable(weight_decay) and trees.is_leaf(weight_decay)
    nothing = isinstance(weight_decay, int | float) and weight_decay == 0.0

    def init(params: Any) -> Any:
        return WeightDecaySchedule(count()) if scheduled else no_state(params)

    def scalars(state: Any, among: Dtypes) -> Any:
        return Scalar(tnp.asarray(weight_decay(state.count)), among) if scheduled else weight_decay

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        new = WeightDecaySchedule(increment(state.count)) if scheduled else state
        return updates if nothing else map_leaves(lambda g, p: g + at(scalars, g) * p, updates, params), new

    need = None if nothing else "decays weights"
    kind = WeightDecaySchedule if scheduled else None
    tx = transformation("add_decayed_weights", init, apply, scalars=scalars, need=need, kind=kind)
    return tx if mask is None else masked(tx, mask)


def add_noise(eta: Any, gamma: Any, key: Any = 0, *, seed: Any = None) -> GradientTransformationExtraArgs:
    """Return the addition of normal noise of variance eta / count^gamma to updates.

    eta: the first variance. gamma: the exponent. key, seed: a key of `tracer.random` or an integer, by either name.
    Neelakantan et al. 2015, arXiv:1511.06807.

    >>> tx = tracer.optim.add_noise(0.0, 0.55, tracer.random.key(1))
    >>> tx.update(tnp.asarray([1.0]), tx.init(None))[0]
    Array([1.], f64)
    """
    start = key if seed is None else seed

    def init(params: Any) -> AddNoiseState:
        del params
        return AddNoiseState(count(), random.key(start) if isinstance(start, int) else start)

    def scalars(state: Any, among: Dtypes) -> Any:
        number = increment(state.count)
        return number, Scalar(tnp.sqrt(eta / number.astype("float64") ** gamma), among)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        number, deviation = scalars
        following, now = random.split(state.rng_key)
        leaves, structure = trees.flatten(updates)
        keys = trees.unflatten(structure, [*random.split(now, len(leaves))])

        def rule(g: Any, k: Any) -> Any:
            return g + deviation.of(g) * random.normal(k, g.shape, g.dtype)

        return map_leaves(rule, updates, keys, loose=True), AddNoiseState(number, following)

    return transformation("add_noise", init, apply, scalars=scalars, kind=AddNoiseState)


def keep_params_nonnegative() -> GradientTransformationExtraArgs:
    """Return the transformation by which parameters that would become negative become zero.

    >>> tx = tracer.optim.keep_params_nonnegative()
    >>> tx.update(tnp.asarray([-3.0, -1.0]), tx.init(None), tnp.asarray([2.0, 2.0]))[0]
    Array([-2., -1.], f64)
    """
    need = "keeps them from being negative"
    return elementwise("keep_params_nonnegative", lambda u, p: tnp.where(p + u < 0, -p, u), need=need)


def zero_nans() -> GradientTransformationExtraArgs:
    """Return the transformation of NaN in updates to zeros; its state says which arrays had some.

    >>> tx = tracer.optim.zero_nans()
    >>> tx.update(tnp.asarray([1.0, tnp.nan]), tx.init(tnp.zeros(2)))
    (Array([1., 0.], f64), ZeroNansState(found_nan=Array(True, bool)))
    """

    def rule(g: Any, found: Any) -> Any:
        del found
        wrong = tnp.isnan(g)
        return tnp.where(wrong, tnp.zeros_like(g), g), tnp.any(wrong)

    def apply(updates: Any, state: Any, *_: Any, **extra: Any) -> Any:
        new, found = update_leaves(rule, updates, (state.found_nan,), loose=True)
        return new, ZeroNansState(found)

    return transformation(
        "zero_nans", lambda params: ZeroNansState(init_leaves(lambda p: tnp.asarray(False), params)), apply
    )


AddDecayedWeightsState = NonNegativeParamsState = EmptyState
