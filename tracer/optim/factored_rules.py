"""Rules with small states: squares by rows and columns (Adafactor), largest squares by axis (SM3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tracer import numpy as tnp
from tracer.errors import DTypeError, message
from tracer.lax import rsqrt
from tracer.optim.scalars import (
    Dtypes,
    Scalar,
    at,
    average,
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
from tracer.trace.array import Array
from tracer.trace.source import here


class ScaleBySM3State(NamedTuple):
    """State of `scale_by_sm3`: for each array the largest squares by index of each axis, and the momentum.

    >>> tracer.optim.scale_by_sm3().init(tnp.zeros((2, 1))).mu
    [Array([0., 0.], f64), Array([0.], f64)]
    """

    mu: Any
    nu: Any


class FactoredState(NamedTuple):
    """State of `scale_by_factored_rms`: the count; means of squares over rows and columns, or all squares.

    >>> tracer.optim.scale_by_factored_rms(min_dim_size_to_factor=2).init(tnp.zeros((2, 3))).v_col.shape
    (3,)
    """

    count: Any
    v_row: Any
    v_col: Any
    v: Any


def _power_decay(step: Any, exponent: Any) -> Array:
    """Return 1 - (step + 1)^-exponent, by which averages of squares grow longer."""
    return 1.0 - tnp.power(tnp.asarray(step).astype("float64") + 1.0, -exponent)


def _factored_axes(shape: tuple[int, ...], factored: bool, least: int) -> tuple[int, int] | None:
    """Return the two largest axes, the smaller one first, if both have `least` elements."""
    order = np.argsort(shape)
    if not factored or len(shape) < 2 or shape[order[-2]] < least:
        return None
    return int(order[-2]), int(order[-1])


def scale_by_factored_rms(
    factored: bool = True, decay_rate: Any = 0.8, step_offset: Any = 0, min_dim_size_to_factor: int = 128,
    epsilon: Any = 1e-30, decay_rate_fn: Callable[[Any, Any], Any] = _power_decay,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the rule of Adafactor: g over the root of mean squares, kept as means over rows and over columns.

    factored: False keeps all squares. decay_rate: exponent of the decay 1 - count^-decay_rate. step_offset: the count
    to subtract. min_dim_size_to_factor: the least size of both axes of a factored array, its two largest. epsilon:
    added to squares. decay_rate_fn: another decay, of the step and `decay_rate`. Shazeer & Stern 2018,
    arXiv:1804.04235.

    >>> tx = tracer.optim.scale_by_factored_rms(min_dim_size_to_factor=2)
    >>> grads = tnp.asarray([[1.0, -2.0], [2.0, -4.0]])
    >>> tx.update(grads, tx.init(grads), grads)[0].round(6)
    Array([[ 1., -1.], [ 1., -1.]], f64)
    """

    def axes_of(p: Any) -> tuple[int, int] | None:
        return _factored_axes(p.shape, factored, min_dim_size_to_factor)

    def without(p: Any, which: int) -> Any:
        axes = axes_of(p)
        return square_like(tnp.zeros_like(p, shape=1)) if axes is None else tnp.sum(square_like(p), axis=axes[which])

    def init(params: Any) -> FactoredState:
        v = init_leaves(
            lambda p: square_like(p) if axes_of(p) is None else square_like(tnp.zeros_like(p, shape=1)), params
        )
        return FactoredState(
            count(), init_leaves(lambda p: without(p, 1), params), init_leaves(lambda p: without(p, 0), params), v
        )

    def scalars(state: Any, among: Dtypes) -> Any:
        decay = tnp.asarray(decay_rate_fn(state.count - step_offset, decay_rate))
        return increment(state.count), Scalar(decay, among)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        number, decay = scalars

        def rule(g: Any, row: Any, column: Any, v: Any) -> Any:
            g, axes = wide(g), axes_of(g)
            square, kept = squared(g) + epsilon, decay.of(g)
            if axes is None:
                v = average(square, v, kept)
                return g * rsqrt(v), row, column, v
            small, large = axes
            row = average(tnp.mean(square, axis=large), row, kept)
            column = average(tnp.mean(square, axis=small), column, kept)
            mean = tnp.mean(row, axis=small - 1 if small > large else small, keepdims=True)
            of_row, of_column = tnp.expand_dims(rsqrt(row / mean), large), tnp.expand_dims(rsqrt(column), small)
            return g * of_row * of_column, row, column, v

        found, *squares = update_leaves(rule, updates, (state.v_row, state.v_col, state.v), loose=True)
        return found, FactoredState(number, *squares)

    return transformation(
        "scale_by_factored_rms", init, apply, scalars=scalars, need="follows their shapes", kind=FactoredState
    )


def scale_by_sm3(b1: Any = 0.9, b2: Any = 1.0, eps: Any = 1e-8) -> GradientTransformationExtraArgs:
    """Return the rule of SM3: g over the root of the least of the largest squares in its row, column, ...

    b1: decay of the momentum of updates. b2: decay of squares; 1 sums them. eps: added to sums. Raises DTypeError for
    complex parameters. Anil et al. 2019, arXiv:1901.11150.

    >>> tx = tracer.optim.scale_by_sm3(b1=0.0, eps=0.0)
    >>> tx.update(tnp.asarray([3.0, -4.0]), tx.init(tnp.zeros(2)))[0]
    Array([ 1., -1.], f64)
    """

    def by_axis(p: Any) -> list[Any]:
        if p.dtype.kind == "c":
            raise DTypeError(message(f"scale_by_sm3{here()} takes real parameters", f"got {p.type}"))
        return [square_like(tnp.zeros_like(p, shape=size)) for size in p.shape or ((),)]

    def init(params: Any) -> ScaleBySM3State:
        return ScaleBySM3State(init_leaves(by_axis, params), init_leaves(moment_like, params))

    def rule(g: Any, largest: Any, m: Any) -> Any:
        g, size = wide(g), g.ndim
        shapes = [tuple(-1 if i == axis else 1 for i in range(size)) for axis in range(size)]
        covers = [tnp.reshape(v, shape) for v, shape in zip(largest, shapes, strict=True)] if size else largest
        least = covers[0]
        for other in covers[1:]:
            least = tnp.minimum(least, other)
        total = (1.0 if b2 == 1.0 else 1.0 - b2) * squared(g) + b2 * least
        filled = total > 0
        u = g * tnp.where(filled, rsqrt(tnp.where(filled, total, 1.0) + at(eps, total)), 0.0)
        new = average(u, wide(m), at(b1, g))
        axes = [tuple(i for i in range(size) if i != axis) for axis in range(size)]
        return new, [tnp.max(total, axis=others) for others in axes] if size > 1 else [total], new

    def apply(updates: Any, state: Any, *_: Any, **extra: Any) -> Any:
        found, mu, nu = update_leaves(rule, updates, (state.mu, state.nu), loose=True)
        return found, ScaleBySM3State(mu, nu)

    return transformation("scale_by_sm3", init, apply, kind=ScaleBySM3State)
