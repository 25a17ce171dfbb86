"""Line searches: steps along updates by which the loss falls enough; here by backtracking, see `zoom` for slopes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from tracer import debug, lax
from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.optim.scalars import at, wide
from tracer.optim.states import tree_get
from tracer.optim.transformation import (
    GradientTransformationExtraArgs,
    init_leaves,
    map_leaves,
    transformation,
)
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.transforms.gradients import value_and_grad


class BacktrackingLinesearchInfo(NamedTuple):
    """Result of a backtracking search: its count of steps, and by how much the loss fell too little.

    >>> tracer.optim.scale_by_backtracking_linesearch(5).init(tnp.zeros(1)).info.num_linesearch_steps
    Array(0, i32)
    """

    num_linesearch_steps: Any
    decrease_error: Any


class ScaleByBacktrackingLinesearchState(NamedTuple):
    """State of `scale_by_backtracking_linesearch`: the step, and the loss and gradient there.

    >>> tracer.optim.scale_by_backtracking_linesearch(5).init(tnp.zeros(1)).learning_rate
    Array(1., f64)
    """

    learning_rate: Any
    value: Any
    grad: Any
    info: Any


def line_dtype(params: Any) -> Any:
    """Return the dtype of steps along a line: the real one of the first parameter, at least float32."""
    leaves = trees.flatten(params)[0]
    return wide(tnp.asarray(leaves[0])).real.dtype if leaves else "float32"


def inner_product(first: Any, second: Any) -> Array:
    """Return the real part of the inner product of two trees."""
    products = map_leaves(lambda a, b: tnp.sum((tnp.conj(wide(a)) * wide(b)).real), first, second)
    total = tnp.zeros((), "float32")
    for each in trees.flatten(products)[0]:
        total = total + each
    return total


def moved(params: Any, step: Any, updates: Any) -> Any:
    """Return the parameters plus a step along updates, in their dtypes."""
    return map_leaves(lambda u, p: (p + at(step, u) * u).astype(p.dtype), updates, params)


def bound_loss(name: str, value_fn: Any, extra: dict[str, Any], given: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the loss as a function of parameters. Raises ArgumentError for missing and unknown keywords of update."""
    if missing := sorted(key for key, value in given.items() if value is None):
        raise ArgumentError(
            message(
                f"update{here()}: {name} needs {', '.join(missing)}",
                help="tx.update(grads, state, params, value=value, grad=grads, value_fn=loss)",
            )
        )
    taken = inspect.signature(value_fn).parameters
    if left := sorted(set(extra) - set(taken)):
        raise ArgumentError(
            message(
                f"update{here()}: {name} and its value_fn take no {', '.join(left)}",
                f"value_fn takes {', '.join(taken)}",
                help="keywords of update go to value_fn",
            )
        )
    return lambda params: value_fn(params, **extra)


