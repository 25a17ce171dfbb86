"""Optimizers without Adam's averages: gradient descent, RMSprop, Adagrad, Adafactor, LARS and more."""

from __future__ import annotations

from typing import Any

from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.optim.adding import add_decayed_weights, add_noise
from tracer.optim.clipping import clip_by_block_rms
from tracer.optim.combining import chained
from tracer.optim.factored_rules import scale_by_factored_rms, scale_by_sm3
from tracer.optim.masks import masked
from tracer.optim.momentum_rules import ema, scale_by_optimistic_gradient, trace
from tracer.optim.scalars import at, checked_rate, sum_squares
from tracer.optim.scaling import (
    descent,
    scale,
    scale_by_param_block_rms,
    scale_by_sign,
    scale_by_trust_ratio,
)
from tracer.optim.square_rules import (
    scale_by_adadelta,
    scale_by_rms,
    scale_by_rprop,
    scale_by_rss,
    scale_by_stddev,
)
from tracer.optim.transformation import (
    GradientTransformationExtraArgs,
    identity,
    map_leaves,
    no_state,
    transformation,
)
from tracer.trace.source import here


def sgd(
    learning_rate: Any, momentum: Any = None, nesterov: bool = False, accumulator_dtype: Any = None
) -> GradientTransformationExtraArgs:
    """Return gradient descent, with momentum if it is given.

    learning_rate: a number, a scalar array or a schedule. momentum, nesterov, accumulator_dtype: decay and the other
    arguments of `trace`. Sutskever et al. 2013.

    >>> tx = tracer.optim.sgd(0.1, momentum=0.5)
    >>> _, state = tx.update(tnp.asarray([1.0]), tx.init(tnp.zeros(1)))
    >>> tx.update(tnp.asarray([1.0]), state)[0].round(6)
    Array([-0.15], f64)
    """
    rule = identity() if momentum is None else trace(momentum, nesterov, accumulator_dtype)
    return chained("sgd", rule, descent("sgd", learning_rate))


def noisy_sgd(
    learning_rate: Any, eta: Any = 0.01, gamma: Any = 0.55, key: Any = None, *, seed: Any = None
) -> GradientTransformationExtraArgs:
    """Return gradient descent with noise of variance eta / count^gamma.

    learning_rate: a number, a scalar array or a schedule. eta, gamma, key, seed: as of `add_noise`; the default key
    is 0. Neelakantan et al. 2015, arXiv:1511.06807.

    >>> tx = tracer.optim.noisy_sgd(0.1, eta=0.0, key=tracer.random.key(1))
    >>> tx.update(tnp.asarray([1.0]), tx.init(tnp.zeros(1)))[0]
    Array([-0.1], f64)
    """
    noise = add_noise(eta, gamma, 0 if key is None else key, seed=seed)
    return chained("noisy_sgd", noise, descent("noisy_sgd", learning_rate))


def sign_sgd(learning_rate: Any) -> GradientTransformationExtraArgs:
    """Return descent by the signs of gradients.

    learning_rate: a number, a scalar array or a schedule. Bernstein et al. 2018, arXiv:1802.04434.

    >>> tx = tracer.optim.sign_sgd(0.1)
    >>> tx.update(tnp.asarray([5.0, -2.0]), tx.init(tnp.zeros(2)))[0]
    Array([-0.1,  0.1], f64)
    """
    return chained("sign_sgd", scale_by_sign(), descent("sign_sgd", learning_rate))


def signum(learning_rate: Any, beta: Any = 0.9, accumulator_dtype: Any = None) -> GradientTransformationExtraArgs:
    """Return descent by the signs of averages of gradients.

    learning_rate: a number, a scalar array or a schedule. beta: decay of the average; accumulator_dtype: its dtype.
    Bernstein et al. 2018, arXiv:1802.04434.

    >>> tx = tracer.optim.signum(0.1)
    >>> tx.update(tnp.asarray([5.0, -2.0]), tx.init(tnp.zeros(2)))[0]
    Array([-0.1,  0.1], f64)
    """
    average = ema(beta, debias=False, accumulator_dtype=accumulator_dtype)
    return chained("signum", average, scale_by_sign(), descent("signum", learning_rate))


