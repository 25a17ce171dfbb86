"""Rules that divide by sizes of past gradients: RMSprop, Adagrad, Adadelta, Rprop."""

from __future__ import annotations

from typing import Any, NamedTuple

from tracer import numpy as tnp
from tracer.lax import rsqrt
from tracer.optim.scalars import (
    Dtypes,
    at,
    average,
    correction,
    count,
    increment,
    moment_like,
    square_like,
    squared,
    wide,
)
from tracer.optim.transformation import (
    GradientTransformationExtraArgs,
    init_leaves,
    transformation,
    update_leaves,
)


class ScaleByRssState(NamedTuple):
    """State of `scale_by_rss`: the sum of squares.

    >>> tracer.optim.scale_by_rss().init(tnp.zeros(1))
    ScaleByRssState(sum_of_squares=Array([0.1], f64))
    """

    sum_of_squares: Any


class ScaleByRmsState(NamedTuple):
    """State of `scale_by_rms`: the average of squares.

    >>> tracer.optim.scale_by_rms().init(tnp.zeros(1))
    ScaleByRmsState(nu=Array([0.], f64))
    """

    nu: Any


class ScaleByRmsWithCountState(NamedTuple):
    """State of `scale_by_rms(bias_correction=True)`: the count, and the average of squares.

    >>> tracer.optim.scale_by_rms(bias_correction=True).init(tnp.zeros(1)).count
    Array(0, i32)
    """

    count: Any
    nu: Any


class ScaleByRStdDevState(NamedTuple):
    """State of `scale_by_stddev`: the averages of gradients and of their squares.

    >>> tracer.optim.scale_by_stddev().init(tnp.zeros(1)).mu
    Array([0.], f64)
    """

    mu: Any
    nu: Any


class ScaleByRStdDevWithCountState(NamedTuple):
    """State of `scale_by_stddev(bias_correction=True)`: the count, and the averages.

    >>> tracer.optim.scale_by_stddev(bias_correction=True).init(tnp.zeros(1)).count
    Array(0, i32)
    """

    count: Any
    mu: Any
    nu: Any


class ScaleByAdaDeltaState(NamedTuple):
    """State of `scale_by_adadelta`: averages of the squares of gradients and of updates.

    >>> tracer.optim.scale_by_adadelta().init(tnp.zeros(1)).e_x
    Array([0.], f64)
    """

    e_g: Any
    e_x: Any


class ScaleByRpropState(NamedTuple):
    """State of `scale_by_rprop`: the step of each element, and the last update.

    >>> tracer.optim.scale_by_rprop(0.1).init(tnp.zeros(1)).step_sizes
    Array([0.1], f64)
    """

    step_sizes: Any
    prev_updates: Any


def scale_by_rss(initial_accumulator_value: Any = 0.1, eps: Any = 1e-7) -> GradientTransformationExtraArgs:
    """Return the rule of Adagrad: g over the root of the sum of all squares so far.

    initial_accumulator_value: the sum at the start. eps: added to the sum. Duchi, Hazan & Singer 2011, JMLR 12.

    >>> tx = tracer.optim.scale_by_rss(0.0, eps=0.0)
    >>> tx.update(tnp.asarray([3.0, 0.0]), tx.init(tnp.zeros(2)))[0]
    Array([1., 0.], f64)
    """

    def init(params: Any) -> ScaleByRssState:
        return ScaleByRssState(init_leaves(lambda p: square_like(p, initial_accumulator_value), params))

    def rule(g: Any, total: Any) -> Any:
        g = wide(g)
        total = squared(g) + total
        filled = total > 0
        return g * tnp.where(filled, rsqrt(tnp.where(filled, total, 1.0) + at(eps, total)), 0.0), total

    def apply(updates: Any, state: Any, *_: Any, **extra: Any) -> Any:
        found, sums = update_leaves(rule, updates, (state.sum_of_squares,))
        return found, ScaleByRssState(sums)

    return transformation("scale_by_rss", init, apply, kind=ScaleByRssState)