def scale_by_backtracking_linesearch(
    max_backtracking_steps: int, slope_rtol: Any = 1e-4, decrease_factor: Any = 0.8, increase_factor: Any = 1.5,
    max_learning_rate: Any = 1.0, atol: Any = 0.0, rtol: Any = 0.0, store_grad: bool = False, verbose: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the scaling of updates by the first of shrinking steps at which the loss falls enough.

    Enough is value + step slope_rtol slope, give or take atol and rtol |value| (Armijo 1966). The first step is the
    last one times increase_factor, at most max_learning_rate; each is decrease_factor times the one before. store_grad:
    whether the state keeps the gradient there, for `value_and_grad_from_state`. verbose: whether to print a search that
    fails. Give update the keywords value, grad and value_fn; further keywords go to value_fn.

    >>> f = lambda x: tnp.sum(x**2)
    >>> tx = tracer.optim.chain(tracer.optim.sgd(1.0), tracer.optim.scale_by_backtracking_linesearch(20))
    >>> params = tnp.asarray([1.0])
    >>> value, g = tracer.value_and_grad(f)(params)
    >>> tx.update(g, tx.init(params), params, value=value, grad=g, value_fn=f)[0].round(3)
    Array([-1.6], f64)
    """
    name = "scale_by_backtracking_linesearch"

    def init(params: Any) -> ScaleByBacktrackingLinesearchState:
        dtype = line_dtype(params)
        far = [tnp.full((), tnp.inf, dtype) for _ in range(2)]
        kept = init_leaves(tnp.zeros_like, params) if store_grad else None
        info = BacktrackingLinesearchInfo(tnp.zeros((), "int32"), far[0])
        return ScaleByBacktrackingLinesearchState(tnp.ones((), dtype), far[1], kept, info)

    def apply(
        updates: Any, state: Any, params: Any, scalars: Any, *, value: Any = None, grad: Any = None,
        value_fn: Any = None, **extra: Any,
    ) -> Any:  # fmt: skip
        del scalars
        loss = bound_loss(name, value_fn, extra, {"value": value, "grad": grad, "value_fn": value_fn})
        dtype = state.learning_rate.dtype
        start = tnp.asarray(value).astype(dtype)
        slope = inner_product(updates, grad).astype(dtype)

        def body(search: Any) -> Any:
            step, _, _, number = search
            step = tnp.where(number > 0, decrease_factor * step, step)
            new = tnp.asarray(loss(moved(params, step, updates))).astype(dtype)
            error = new - (1.0 + rtol) * start - step * slope_rtol * slope
            error = tnp.maximum(tnp.where(tnp.isnan(error), tnp.inf, error), 0.0)
            return step.astype(dtype), new, error.astype(dtype), number + 1

        def wanted(search: Any) -> Any:
            _, _, error, number = search
            return ~(error <= atol) & (number <= max_backtracking_steps)

        first = tnp.minimum(increase_factor * state.learning_rate, max_learning_rate).astype(dtype)
        begin = (first, start, tnp.full((), tnp.inf, dtype), tnp.zeros((), "int32"))
        step, new, error, number = lax.while_loop(wanted, body, begin)
        if verbose:
            debug.print("backtracking line search: step {}, {} too high after {} steps", step, error, number)
        kept = value_and_grad(loss)(moved(params, step, updates))[1] if store_grad else None
        step = tnp.where(tnp.isinf(error), 0.0, step).astype(dtype)
        info = BacktrackingLinesearchInfo(number, error)
        after = ScaleByBacktrackingLinesearchState(step, new, kept, info)
        return map_leaves(lambda u: at(step, u) * u, updates), after

    return transformation(
        name, init, apply, need="moves along a line from them", kind=ScaleByBacktrackingLinesearchState
    )


def value_and_grad_from_state(value_fn: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """Return the function of (params, *args, state=...) to the loss and gradient, taken from a line search's state.

    value_fn: the loss. Where the state has no loss yet, both are computed. Raises ArgumentError for states without a
    loss and a gradient.

    >>> f = lambda x: tnp.sum(x**2)
    >>> tx = tracer.optim.lbfgs()
    >>> params = tnp.asarray([1.0])
    >>> tracer.optim.value_and_grad_from_state(f)(params, state=tx.init(params))
    (Array(1., f64), Array([2.], f64))
    """

    def both(params: Any, *args: Any, state: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, gradient = tree_get(state, "value"), tree_get(state, "grad")
        if value is None or gradient is None:
            raise ArgumentError(
                message(
                    f"value_and_grad_from_state{here()}: the state holds no loss and gradient",
                    help="lbfgs keeps them, and scale_by_backtracking_linesearch(..., store_grad=True)",
                )
            )

        def computed() -> tuple[Any, Any]:
            new, slopes = value_and_grad(value_fn)(params, *args, **kwargs)
            return tnp.asarray(new).astype(value.dtype), map_leaves(lambda s, g: s.astype(g.dtype), slopes, gradient)

        found: tuple[Any, Any] = lax.cond(tnp.isfinite(value), lambda: (value, gradient), computed)
        return found

    return both
