"""Rules with two moments of the gradients: Adam and its kin, each one function of a leaf.

m averages gradients, v their squares, in float32 at least; 1 - b^count corrects both for starting at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracer import numpy as tnp
from tracer.optim.scalars import (
    Dtypes,
    Scalar,
    at,
    average,
    correction,
    count,
    increment,
    moment_like,
    power_of,
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


class ScaleByAdamState(NamedTuple):
    """State of `scale_by_adam`: the count, int32, and the averages of gradients and of their squares.

    >>> tracer.optim.scale_by_adam().init(tnp.zeros(1, "bfloat16"))
    ScaleByAdamState(count=Array(0, i32), mu=Array([0], bf16), nu=Array([0.], f32))
    """

    count: Any
    mu: Any
    nu: Any


class ScaleByBeliefState(NamedTuple):
    """State of `scale_by_belief`: the count and the averages of gradients and of their squared surprises.

    >>> tracer.optim.scale_by_belief().init(tnp.zeros(1)).count
    Array(0, i32)
    """

    count: Any
    mu: Any
    nu: Any


class ScaleByAmsgradState(NamedTuple):
    """State of `scale_by_amsgrad`: as of `scale_by_adam`, and the largest second moments so far.

    >>> tracer.optim.scale_by_amsgrad().init(tnp.zeros(1)).nu_max
    Array([0.], f64)
    """

    count: Any
    mu: Any
    nu: Any
    nu_max: Any


def moments(
    name: str, state: type[Any], b1: Any, b2: Any, rule: Callable[..., Any], *, mu_dtype: Any = None,
    extra: Callable[[Any, Dtypes], Any] | None = None, start: float = 0.0, ahead: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Make a transformation whose state has a count and two moments.

    rule: from a gradient, m, v and the corrections (c1, c2, c1 of the next count if `ahead`, and the results of
    `extra` for the count) to the update, m and v.
    """

    def init(params: Any) -> Any:
        first = init_leaves(lambda p: moment_like(p, mu_dtype) + start if start else moment_like(p, mu_dtype), params)
        return state(count=count(), mu=first, nu=init_leaves(lambda p: square_like(p, start), params))

    def scalars(state: Any, among: Dtypes) -> Any:
        number = increment(state.count)
        found = [number, correction(b1, number, among), correction(b2, number, among)]
        if ahead:
            found.append(correction(b1, increment(number), among))
        return [*found, *(() if extra is None else extra(number, among))]

    def apply(updates: Any, old: Any, params: Any, scalars: Any, **_: Any) -> Any:
        number, *corrections = scalars

        def of_leaf(g: Any, m: Any, v: Any) -> Any:
            return rule(wide(g), wide(m), v, *corrections)

        found, mu, nu = update_leaves(of_leaf, updates, (old.mu, old.nu))
        return found, state(count=number, mu=mu, nu=nu)

    return transformation(name, init, apply, scalars=scalars, kind=state)


def _mean(g: Any, m: Any, b1: Any, nesterov: bool, c1: Scalar, ahead: Scalar | None) -> Any:
    """Return m without its bias; with Nesterov's momentum, one step further."""
    if not nesterov:
        return m * c1.of(m)
    assert ahead is not None
    decay = at(b1, g)
    return decay * (m * ahead.of(m)) + (1 - decay) * (g * c1.of(g))


