"""Gradients of several steps in one update: `MultiSteps`, `apply_every`, and when to leave gradients out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.optim.scalars import count, increment, sum_squares
from tracer.optim.selecting import chosen, zeroed
from tracer.optim.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    init_leaves,
    map_leaves,
    parts_of,
    transformation,
    update_leaves,
    with_extra_args_support,
)
from tracer.trace import trees
from tracer.trace.source import here


class ApplyEvery(NamedTuple):
    """State of `apply_every`: the count of updates since the last one that was handed on, and their sum.

    >>> tracer.optim.apply_every(2).init(tnp.zeros(1))
    ApplyEvery(count=Array(0, i32), grad_acc=Array([0.], f64))
    """

    count: Any
    grad_acc: Any


class MultiStepsState(NamedTuple):
    """State of `MultiSteps`: counts of steps and of updates, int32, the inner state, the mean or sum of gradients.

    >>> tracer.optim.MultiSteps(tracer.optim.sgd(0.1), 2).init(tnp.zeros(1)).acc_grads
    Array([0.], f32)
    """

    mini_step: Any
    gradient_step: Any
    inner_opt_state: Any
    acc_grads: Any
    skip_state: Any = ()


def apply_every(k: int = 1) -> GradientTransformationExtraArgs:
    """Return the transformation of updates to their sum at every k-th step, and to zeros between.

    `MultiSteps` also keeps the state of an optimizer still between.

    >>> tx = tracer.optim.apply_every(2)
    >>> first, state = tx.update(tnp.asarray([1.0]), tx.init(tnp.zeros(1)))
    >>> first, tx.update(tnp.asarray([2.0]), state)[0]
    (Array([0.], f64), Array([3.], f64))
    """

    def init(params: Any) -> ApplyEvery:
        return ApplyEvery(count(), init_leaves(tnp.zeros_like, params))

    def apply(updates: Any, state: Any, *_: Any, **extra: Any) -> Any:
        step = state.count % k

        def rule(g: Any, total: Any) -> Any:
            total = tnp.where(step != 0, total + g, g)
            return tnp.where(step == k - 1, total, 0), total

        found, total = update_leaves(rule, updates, (state.grad_acc,))
        return found, ApplyEvery(increment(state.count) % k, total)

    return transformation("apply_every", init, apply, kind=ApplyEvery)


def skip_not_finite(updates: Any, gradient_step: Any, params: Any) -> tuple[Any, Any]:
    """Return whether updates have elements that are not finite, and a dict with their count.

    Give it to `MultiSteps` as `should_skip_update_fn`.

    >>> tracer.optim.skip_not_finite({"w": tnp.asarray([1.0, tnp.nan])}, 0, None)[0]
    Array(True, bool)
    """
    del gradient_step, params
    wrong = tnp.zeros((), "int32")
    for leaf in trees.flatten(updates)[0]:
        wrong = wrong + tnp.sum(~tnp.isfinite(leaf), dtype="int32")
    return wrong > 0, {"should_skip": wrong > 0, "num_not_finite": wrong}


def skip_large_updates(updates: Any, gradient_step: Any, params: Any, max_squared_norm: Any) -> tuple[Any, Any]:
    """Return whether the squared norm of updates is not below a bound, and a dict with that norm.

    Give it to `MultiSteps` as `should_skip_update_fn`, by `functools.partial` with max_squared_norm, a number.

    >>> tracer.optim.skip_large_updates(tnp.asarray([3.0, 4.0]), 0, None, max_squared_norm=26.0)[0]
    Array(False, bool)
    """
    del gradient_step, params
    size = sum_squares(updates)
    skip = ~(size < max_squared_norm)
    return skip, {"should_skip": skip, "norm_squared": size}


class MultiSteps:
    """Optimizer that updates at every k-th step, with the mean of the gradients of k steps.

    The mean of means is not the mean over all examples where batches differ in size.

    opt: a transformation. every_k_schedule: k, or a function from the count of updates to k. use_grad_mean: False sums.
    should_skip_update_fn: a function of gradients, the count of updates and parameters; returns whether to leave the
    gradients out, a scalar bool, and a tree for the state; see `skip_not_finite`. accumulator_dtype: dtype of the mean.

    >>> tx = tracer.optim.MultiSteps(tracer.optim.sgd(1.0), every_k_schedule=2)
    >>> first, state = tx.update(tnp.asarray([1.0]), tx.init(tnp.zeros(1)))
    >>> first, tx.update(tnp.asarray([3.0]), state)[0]
    (Array([0.], f64), Array([-2.], f64))
    """

    def __init__(
        self, opt: GradientTransformation, every_k_schedule: int | Callable[[Any], Any], use_grad_mean: bool = True,
        should_skip_update_fn: Callable[..., Any] | None = None, accumulator_dtype: Any = "float32",
    ) -> None:  # fmt: skip
        self._opt = with_extra_args_support(opt)
        self._steps = every_k_schedule
        self._mean = use_grad_mean
        self._skip = should_skip_update_fn
        self._dtype = accumulator_dtype
        self._transformation = transformation("", self._init, self._apply, need=parts_of(opt).need)

    @property
    def inner_opt(self) -> GradientTransformationExtraArgs:
        """The optimizer that sees the means."""
        return self._opt

    def init(self, params: Any) -> MultiStepsState:
        """Return the state for parameters."""
        found: MultiStepsState = self._transformation.init(params)
        return found

    def update(self, updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, MultiStepsState]:
        """Return updates, zeros between k-th steps, and the next state."""
        found: tuple[Any, MultiStepsState] = self._transformation.update(updates, state, params, **extra_args)
        return found

    def has_updated(self, state: Any) -> Any:
        """Return whether the last step updated, a scalar bool."""
        return (state.mini_step == 0) & (state.gradient_step > 0)

    def gradient_transformation(self) -> GradientTransformationExtraArgs:
        """Return the optimizer as a gradient transformation."""
        return self._transformation

    def _skips(self, updates: Any, number: Any, params: Any) -> Any:
        if self._skip is None:
            return None, ()
        skip, state = self._skip(updates, number, params)
        if getattr(skip, "shape", None) != () or skip.dtype != bool:
            got = getattr(skip, "type", type(skip).__name__)
            raise ArgumentError(
                message(
                    f"MultiSteps{here()}: should_skip_update_fn returns a scalar bool and a tree",
                    f"got {got}",
                    help="return skip, (), with skip as of tnp.any(...)",
                )
            )
        return skip, state

    def _init(self, params: Any) -> MultiStepsState:
        zeros = init_leaves(tnp.zeros_like, params)
        _, skip_state = self._skips(zeros, count(), params)
        total = init_leaves(lambda p: tnp.zeros_like(p, dtype=None if p.dtype.kind == "c" else self._dtype), params)
        return MultiStepsState(count(), count(), self._opt.init(params), total, skip_state)

    def _apply(self, updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        del scalars
        steps = self._steps(state.gradient_step) if callable(self._steps) else self._steps
        skip, skip_state = self._skips(updates, state.gradient_step, params)
        emit = state.mini_step == steps - 1

        def add(g: Any, total: Any) -> Any:
            g = g.astype(total.dtype) if g.dtype.kind != total.dtype.kind else g
            return total + (g - total) / (state.mini_step + 1).astype(total.dtype) if self._mean else g + total

        total = map_leaves(add, updates, state.acc_grads)
        given = map_leaves(lambda t, g: t.astype(g.dtype), total, updates)
        new, inner = self._opt.update(given, state.inner_opt_state, params, **extra)
        hold = ~emit if skip is None else ~emit | skip
        add_up = chosen(emit, init_leaves(tnp.zeros_like, total), total)
        mini, done = increment(state.mini_step) % steps, chosen(emit, state.gradient_step + 1, state.gradient_step)
        after = MultiStepsState(mini, done, chosen(hold, state.inner_opt_state, inner), add_up, skip_state)
        if skip is not None:
            kept = state._replace(inner_opt_state=after.inner_opt_state, skip_state=skip_state)
            after = chosen(skip, kept, after)
        typed = state._replace(skip_state=skip_state)
        return zeroed(hold, new), trees.tree_map(lambda a, b: a.astype(b.dtype), after, typed)
