"""Optimizers that look at the loss near by: SAM at the worst point, Sophia at its curvature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracer import lax, random
from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.optim.averaging import check_period, parts_run
from tracer.optim.scalars import (
    Dtypes,
    at,
    average,
    correction,
    count,
    duplicate,
    increment,
    moment_like,
    square_like,
    wide,
)
from tracer.optim.selecting import chosen
from tracer.optim.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    apply_updates,
    init_leaves,
    map_leaves,
    transformation,
    update_leaves,
    with_extra_args_support,
)
from tracer.trace import trees
from tracer.trace.source import here
from tracer.transforms.gradients import grad
from tracer.transforms.jacobian_products import jvp


class SAMState(NamedTuple):
    """State of `sam`: the steps since the last update, both optimizers' states, and the parameters to come back to.

    >>> tx = tracer.optim.sam(tracer.optim.sgd(0.1), tracer.optim.sgd(0.05))
    >>> tx.init(tnp.zeros(1)).cache
    Array([0.], f64)
    """

    steps_since_sync: Any
    opt_state: Any
    adv_state: Any
    cache: Any


class HutchinsonState(NamedTuple):
    """State of `hutchinson_estimator_diag_hessian`: the key of the next signs.

    >>> tracer.optim.hutchinson_estimator_diag_hessian().init(None).key
    Array([0, 0], u32)
    """

    key: Any


class SophiaState(NamedTuple):
    """State of `scale_by_sophia`: the count, averages of gradients and of the Hessian's diagonal, the estimator's.

    >>> tracer.optim.scale_by_sophia().init(tnp.zeros(1)).nu
    Array([0.], f64)
    """

    count: Any
    mu: Any
    nu: Any
    hessian_fn_state: Any


def sam(
    optimizer: GradientTransformation, adv_optimizer: GradientTransformation, sync_period: int = 2,
    reset_state: bool = True, opaque_mode: bool = False, batch_axis_name: str | None = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the optimizer that takes its gradients at the worst point near by.

    Every `sync_period`-th step updates; steps between climb by `adv_optimizer`, such as chain(normalize(), sgd(0.05)).
    reset_state: whether `adv_optimizer` starts anew after an update. opaque_mode: whether each step does all of this
    itself, with gradients from the keyword grad_fn of update: (params, number of the climb) -> gradients.
    batch_axis_name: the axis over which gradients are averaged. Raises ArgumentError for a period below 1. Foret et al.
    2021, arXiv:2010.01412.

    >>> tx = tracer.optim.sam(tracer.optim.sgd(0.1), tracer.optim.sgd(0.05), opaque_mode=True)
    >>> f = tracer.grad(lambda x: tnp.sum(x**2))
    >>> params = tnp.asarray([1.0])
    >>> tx.update(f(params), tx.init(params), params, grad_fn=lambda params, number: f(params))[0]
    Array([-0.22], f64)
    """
    check_period("sam", sync_period)

    def init(params: Any) -> SAMState:
        cache = None if opaque_mode else init_leaves(duplicate, params)
        return SAMState(count(), optimizer.init(params), adv_optimizer.init(params), cache)

    def climbed(updates: Any, state: Any, params: Any) -> tuple[Any, Any]:
        updates, state = parts_run(adv_optimizer, updates, state, params, {})
        return map_leaves(lambda u: -u, updates), state

    def in_turns(updates: Any, state: Any, params: Any) -> Any:
        last = state.steps_since_sync == sync_period - 1
        up, adv_state = climbed(updates, state.adv_state, params)
        down, opt_state = parts_run(optimizer, updates, state.opt_state, state.cache, {})
        back = map_leaves(lambda u, c, p: c - p + u, down, state.cache, params)
        kept = chosen(state.steps_since_sync == 0, params, state.cache)
        fresh = adv_optimizer.init(params) if reset_state else state.adv_state
        return chosen(last, back, up), SAMState(
            (state.steps_since_sync + 1) % sync_period,
            chosen(last, opt_state, state.opt_state),
            chosen(last, fresh, adv_state),
            kept,
        )

    def at_once(updates: Any, state: Any, params: Any, grad_fn: Any) -> Any:
        if grad_fn is None:
            raise ArgumentError(
                message(
                    f"update{here()}: sam in opaque mode takes gradients itself",
                    help="tx.update(grads, state, params, grad_fn=lambda params, number: grad(loss)(params))",
                )
            )
        point, adv_state = params, state.adv_state
        for number in range(sync_period - 1):
            up, adv_state = climbed(updates, adv_state, point)
            point = apply_updates(point, up)
            updates = grad_fn(point, number)
            if batch_axis_name is not None:
                updates = lax.pmean(updates, batch_axis_name)
        if reset_state:
            adv_state = adv_optimizer.init(params)
        updates, opt_state = parts_run(optimizer, updates, state.opt_state, params, {})
        return updates, SAMState(tnp.zeros_like(state.steps_since_sync), opt_state, adv_state, None)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, *, grad_fn: Any = None, **extra: Any) -> Any:
        del scalars, extra
        return at_once(updates, state, params, grad_fn) if opaque_mode else in_turns(updates, state, params)

    return transformation("sam", init, apply, need="climbs from them", kind=SAMState)