def scale_by_adam(
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, mu_dtype: Any = None, *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the rule of Adam: m / (√(v + eps_root) + eps), m and v corrected averages of gradients and their squares.

    b1, b2: decay of the averages. eps, eps_root: added to the root, and below it. mu_dtype: dtype of m. nesterov:
    whether m looks one step ahead. Kingma & Ba 2015, arXiv:1412.6980; Dozat 2016.

    >>> tx = tracer.optim.scale_by_adam()
    >>> tx.update(tnp.asarray([3.0, -4.0]), tx.init(tnp.zeros(2)))[0]
    Array([ 1., -1.], f64)
    """

    def rule(g: Any, m: Any, v: Any, c1: Scalar, c2: Scalar, ahead: Scalar | None = None) -> Any:
        m, v = average(g, m, at(b1, g)), average(squared(g), v, at(b2, g))
        mean = _mean(g, m, b1, nesterov, c1, ahead)
        return mean / (tnp.sqrt(v * c2.of(v) + at(eps_root, v)) + at(eps, v)), m, v

    return moments("scale_by_adam", ScaleByAdamState, b1, b2, rule, mu_dtype=mu_dtype, ahead=nesterov)


def scale_by_belief(
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-16, eps_root: Any = 1e-16, *, nesterov: bool = False
) -> GradientTransformationExtraArgs:
    """Return the rule of AdaBelief: Adam with v the average of (g - m)², how much a gradient surprises.

    b1, b2, eps, nesterov: as of `scale_by_adam`. eps_root: added to v at every step. Zhuang et al. 2020,
    arXiv:2010.07468.

    >>> tx = tracer.optim.scale_by_belief()
    >>> tx.update(tnp.asarray([3.0]), tx.init(tnp.zeros(1)))[0].round(4)
    Array([1.1111], f64)
    """

    def rule(g: Any, m: Any, v: Any, c1: Scalar, c2: Scalar, ahead: Scalar | None = None) -> Any:
        m = average(g, m, at(b1, g))
        v = average(squared(g - m), v, at(b2, g)) + at(eps_root, v)
        mean = _mean(g, m, b1, nesterov, c1, ahead)
        return mean / (tnp.sqrt(v * c2.of(v)) + at(eps, v)), m, v

    return moments("scale_by_belief", ScaleByBeliefState, b1, b2, rule, ahead=nesterov)


def scale_by_yogi(
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-3, eps_root: Any = 0.0, initial_accumulator_value: Any = 1e-6
) -> GradientTransformationExtraArgs:
    """Return the rule of Yogi: Adam with v moved towards g² by (1 - b2) g² in all cases.

    b1, b2, eps, eps_root: as of `scale_by_adam`. initial_accumulator_value: m and v at the start. Zaheer et al. 2018.

    >>> tx = tracer.optim.scale_by_yogi()
    >>> tx.update(tnp.asarray([3.0]), tx.init(tnp.zeros(1)))[0].round(4)
    Array([0.9996], f64)
    """

    def rule(g: Any, m: Any, v: Any, c1: Scalar, c2: Scalar) -> Any:
        m, square = average(g, m, at(b1, g)), squared(g)
        v = v - (1 - at(b2, v)) * tnp.sign(v - square) * square
        return m * c1.of(m) / (tnp.sqrt(v * c2.of(v) + at(eps_root, v)) + at(eps, v)), m, v

    return moments("scale_by_yogi", ScaleByAdamState, b1, b2, rule, start=initial_accumulator_value)


def scale_by_radam(
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, threshold: Any = 5.0, *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the rule of RAdam: Adam, rectified for the variance of 1/√v, and m alone while that is infinite.

    b1, b2, eps, eps_root, nesterov: as of `scale_by_adam`. threshold: the length of the average from which on it is
    used. Liu et al. 2020, arXiv:1908.03265.

    >>> tx = tracer.optim.scale_by_radam()
    >>> tx.update(tnp.asarray([3.0]), tx.init(tnp.zeros(1)))[0]
    Array([3.], f64)
    """
    longest = 2.0 / (1.0 - b2) - 1.0

    def extra(number: Any, among: Dtypes) -> Any:
        power = power_of(b2, number)
        length = longest - 2 * number.astype("float64") * power / (1 - power)
        enough = length >= threshold
        safe = tnp.where(enough, length, 5.0)
        of_longest = (longest - 4.0) * (longest - 2.0)
        factor = tnp.sqrt((safe - 4.0) * (safe - 2.0) * longest / (of_longest * safe))
        return enough, Scalar(factor, among)

    def rule(g: Any, m: Any, v: Any, c1: Scalar, c2: Scalar, *rest: Any) -> Any:
        *ahead, enough, factor = rest
        m, v = average(g, m, at(b1, g)), average(squared(g), v, at(b2, g))
        mean = _mean(g, m, b1, nesterov, c1, ahead[0] if ahead else None)
        scaled = factor.of(m) * mean / (tnp.sqrt(v * c2.of(v) + at(eps_root, v)) + at(eps, v))
        return tnp.where(enough, scaled, mean), m, v

    return moments("scale_by_radam", ScaleByAdamState, b1, b2, rule, ahead=nesterov, extra=extra)


def scale_by_adamax(b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> GradientTransformationExtraArgs:
    """Return the rule of Adamax: m over the largest |g| so far, which decays by b2.

    b1, b2: decay of m and of the maximum. eps: added to |g|. Kingma & Ba 2015, arXiv:1412.6980, section 7.1.

    >>> tx = tracer.optim.scale_by_adamax(eps=0.0)
    >>> tx.update(tnp.asarray([3.0, -4.0]), tx.init(tnp.zeros(2)))[0]
    Array([ 1., -1.], f64)
    """

    def rule(g: Any, m: Any, v: Any, c1: Scalar, c2: Scalar) -> Any:
        m = average(g, m, at(b1, g))
        v = tnp.maximum(abs(g) + at(eps, v), at(b2, v) * v)
        return m * c1.of(m) / v, m, v

    return moments("scale_by_adamax", ScaleByAdamState, b1, b2, rule)


def scale_by_amsgrad(
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, mu_dtype: Any = None,
    bias_correction_mu: bool = True, bias_correction_nu: bool = True,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the rule of AMSGrad: Adam with the largest v so far.

    b1, b2, eps, eps_root, mu_dtype: as of `scale_by_adam`. bias_correction_mu, bias_correction_nu: whether m and v are
    corrected, v before its maximum. Reddi, Kale & Kumar 2018, arXiv:1904.09237.

    >>> tx = tracer.optim.scale_by_amsgrad()
    >>> tx.update(tnp.asarray([3.0, -4.0]), tx.init(tnp.zeros(2)))[0]
    Array([ 1., -1.], f64)
    """

    def init(params: Any) -> ScaleByAmsgradState:
        first = init_leaves(lambda p: moment_like(p, mu_dtype), params)
        nu, most = init_leaves(square_like, params), init_leaves(square_like, params)
        return ScaleByAmsgradState(count(), first, nu, most)

    def scalars(state: Any, among: Dtypes) -> Any:
        number = increment(state.count)
        return number, correction(b1, number, among), correction(b2, number, among)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        number, c1, c2 = scalars

        def rule(g: Any, m: Any, v: Any, most: Any) -> Any:
            g = wide(g)
            mean, v = average(g, wide(m), at(b1, g)), average(squared(g), v, at(b2, g))
            most = tnp.maximum(most, v * c2.of(v) if bias_correction_nu else v)
            u = (mean * c1.of(mean) if bias_correction_mu else mean) / (tnp.sqrt(most + at(eps_root, v)) + at(eps, v))
            return u, mean, v, most

        found, mu, nu, nu_max = update_leaves(rule, updates, (state.mu, state.nu, state.nu_max))
        return found, ScaleByAmsgradState(number, mu, nu, nu_max)

    return transformation("scale_by_amsgrad", init, apply, scalars=scalars, kind=ScaleByAmsgradState)
