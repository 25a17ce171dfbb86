"""Rules that average gradients: momentum, exponential averages, Lion, Adan, NovoGrad, optimistic gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
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
from tracer.trace.source import here


class TraceState(NamedTuple):
    """State of `trace`: the decaying sum of updates.

    >>> tracer.optim.trace(0.9).init({"w": tnp.zeros(1)})
    TraceState(trace={'w': Array([0.], f64)})
    """

    trace: Any


class EmaState(NamedTuple):
    """State of `ema`: the count, int32, and the average of updates.

    >>> tracer.optim.ema(0.9).init(tnp.zeros(1))
    EmaState(count=Array(0, i32), ema=Array([0.], f64))
    """

    count: Any
    ema: Any


class ScaleByLionState(NamedTuple):
    """State of `scale_by_lion`: the count, int32, and the average of gradients.

    >>> tracer.optim.scale_by_lion().init(tnp.zeros(1))
    ScaleByLionState(count=Array(0, i32), mu=Array([0.], f64))
    """

    count: Any
    mu: Any


class ScaleByAdanState(NamedTuple):
    """State of `scale_by_adan`: averages of gradients, differences and squares, the last gradient, the count.

    >>> tracer.optim.scale_by_adan().init(tnp.zeros(1)).t
    Array(0, i32)
    """

    m: Any
    v: Any
    n: Any
    g: Any
    t: Any


class ScaleByNovogradState(NamedTuple):
    """State of `scale_by_novograd`: the count, the sums of normalised gradients, an average square per array.

    >>> tracer.optim.scale_by_novograd().init(tnp.zeros(2)).nu
    Array(0., f64)
    """

    count: Any
    mu: Any
    nu: Any


class ScaleByOptimisticGradientState(NamedTuple):
    """State of `scale_by_optimistic_gradient`: whether no gradient came yet, and the last one.

    >>> tracer.optim.scale_by_optimistic_gradient().init(tnp.zeros(1)).is_initial_step
    Array(True, bool)
    """

    is_initial_step: Any
    previous_gradient: Any


def trace(decay: Any, nesterov: bool = False, accumulator_dtype: Any = None) -> GradientTransformationExtraArgs:
    """Return the decaying sum of updates: t = g + decay t, momentum as PyTorch has it.

    decay: of the sum. nesterov: whether the update is g + decay t instead of t. accumulator_dtype: dtype of the sum; by
    default the parameters'. Sutskever et al. 2013.

    >>> tx = tracer.optim.trace(0.5)
    >>> _, state = tx.update(tnp.asarray([1.0]), tx.init(tnp.zeros(1)))
    >>> tx.update(tnp.asarray([1.0]), state)[0]
    Array([1.5], f64)
    """

    def init(params: Any) -> TraceState:
        return TraceState(init_leaves(lambda p: moment_like(p, accumulator_dtype), params))

    def rule(g: Any, t: Any) -> Any:
        new = g + at(decay, g) * t
        return g + at(decay, g) * new if nesterov else new, new

    def apply(updates: Any, state: Any, *_: Any, **extra: Any) -> Any:
        found, sums = update_leaves(rule, updates, (state.trace,))
        return found, TraceState(sums)

    return transformation("trace", init, apply, kind=TraceState)


def ema(decay: Any, debias: bool = True, accumulator_dtype: Any = None) -> GradientTransformationExtraArgs:
    """Return the exponential average of updates.

    decay: of the average. debias: whether it is corrected for its start at zero, by 1 - decay^count.
    accumulator_dtype: dtype of the average; by default the parameters'. `ema_params` averages parameters.

    >>> tx = tracer.optim.ema(0.5)
    >>> _, state = tx.update(tnp.asarray([1.0]), tx.init(tnp.zeros(1)))
    >>> tx.update(tnp.asarray([4.0]), state)[0]
    Array([3.], f64)
    """

    def init(params: Any) -> EmaState:
        return EmaState(count(), init_leaves(lambda p: moment_like(p, accumulator_dtype), params))

    def scalars(state: Any, among: Dtypes) -> Any:
        number = increment(state.count)
        return number, correction(decay, number, among)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        number, unbiased = scalars

        def rule(g: Any, m: Any) -> Any:
            new = average(wide(g), wide(m), at(decay, g))
            return new * unbiased.of(new) if debias else new, new

        found, averages = update_leaves(rule, updates, (state.ema,))
        return found, EmaState(number, averages)

    return transformation("ema", init, apply, scalars=scalars, kind=EmaState)


def scale_by_lion(
    b1: Any = 0.9, b2: Any = 0.99, mu_dtype: Any = None, *, mode: str = "hard", smooth_beta: float = 1.0
) -> GradientTransformationExtraArgs:
    """Return the rule of Lion: the sign of b1 m + (1 - b1) g, m the average of gradients with decay b2.

    b1, b2: decays. mu_dtype: dtype of m. mode: "hard" for the sign, "smooth" for tanh of smooth_beta times the value,
    "refined" for the value where it is below 1. Chen et al. 2023, arXiv:2302.06675.

    >>> tx = tracer.optim.scale_by_lion()
    >>> tx.update(tnp.asarray([3.0, -4.0]), tx.init(tnp.zeros(2)))[0]
    Array([ 1., -1.], f64)
    """
    shapes: dict[str, Callable[[Any], Any]] = {
        "hard": tnp.sign,
        "smooth": lambda x: tnp.tanh(smooth_beta * x),
        "refined": lambda x: tnp.where(abs(x) < 1.0, x, tnp.sign(x)),
    }
    if mode not in shapes:
        expected = "'hard', 'smooth' or 'refined'"
        raise ArgumentError(message(f"scale_by_lion{here()}: no such mode", f"expected {expected}, got {mode!r}"))

    def init(params: Any) -> ScaleByLionState:
        return ScaleByLionState(count(), init_leaves(lambda p: moment_like(p, mu_dtype), params))

    def rule(g: Any, m: Any) -> Any:
        g, old = wide(g), wide(m)
        return shapes[mode](average(g, old, at(b1, g))), average(g, old, at(b2, g))

    def apply(updates: Any, state: Any, *_: Any, **extra: Any) -> Any:
        found, mu = update_leaves(rule, updates, (state.mu,))
        return found, ScaleByLionState(increment(state.count), mu)

    return transformation("scale_by_lion", init, apply, kind=ScaleByLionState)


def scale_by_adan(
    b1: Any = 0.98, b2: Any = 0.92, b3: Any = 0.99, eps: Any = 1e-8, eps_root: Any = 0.0
) -> GradientTransformationExtraArgs:
    """Return the rule of Adan: (m + (1 - b2) v) / (√n + eps), with v the average of differences of gradients.

    b1, b2, b3: decays of m, the average of gradients, of v, and of n, the average of (g + (1 - b2) difference)².
    eps, eps_root: added to the root, and below it. Xie et al. 2022, arXiv:2208.06677.

    >>> tx = tracer.optim.scale_by_adan()
    >>> tx.update(tnp.asarray([3.0, -4.0]), tx.init(tnp.zeros(2)))[0]
    Array([ 1., -1.], f64)
    """

    def init(params: Any) -> ScaleByAdanState:
        first, slope = init_leaves(moment_like, params), init_leaves(moment_like, params)
        squares, last = init_leaves(square_like, params), init_leaves(moment_like, params)
        return ScaleByAdanState(first, slope, squares, last, count())

    def scalars(state: Any, among: Dtypes) -> Any:
        number = increment(state.t)
        return state.t == 0, number, *(correction(b, number, among) for b in (b1, b2, b3))

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        first, number, c1, c2, c3 = scalars

        def rule(g: Any, m: Any, v: Any, n: Any, last: Any) -> Any:
            given, g = g, wide(g)
            difference = tnp.where(first, tnp.zeros_like(g), g - wide(last))
            mean, slope = average(g, wide(m), at(b1, g)), average(difference, wide(v), at(b2, g))
            n = average(squared(g + (1 - at(b2, g)) * difference), n, at(b3, g))
            u = mean * c1.of(g) + (1 - at(b2, g)) * (slope * c2.of(g))
            u = u / (tnp.sqrt(n * c3.of(n) + at(eps_root, n)) + at(eps, n))
            return u, mean, slope, n, given

        found, m, v, n, last = update_leaves(rule, updates, (state.m, state.v, state.n, state.g))
        return found, ScaleByAdanState(m, v, n, last, number)

    return transformation("scale_by_adan", init, apply, scalars=scalars, kind=ScaleByAdanState)


def scale_by_novograd(
    b1: Any = 0.9, b2: Any = 0.25, eps: Any = 1e-8, eps_root: Any = 0.0, weight_decay: Any = 0.0, mu_dtype: Any = None
) -> GradientTransformationExtraArgs:
    """Return the rule of NovoGrad: momentum of gradients divided by the average norm of their whole array.

    b1: of the momentum. b2: decay of the average of |g|². eps, eps_root: added to its root, and below it.
    weight_decay: of the parameters, before the momentum. mu_dtype: dtype of the momentum. Ginsburg et al. 2019,
    arXiv:1905.11286.

    >>> tx = tracer.optim.scale_by_novograd()
    >>> tx.update(tnp.asarray([3.0, -4.0]), tx.init(tnp.zeros(2)), tnp.zeros(2))[0]
    Array([ 0.6, -0.8], f64)
    """

    def init(params: Any) -> ScaleByNovogradState:
        nu = init_leaves(lambda p: square_like(tnp.zeros((), p.dtype)), params)
        return ScaleByNovogradState(count(), init_leaves(lambda p: moment_like(p, mu_dtype), params), nu)

    def scalars(state: Any, among: Dtypes) -> Any:
        del among
        return state.count == 0, increment(state.count)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        first, number = scalars

        def rule(g: Any, m: Any, v: Any, p: Any) -> Any:
            g = wide(g)
            size = tnp.sum(squared(g))
            v = tnp.where(first, size, average(size, v, at(b2, v)))
            u = g / (tnp.sqrt(v + at(eps_root, v)) + at(eps, v)) + at(weight_decay, g) * p
            u = tnp.where(first, u, at(b1, g) * wide(m) + u)
            return u, u, v

        found, mu, nu = update_leaves(rule, updates, (state.mu, state.nu), params, loose=True)
        return found, ScaleByNovogradState(number, mu, nu)

    return transformation(
        "scale_by_novograd", init, apply, scalars=scalars, need="decays weights", kind=ScaleByNovogradState
    )


def scale_by_optimistic_gradient(alpha: Any = 1.0, beta: Any = 1.0) -> GradientTransformationExtraArgs:
    """Return the extrapolation of gradients: (alpha + beta) g - beta times the last g.

    alpha: factor of the gradient. beta: factor of its change. Mokhtari, Ozdaglar & Pattathil 2019, arXiv:1901.08511.

    >>> tx = tracer.optim.scale_by_optimistic_gradient()
    >>> _, state = tx.update(tnp.asarray([1.0]), tx.init(tnp.zeros(1)))
    >>> tx.update(tnp.asarray([3.0]), state)[0]
    Array([5.], f64)
    """

    def init(params: Any) -> ScaleByOptimisticGradientState:
        return ScaleByOptimisticGradientState(tnp.asarray(True), init_leaves(moment_like, params))

    def apply(updates: Any, state: Any, *_: Any, **extra: Any) -> Any:
        def rule(g: Any, last: Any) -> Any:
            last = tnp.where(state.is_initial_step, g, last)
            return (at(alpha, g) + at(beta, g)) * g - at(beta, g) * last, g

        found, previous = update_leaves(rule, updates, (state.previous_gradient,))
        return found, ScaleByOptimisticGradientState(tnp.zeros_like(state.is_initial_step), previous)

    return transformation("scale_by_optimistic_gradient", init, apply, kind=ScaleByOptimisticGradientState)
