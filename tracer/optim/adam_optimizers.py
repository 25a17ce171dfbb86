"""Optimizers with averages of gradients and of their squares: chains of a rule, weight decay and a learning rate.

`mask` and `weight_decay_mask` are two names of one argument: the parameters that decay, see `masked`.
"""

from __future__ import annotations

from typing import Any

from tracer.optim.adam_rules import (
    scale_by_adam,
    scale_by_adamax,
    scale_by_amsgrad,
    scale_by_belief,
    scale_by_radam,
    scale_by_yogi,
)
from tracer.optim.adding import add_decayed_weights
from tracer.optim.combining import chained
from tracer.optim.momentum_rules import (
    scale_by_adan,
    scale_by_lion,
    scale_by_novograd,
    scale_by_optimistic_gradient,
)
from tracer.optim.scaling import descent, scale_by_trust_ratio
from tracer.optim.sharpness import scale_by_sophia
from tracer.optim.transformation import GradientTransformation, GradientTransformationExtraArgs


def adam(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, mu_dtype: Any = None, *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return Adam.

    learning_rate: a number, a scalar array or a schedule. The other arguments are as in `scale_by_adam`. Kingma & Ba
    2015, arXiv:1412.6980.

    >>> tx = tracer.optim.adam(0.1)
    >>> tx.update(tnp.asarray([2.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.1], f64)
    """
    rule = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)
    return chained("adam", rule, descent("adam", learning_rate))


def nadam(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, mu_dtype: Any = None, *,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return Adam with Nesterov's momentum.

    learning_rate: a number, a scalar array or a schedule. The other arguments are as in `scale_by_adam`. Dozat 2016.

    >>> tx = tracer.optim.nadam(0.1)
    >>> tx.update(tnp.asarray([2.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.147368], f64)
    """
    rule = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)
    return chained("nadam", rule, descent("nadam", learning_rate))


def adamw(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, mu_dtype: Any = None,
    weight_decay: Any = 1e-4, mask: Any = None, *, nesterov: bool = False, weight_decay_mask: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return Adam with decoupled weight decay, which is multiplied by the learning rate. PyTorch's default is 0.01.

    learning_rate, weight_decay: a number, a scalar array or a schedule. mask, weight_decay_mask: the parameters that
    decay, by either name; "matrices" spares biases and norms. The other arguments are as in `scale_by_adam`.
    Loshchilov & Hutter 2019, arXiv:1711.05101.

    >>> tx = tracer.optim.adamw(0.1, weight_decay=0.5)
    >>> params = tnp.asarray([2.0])
    >>> tx.update(tnp.asarray([2.0]), tx.init(params), params)[0].round(6)
    Array([-0.2], f64)
    """
    rule = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)
    decay = add_decayed_weights(weight_decay, mask, weight_decay_mask=weight_decay_mask)
    return chained("adamw", rule, decay, descent("adamw", learning_rate))


def nadamw(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, mu_dtype: Any = None,
    weight_decay: Any = 1e-4, mask: Any = None, *, nesterov: bool = True, weight_decay_mask: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return AdamW with Nesterov's momentum.

    The arguments are as in `adamw`. Dozat 2016; Loshchilov & Hutter 2019, arXiv:1711.05101.

    >>> tx = tracer.optim.nadamw(0.1, weight_decay=0.0)
    >>> tx.update(tnp.asarray([2.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.147368], f64)
    """
    rule = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)
    decay = add_decayed_weights(weight_decay, mask, weight_decay_mask=weight_decay_mask)
    return chained("nadamw", rule, decay, descent("nadamw", learning_rate))


def adamax(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> GradientTransformationExtraArgs:
    """Return Adamax: Adam with the largest gradient in place of the mean square.

    learning_rate: a number, a scalar array or a schedule. The other arguments are as in `scale_by_adamax`. Kingma &
    Ba 2015, arXiv:1412.6980.

    >>> tx = tracer.optim.adamax(0.1)
    >>> tx.update(tnp.asarray([2.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.1], f64)
    """
    return chained("adamax", scale_by_adamax(b1, b2, eps), descent("adamax", learning_rate))


def adamaxw(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, weight_decay: Any = 1e-4, mask: Any = None, *,
    weight_decay_mask: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return Adamax with decoupled weight decay.

    learning_rate, weight_decay, mask, weight_decay_mask: as of `adamw`. b1, b2, eps: as of `scale_by_adamax`.

    >>> tx = tracer.optim.adamaxw(0.1, weight_decay=0.5)
    >>> params = tnp.asarray([2.0])
    >>> tx.update(tnp.asarray([2.0]), tx.init(params), params)[0].round(6)
    Array([-0.2], f64)
    """
    decay = add_decayed_weights(weight_decay, mask, weight_decay_mask=weight_decay_mask)
    return chained("adamaxw", scale_by_adamax(b1, b2, eps), decay, descent("adamaxw", learning_rate))


def amsgrad(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, mu_dtype: Any = None,
    bias_correction_mu: bool = True, bias_correction_nu: bool = True,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return AMSGrad: Adam with the largest mean square so far.

    learning_rate: a number, a scalar array or a schedule. The other arguments are as in `scale_by_amsgrad`. Reddi,
    Kale & Kumar 2018, arXiv:1904.09237.

    >>> tx = tracer.optim.amsgrad(0.1)
    >>> tx.update(tnp.asarray([2.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.1], f64)
    """
    rule = scale_by_amsgrad(b1, b2, eps, eps_root, mu_dtype, bias_correction_mu, bias_correction_nu)
    return chained("amsgrad", rule, descent("amsgrad", learning_rate))


def radam(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, threshold: Any = 5.0, *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return RAdam: Adam that begins as momentum, until mean squares can be trusted.

    learning_rate: a number, a scalar array or a schedule. The other arguments are as in `scale_by_radam`. Liu et al.
    2020, arXiv:1908.03265.

    >>> tx = tracer.optim.radam(0.1)
    >>> tx.update(tnp.asarray([2.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.2], f64)
    """
    rule = scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov)
    return chained("radam", rule, descent("radam", learning_rate))


def adabelief(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-16, eps_root: Any = 1e-16, *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return AdaBelief: Adam with the mean square of the gradient's deviation from momentum.

    learning_rate: a number, a scalar array or a schedule. The other arguments are as in `scale_by_belief`. Zhuang et
    al. 2020, arXiv:2010.07468.

    >>> tx = tracer.optim.adabelief(0.1)
    >>> tx.update(tnp.asarray([2.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.111111], f64)
    """
    rule = scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov)
    return chained("adabelief", rule, descent("adabelief", learning_rate))


def yogi(learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-3) -> GradientTransformationExtraArgs:
    """Return Yogi: Adam whose mean squares shrink slowly.

    learning_rate: a number, a scalar array or a schedule. The other arguments are as in `scale_by_yogi`. Zaheer et
    al. 2018.

    >>> tx = tracer.optim.yogi(0.1)
    >>> tx.update(tnp.asarray([2.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.099938], f64)
    """
    return chained("yogi", scale_by_yogi(b1, b2, eps), descent("yogi", learning_rate))


def lamb(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-6, eps_root: Any = 0.0, weight_decay: Any = 0.0,
    mask: Any = None, *, weight_decay_mask: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return LAMB: AdamW with each array's update as long as the array, for large batches.

    learning_rate, weight_decay, mask, weight_decay_mask: as of `adamw`. b1, b2, eps, eps_root: as of `scale_by_adam`.
    You et al. 2020, arXiv:1904.00962.

    >>> tx = tracer.optim.lamb(0.1)
    >>> params = tnp.asarray([3.0])
    >>> tx.update(tnp.asarray([2.0]), tx.init(params), params)[0].round(6)
    Array([-0.3], f64)
    """
    return chained(
        "lamb",
        scale_by_adam(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask, weight_decay_mask=weight_decay_mask),
        scale_by_trust_ratio(),
        descent("lamb", learning_rate),
    )


def lion(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.99, mu_dtype: Any = None, weight_decay: Any = 1e-3,
    mask: Any = None, *, weight_decay_mask: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return Lion: signs of momentum, with decoupled weight decay.

    learning_rate, weight_decay, mask, weight_decay_mask: as of `adamw`; rates are three to ten times lower. b1, b2,
    mu_dtype: as of `scale_by_lion`. Chen et al. 2023, arXiv:2302.06675.

    >>> tx = tracer.optim.lion(0.1, weight_decay=0.0)
    >>> tx.update(tnp.asarray([2.0, -3.0]), tx.init(tnp.zeros(2)))[0]
    Array([-0.1,  0.1], f64)
    """
    decay = add_decayed_weights(weight_decay, mask, weight_decay_mask=weight_decay_mask)
    return chained("lion", scale_by_lion(b1, b2, mu_dtype), decay, descent("lion", learning_rate))


def adan(
    learning_rate: Any, b1: Any = 0.98, b2: Any = 0.92, b3: Any = 0.99, eps: Any = 1e-8, eps_root: Any = 1e-8,
    weight_decay: Any = 0.0, mask: Any = None, *, weight_decay_mask: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return Adan: Adam with Nesterov's momentum by differences of gradients.

    learning_rate, weight_decay, mask, weight_decay_mask: as of `adamw`. b1, b2, b3, eps, eps_root: as of
    `scale_by_adan`. Xie et al. 2022, arXiv:2208.06677.

    >>> tx = tracer.optim.adan(0.1)
    >>> tx.update(tnp.asarray([2.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.1], f64)
    """
    decay = add_decayed_weights(weight_decay, mask, weight_decay_mask=weight_decay_mask)
    return chained("adan", scale_by_adan(b1, b2, b3, eps, eps_root), decay, descent("adan", learning_rate))


def novograd(
    learning_rate: Any, b1: Any = 0.9, b2: Any = 0.25, eps: Any = 1e-6, eps_root: Any = 0.0, weight_decay: Any = 0.0
) -> GradientTransformationExtraArgs:
    """Return NovoGrad: momentum of gradients that are divided by the average norm of their array.

    learning_rate: a number, a scalar array or a schedule. The other arguments are as in `scale_by_novograd`.
    Ginsburg et al. 2019, arXiv:1905.11286.

    >>> tx = tracer.optim.novograd(0.1)
    >>> tx.update(tnp.asarray([3.0, 4.0]), tx.init(tnp.zeros(2)), tnp.zeros(2))[0].round(6)
    Array([-0.06, -0.08], f64)
    """
    rule = scale_by_novograd(b1, b2, eps, eps_root, weight_decay)
    return chained("novograd", rule, descent("novograd", learning_rate))


def optimistic_adam_v2(
    learning_rate: Any, *, alpha: Any = 1.0, beta: Any = 1.0, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8,
    eps_root: Any = 0.0, mu_dtype: Any = None, nesterov: bool = True,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return Adam with extrapolated updates, for games.

    learning_rate: a number, a scalar array or a schedule. alpha, beta: as of `scale_by_optimistic_gradient`. The other
    arguments are as in `scale_by_adam`. Daskalakis et al. 2018, arXiv:1711.00141.

    >>> tx = tracer.optim.optimistic_adam_v2(0.1, nesterov=False)
    >>> tx.update(tnp.asarray([2.0]), tx.init(tnp.zeros(1)))[0].round(6)
    Array([-0.1], f64)
    """
    rule = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)
    last = descent("optimistic_adam_v2", learning_rate)
    return chained("optimistic_adam_v2", rule, scale_by_optimistic_gradient(alpha, beta), last)


def sophia(
    learning_rate: Any, b1: Any = 0.965, b2: Any = 0.99, eps: Any = 1e-8, weight_decay: Any = 1e-4,
    weight_decay_mask: Any = None, gamma: Any = 0.01, clip_threshold: Any = 1.0, update_interval: int = 10,
    hessian_diagonal_fn: GradientTransformation | None = None, mu_dtype: Any = None, *, mask: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return Sophia: momentum over an estimate of the Hessian's diagonal, clipped, with decoupled weight decay.

    learning_rate, weight_decay, weight_decay_mask, mask: as of `adamw`. The other arguments are as in
    `scale_by_sophia`; update needs the keyword obj_fn. Liu et al. 2023, arXiv:2305.14342.

    >>> tx = tracer.optim.sophia(0.1, weight_decay=0.0)
    >>> params = tnp.asarray([1.0, -2.0])
    >>> tx.update(2 * params, tx.init(params), params, obj_fn=lambda x: tnp.sum(x**2))[0]
    Array([-0.1,  0.1], f64)
    """
    rule = scale_by_sophia(b1, b2, eps, gamma, clip_threshold, update_interval, hessian_diagonal_fn, mu_dtype)
    decay = add_decayed_weights(weight_decay, weight_decay_mask, weight_decay_mask=mask)
    return chained("sophia", rule, decay, descent("sophia", learning_rate))