def scale_by_rms(
    decay: Any = 0.9, eps: Any = 1e-8, initial_scale: Any = 0.0, eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the rule of RMSprop: g over the root of the average of its squares.

    decay: of the average. eps: added to the average, or to its root where not `eps_in_sqrt` (PyTorch's way).
    initial_scale: the average at the start. bias_correction: whether it is divided by 1 - decay^count. Hinton 2012.

    >>> tx = tracer.optim.scale_by_rms(bias_correction=True)
    >>> tx.update(tnp.asarray([3.0]), tx.init(tnp.zeros(1)))[0]
    Array([1.], f64)
    """
    return _by_deviation(False, decay, eps, initial_scale, eps_in_sqrt, bias_correction)


def scale_by_stddev(
    decay: Any = 0.9, eps: Any = 1e-8, initial_scale: Any = 0.0, eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the rule of centred RMSprop: g over the standard deviation of gradients.

    decay, eps, initial_scale, eps_in_sqrt, bias_correction: as of `scale_by_rms`. Graves 2013, arXiv:1308.0850.

    >>> tx = tracer.optim.scale_by_stddev(decay=0.5, eps=0.0)
    >>> tx.update(tnp.asarray([3.0]), tx.init(tnp.zeros(1)))[0]
    Array([2.], f64)
    """
    return _by_deviation(True, decay, eps, initial_scale, eps_in_sqrt, bias_correction)


def _by_deviation(
    centred: bool, decay: Any, eps: Any, start: Any, eps_in_sqrt: bool, corrected: bool
) -> GradientTransformationExtraArgs:
    counted, plain = (
        (ScaleByRStdDevWithCountState, ScaleByRStdDevState) if centred else (ScaleByRmsWithCountState, ScaleByRmsState)
    )

    kind = counted if corrected else plain

    def state_of(number: Any, averages: Any) -> Any:
        return counted(number, *averages) if corrected else plain(*averages)

    def init(params: Any) -> Any:
        means = [init_leaves(moment_like, params)] if centred else []
        return state_of(count() if corrected else None, [*means, init_leaves(lambda p: square_like(p, start), params)])

    def scalars(state: Any, among: Dtypes) -> Any:
        if not corrected:
            return None, None
        number = increment(state.count)
        return number, correction(decay, number, among)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        number, factor = scalars

        def rule(g: Any, *averages: Any) -> Any:
            g = wide(g)
            *means, v = averages
            means = [average(g, wide(m), at(decay, g)) for m in means]
            v = average(squared(g), v, at(decay, g))
            spread = v * factor.of(v) if corrected else v
            for m in means:
                spread = spread - squared(m * factor.of(m) if corrected else m)
            inverse = rsqrt(spread + at(eps, v)) if eps_in_sqrt else 1 / (tnp.sqrt(spread) + at(eps, v))
            return inverse * g, *means, v

        found, *averages = update_leaves(rule, updates, [state.mu, state.nu] if centred else [state.nu])
        return found, state_of(number, averages)

    return transformation("scale_by_stddev" if centred else "scale_by_rms", init, apply, scalars=scalars, kind=kind)


def scale_by_adadelta(rho: Any = 0.9, eps: Any = 1e-6) -> GradientTransformationExtraArgs:
    """Return the rule of Adadelta: g times the ratio of the sizes of past updates and gradients.

    rho: decay of the averages of squares. eps: added to both. Zeiler 2012, arXiv:1212.5701.

    >>> tx = tracer.optim.scale_by_adadelta(rho=0.0)
    >>> tx.update(tnp.asarray([3.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([0.001], f64)
    """

    def init(params: Any) -> ScaleByAdaDeltaState:
        return ScaleByAdaDeltaState(init_leaves(square_like, params), init_leaves(square_like, params))

    def rule(g: Any, e_g: Any, e_x: Any) -> Any:
        g = wide(g)
        e_g = average(squared(g), e_g, at(rho, g))
        u = tnp.sqrt(e_x + at(eps, e_x)) / tnp.sqrt(e_g + at(eps, e_g)) * g
        return u, e_g, average(squared(u), e_x, at(rho, g))

    def apply(updates: Any, state: Any, *_: Any, **extra: Any) -> Any:
        found, e_g, e_x = update_leaves(rule, updates, (state.e_g, state.e_x))
        return found, ScaleByAdaDeltaState(e_g, e_x)

    return transformation("scale_by_adadelta", init, apply, kind=ScaleByAdaDeltaState)


def scale_by_rprop(
    learning_rate: Any, eta_minus: Any = 0.5, eta_plus: Any = 1.2, min_step_size: Any = 1e-6, max_step_size: Any = 50.0
) -> GradientTransformationExtraArgs:
    """Return the rule of Rprop: steps of each element's own length, by the signs of gradients alone.

    learning_rate: the first length. eta_minus, eta_plus: its factors where the sign turned, and where it stayed.
    min_step_size, max_step_size: its bounds. As in Optax, the update is the step of the call before, and the first one
    is zero. Riedmiller & Braun 1993.

    >>> tx = tracer.optim.scale_by_rprop(0.1)
    >>> tx.update(tnp.asarray([3.0, -4.0]), tx.init(tnp.zeros(2)))[1].prev_updates
    Array([ 0.1, -0.1], f64)
    """

    def init(params: Any) -> ScaleByRpropState:
        return ScaleByRpropState(
            init_leaves(lambda p: moment_like(p) + at(learning_rate, p), params), init_leaves(moment_like, params)
        )

    def rule(g: Any, step: Any, last: Any) -> Any:
        turn = g * last
        scaled = step * tnp.where(turn > 0, at(eta_plus, step), at(eta_minus, step))
        step = tnp.where(turn == 0, step, tnp.clip(scaled, at(min_step_size, step), at(max_step_size, step)))
        return tnp.where(turn < 0, 0.0, last), step, tnp.where(turn < 0, 0.0, step * tnp.sign(g))

    def apply(updates: Any, state: Any, *_: Any, **extra: Any) -> Any:
        found, steps, previous = update_leaves(rule, updates, (state.step_sizes, state.prev_updates))
        return found, ScaleByRpropState(steps, previous)

    return transformation("scale_by_rprop", init, apply, kind=ScaleByRpropState)