def hutchinson_estimator_diag_hessian(random_seed: Any = None) -> GradientTransformationExtraArgs:
    """Return the estimator of the diagonal of the Hessian: s times H s for random signs s.

    random_seed: a key of `tracer.random`. Give update the keyword obj_fn, the loss as a function of the parameters.
    Hutchinson 1989.

    >>> tx = tracer.optim.hutchinson_estimator_diag_hessian()
    >>> params = tnp.asarray([1.0, 2.0])
    >>> tx.update(None, tx.init(params), params, obj_fn=lambda x: tnp.sum(x**3))[0]
    Array([ 6., 12.], f64)
    """

    def init(params: Any) -> HutchinsonState:
        del params
        return HutchinsonState(random.PRNGKey(0) if random_seed is None else random_seed)

    def apply(
        updates: Any, state: Any, params: Any, scalars: Any, *, obj_fn: Callable[[Any], Any] | None = None, **extra: Any
    ) -> Any:
        del updates, scalars, extra
        if obj_fn is None:
            raise ArgumentError(
                message(
                    f"update{here()}: the estimate of the Hessian needs the loss",
                    help="tx.update(grads, state, params, obj_fn=lambda params: loss(params, batch))",
                )
            )
        following, now = random.split(state.key)
        leaves, structure = trees.flatten(params)
        keys = random.split(now, len(leaves))
        signs = [random.rademacher(k, tnp.shape(p), tnp.asarray(p).dtype) for k, p in zip(keys, leaves, strict=True)]
        direction = trees.unflatten(structure, signs)
        curved = jvp(grad(obj_fn), (params,), (direction,))[1]
        return map_leaves(lambda h, s: h * s, curved, direction), HutchinsonState(following)

    return transformation(
        "hutchinson_estimator_diag_hessian", init, apply, need="takes the Hessian there", kind=HutchinsonState
    )


def scale_by_sophia(
    b1: Any = 0.965, b2: Any = 0.99, eps: Any = 1e-8, gamma: Any = 0.01, clip_threshold: Any = 1.0,
    update_interval: int = 10, hessian_diagonal_fn: GradientTransformation | None = None, mu_dtype: Any = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the rule of Sophia: m / max(gamma h, eps), clipped, with h the average of the Hessian's diagonal.

    b1, b2: decay of m and of h. clip_threshold: bound of each element, or None. update_interval: steps between
    estimates of the diagonal by `hessian_diagonal_fn`, by default Hutchinson's, which needs the keyword obj_fn of
    update: the loss as a function of the parameters. mu_dtype: dtype of m. Liu et al. 2023, arXiv:2305.14342.

    >>> tx = tracer.optim.scale_by_sophia()
    >>> params = tnp.asarray([1.0, -2.0])
    >>> tx.update(2 * params, tx.init(params), params, obj_fn=lambda x: tnp.sum(x**2))[0]
    Array([ 1., -1.], f64)
    """
    estimator = with_extra_args_support(hessian_diagonal_fn or hutchinson_estimator_diag_hessian())

    def init(params: Any) -> SophiaState:
        mu = init_leaves(lambda p: moment_like(p, mu_dtype), params)
        return SophiaState(count(), mu, init_leaves(square_like, params), estimator.init(params))

    def scalars(state: Any, among: Dtypes) -> Any:
        number = increment(state.count)
        return number, correction(b1, number, among)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        number, c1 = scalars
        due = state.count % update_interval == 0

        def estimated(inner: Any) -> Any:
            found, new = estimator.update(updates, inner, params, **extra)
            return map_leaves(lambda h, v: h.astype(v.dtype), found, state.nu), new

        none = init_leaves(tnp.zeros_like, state.nu)
        diagonal, inner = lax.cond(due, estimated, lambda inner: (none, inner), state.hessian_fn_state)

        def rule(g: Any, m: Any, h: Any, new: Any) -> Any:
            mean = average(wide(g), wide(m), at(b1, g))
            u = mean * c1.of(mean) / tnp.maximum(at(gamma, h) * h, at(eps, h))
            if clip_threshold is not None:
                u = tnp.clip(u, -at(clip_threshold, u), at(clip_threshold, u))
            return u, mean, tnp.where(due, average(new, h, at(b2, h)), h)

        found, mu, nu = update_leaves(rule, updates, (state.mu, state.nu), diagonal)
        return found, SophiaState(number, mu, nu, inner)

    return transformation(
        "scale_by_sophia", init, apply, scalars=scalars, need="takes the Hessian there", kind=SophiaState
    )