def optimistic_gradient_descent(
    learning_rate: Any, alpha: Any = 1.0, beta: Any = 1.0
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return descent by extrapolated gradients, for games.

    learning_rate: a number, a scalar array or a schedule. alpha, beta: as of `scale_by_optimistic_gradient`. Mokhtari,
    Ozdaglar & Pattathil 2019, arXiv:1901.08511.

    >>> tx = tracer.optim.optimistic_gradient_descent(0.1)
    >>> tx.update(tnp.asarray([1.0]), tx.init(tnp.zeros(1)))[0]
    Array([-0.1], f64)
    """
    last = descent("optimistic_gradient_descent", learning_rate)
    return chained("optimistic_gradient_descent", scale_by_optimistic_gradient(alpha, beta), last)


def rmsprop(
    learning_rate: Any, decay: Any = 0.9, eps: Any = 1e-8, initial_scale: Any = 0.0, eps_in_sqrt: bool = True,
    centered: bool = False, momentum: Any = None, nesterov: bool = False, bias_correction: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return RMSprop. PyTorch has decay 0.99 (its alpha), and adds eps to the root: eps_in_sqrt=False.

    learning_rate: a number, a scalar array or a schedule. centered: whether `scale_by_stddev` is the rule, else
    `scale_by_rms`, which has the other arguments. momentum, nesterov: as of `trace`, after the learning rate. Hinton
    2012.

    >>> tx = tracer.optim.rmsprop(0.1, bias_correction=True)
    >>> tx.update(tnp.asarray([5.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.1], f64)
    """
    rule = scale_by_stddev if centered else scale_by_rms
    return chained(
        "rmsprop",
        rule(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        descent("rmsprop", learning_rate),
        identity() if momentum is None else trace(momentum, nesterov),
    )


def adagrad(
    learning_rate: Any, initial_accumulator_value: Any = 0.1, eps: Any = 1e-7
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return Adagrad. PyTorch begins the sum at 0, and adds eps to its root.

    learning_rate: a number, a scalar array or a schedule. The other arguments are as in `scale_by_rss`. Duchi, Hazan
    & Singer 2011, JMLR 12.

    >>> tx = tracer.optim.adagrad(0.1, initial_accumulator_value=0.0)
    >>> tx.update(tnp.asarray([5.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.1], f64)
    """
    return chained("adagrad", scale_by_rss(initial_accumulator_value, eps), descent("adagrad", learning_rate))


def adadelta(
    learning_rate: Any = None, rho: Any = 0.9, eps: Any = 1e-6, weight_decay: Any = 0.0,
    weight_decay_mask: Any = None, *, mask: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return Adadelta, with weight decay before it.

    learning_rate: a number, a scalar array, a schedule, or None for no change, not even of the sign. rho, eps: as of
    `scale_by_adadelta`. weight_decay, weight_decay_mask, mask: as of `adamw`. Zeiler 2012, arXiv:1212.5701.

    >>> tx = tracer.optim.adadelta(1.0)
    >>> tx.update(tnp.asarray([5.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.003162], f64)
    """
    return chained(
        "adadelta",
        add_decayed_weights(weight_decay, weight_decay_mask, weight_decay_mask=mask),
        scale_by_adadelta(rho, eps),
        identity() if learning_rate is None else descent("adadelta", learning_rate),
    )


def adafactor(
    learning_rate: Any = None, min_dim_size_to_factor: int = 128, decay_rate: Any = 0.8, decay_offset: Any = 0,
    multiply_by_parameter_scale: bool = True, clipping_threshold: Any = 1.0, momentum: Any = None,
    dtype_momentum: Any = "float32", weight_decay_rate: Any = None, eps: Any = 1e-30, factored: bool = True,
    weight_decay_mask: Any = None, *, mask: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return Adafactor: mean squares by rows and columns, clipped updates as large as the parameters.

    learning_rate: a number, a scalar array, a schedule, or None for 1. min_dim_size_to_factor, decay_rate,
    decay_offset, eps, factored: as of `scale_by_factored_rms`. multiply_by_parameter_scale: whether updates are times
    the root mean square of parameters. clipping_threshold: of `clip_by_block_rms`, or None. momentum, dtype_momentum:
    of an average of updates, if given. weight_decay_rate, weight_decay_mask, mask: of weights, after the learning rate.
    Shazeer & Stern 2018, arXiv:1804.04235.

    >>> tx = tracer.optim.adafactor(0.1)
    >>> params = tnp.asarray([2.0])
    >>> tx.update(tnp.asarray([5.0]), tx.init(params), params)[0].round(6)
    Array([-0.2], f64)
    """
    parts = [scale_by_factored_rms(factored, decay_rate, decay_offset, min_dim_size_to_factor, eps)]
    if clipping_threshold is not None:
        parts.append(clip_by_block_rms(clipping_threshold))
    if learning_rate is not None:
        parts.append(descent("adafactor", learning_rate, flip_sign=False))
    if multiply_by_parameter_scale:
        parts.append(scale_by_param_block_rms())
    if momentum is not None:
        parts.append(ema(momentum, debias=False, accumulator_dtype=dtype_momentum))
    if weight_decay_rate is not None:
        parts.append(add_decayed_weights(weight_decay_rate, weight_decay_mask, weight_decay_mask=mask))
    return chained("adafactor", *parts, scale(-1))


def rprop(
    learning_rate: Any, eta_minus: Any = 0.5, eta_plus: Any = 1.2, min_step_size: Any = 1e-6, max_step_size: Any = 50.0
) -> GradientTransformationExtraArgs:
    """Return Rprop: steps of each element's own length, for gradients without noise.

    learning_rate: the first length. The other arguments are as in `scale_by_rprop`; as in Optax the first update is
    zero. Riedmiller & Braun 1993.

    >>> tx = tracer.optim.rprop(0.1)
    >>> _, state = tx.update(tnp.asarray([5.0]), tx.init(tnp.zeros(1)))
    >>> tx.update(tnp.asarray([4.0]), state)[0]
    Array([-0.1], f64)
    """
    rule = scale_by_rprop(learning_rate, eta_minus, eta_plus, min_step_size, max_step_size)
    return chained("rprop", rule, scale(-1.0))


def sm3(learning_rate: Any, momentum: Any = 0.9) -> GradientTransformationExtraArgs:
    """Return SM3: Adagrad with the memory of a row and a column.

    learning_rate: a number or scalar array. momentum: decay of the average of updates. Anil et al. 2019,
    arXiv:1901.11150.

    >>> tx = tracer.optim.sm3(0.1, momentum=0.0)
    >>> tx.update(tnp.asarray([5.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.1], f64)
    """
    return chained("sm3", scale_by_sm3(momentum), descent("sm3", learning_rate))


def lars(
    learning_rate: Any, weight_decay: Any = 0.0, weight_decay_mask: Any = True, trust_coefficient: Any = 0.001,
    eps: Any = 0.0, trust_ratio_mask: Any = True, momentum: Any = 0.9, nesterov: bool = False, *, mask: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return LARS: momentum, with each array's update as long as a part of the array, for large batches.

    learning_rate, weight_decay, weight_decay_mask, mask: as of `adamw`. trust_coefficient, eps: as of
    `scale_by_trust_ratio`; trust_ratio_mask: the parameters that it treats. momentum, nesterov: as of `trace`. You,
    Gitman & Ginsburg 2017, arXiv:1708.03888.

    >>> tx = tracer.optim.lars(1.0)
    >>> params = tnp.asarray([3.0])
    >>> tx.update(tnp.asarray([5.0]), tx.init(params), params)[0].round(6)
    Array([-0.003], f64)
    """
    return chained(
        "lars",
        add_decayed_weights(weight_decay, weight_decay_mask if mask is None else mask),
        masked(scale_by_trust_ratio(trust_coefficient=trust_coefficient, eps=eps), trust_ratio_mask),
        descent("lars", learning_rate),
        trace(momentum, nesterov),
    )


def fromage(learning_rate: Any, min_norm: Any = 1e-6) -> GradientTransformationExtraArgs:
    """Return Fromage: updates as long as their arrays, and arrays shrunk by as much.

    learning_rate: a number, a scalar array or a schedule. min_norm: of `scale_by_trust_ratio`. Bernstein et al. 2020,
    arXiv:2002.03432.

    >>> tx = tracer.optim.fromage(0.1)
    >>> params = tnp.asarray([3.0])
    >>> tx.update(tnp.asarray([5.0]), tx.init(params), params)[0].round(6)
    Array([-0.3134], f64)
    """
    rate = checked_rate("fromage", learning_rate)
    if callable(rate):
        shrunk: Any = lambda count: 1 / (1 + rate(count) ** 2) ** 0.5  # noqa: E731
        step: Any = lambda count: shrunk(count) * rate(count)  # noqa: E731
        decay: Any = lambda count: shrunk(count) - 1  # noqa: E731
    else:
        shrunk = 1 / (1 + rate**2) ** 0.5
        step, decay = rate * shrunk, shrunk - 1
    return chained("fromage", scale_by_trust_ratio(min_norm), descent("fromage", step), add_decayed_weights(decay))


def scale_by_polyak(
    f_min: Any = 0.0, max_learning_rate: Any = 1.0, eps: Any = 0.0, variant: str = "sps"
) -> GradientTransformationExtraArgs:
    """Return the scaling of updates by Polyak's step: (value - f_min) / (|gradient|² + eps).

    f_min: the least loss, or a bound of it. max_learning_rate: bound of the step. variant: "sps", or "sps+" for a step
    of at least 0. Give update the keyword value. Loizou et al. 2021, arXiv:2002.10542.

    >>> tx = tracer.optim.scale_by_polyak()
    >>> tx.update(tnp.asarray([2.0]), tx.init(None), value=1.0)[0]
    Array([0.5], f64)
    """
    if variant not in ("sps", "sps+"):
        raise ArgumentError(message(f"polyak_sgd{here()}: variant is 'sps' or 'sps+'", f"got {variant!r}"))

    def apply(updates: Any, state: Any, params: Any, scalars: Any, *, value: Any = None, **extra: Any) -> Any:
        del params, scalars, extra
        if value is None:
            raise ArgumentError(
                message(
                    f"update{here()}: Polyak's step needs the loss",
                    help="updates, state = tx.update(grads, state, params, value=loss)",
                )
            )
        square = sum_squares(updates)
        gap = tnp.asarray(value - f_min).astype(square.dtype)
        gap = tnp.maximum(gap, 0) if variant == "sps+" else gap
        flat = square + eps <= tnp.finfo("float32" if square.dtype.itemsize == 4 else "float64").eps
        step = tnp.where(flat, 0.0, tnp.minimum(gap / tnp.where(flat, 1.0, square + eps), max_learning_rate))
        return map_leaves(lambda g: at(step, g) * g, updates), state

    return transformation("scale_by_polyak", no_state, apply)


def polyak_sgd(
    max_learning_rate: Any = 1.0, scaling: Any = 1.0, f_min: Any = 0.0, eps: Any = 0.0, variant: str = "sps"
) -> GradientTransformationExtraArgs:
    """Return gradient descent by Polyak's step; give update the keyword value, the loss.

    scaling: a factor of the step, a number or schedule. The other arguments are as in `scale_by_polyak`. Loizou et
    al. 2021, arXiv:2002.10542.

    >>> tx = tracer.optim.polyak_sgd()
    >>> tx.update(tnp.asarray([2.0]), tx.init(tnp.zeros(1)), value=1.0)[0]
    Array([-0.5], f64)
    """
    return chained("polyak_sgd", sgd(scaling), scale_by_polyak(f_min, max_learning_rate, eps, variant))
