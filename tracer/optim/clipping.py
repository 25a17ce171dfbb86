"""Transformations that bound updates: by element, by array, by the norm of all, relative to parameters."""

from __future__ import annotations

from typing import Any

from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError, message
from tracer.optim.scalars import at, global_norm, squared, wide
from tracer.optim.scaling import root_mean_square
from tracer.optim.transformation import (
    GradientTransformationExtraArgs,
    elementwise,
    map_leaves,
    no_state,
    transformation,
)
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.transforms.vectorize import vmap


def clip(max_delta: Any) -> GradientTransformationExtraArgs:
    """Return the clipping of each element of updates to [-max_delta, max_delta].

    >>> tracer.optim.clip(1.0).update(tnp.asarray([-3.0, 0.5]), tracer.optim.EmptyState())[0]
    Array([-1. ,  0.5], f64)
    """
    return elementwise("clip", lambda g: tnp.clip(g, -at(max_delta, g), at(max_delta, g)))


def clip_by_block_rms(threshold: Any) -> GradientTransformationExtraArgs:
    """Return the scaling of each array of updates to a root mean square of at most `threshold`.

    >>> tracer.optim.clip_by_block_rms(1.0).update(tnp.asarray([2.0, -2.0]), tracer.optim.EmptyState())[0]
    Array([ 1., -1.], f64)
    """
    return elementwise(
        "clip_by_block_rms", lambda g: g / tnp.maximum(1.0, root_mean_square(g) / at(threshold, g)).astype(g.dtype)
    )


def clip_by_global_norm(max_norm: Any) -> GradientTransformationExtraArgs:
    """Return the scaling of updates to a norm, of all arrays together, of at most `max_norm`.

    Pascanu, Mikolov & Bengio 2013, arXiv:1211.5063.

    >>> tx = tracer.optim.clip_by_global_norm(1.0)
    >>> tx.update({"w": tnp.asarray([3.0]), "b": tnp.asarray([4.0])}, tx.init(None))[0]
    {'w': Array([0.6], f64), 'b': Array([0.8], f64)}
    """

    def apply(updates: Any, state: Any, *_: Any, **extra: Any) -> Any:
        size = global_norm(updates)
        inside = size < max_norm

        def rule(g: Any) -> Any:
            return tnp.where(inside, g, g / size.astype(g.dtype) * at(max_norm, g))

        return map_leaves(rule, updates), state

    return transformation("clip_by_global_norm", no_state, apply)


def adaptive_grad_clip(
    clipping: Any, eps: Any = 1e-3, axis: int | tuple[int, ...] | None = None
) -> GradientTransformationExtraArgs:
    """Return the scaling of updates, unit by unit, to at most `clipping` times the norm of their parameters.

    clipping: the largest ratio. eps: the least that a parameter's norm counts as. axis: the axes of a unit. By default
    these are all of vectors, the first of arrays with two or three axes. Of larger arrays they are all but the last.
    Brock et al. 2021, arXiv:2102.06171.

    >>> tx = tracer.optim.adaptive_grad_clip(0.5)
    >>> tx.update(tnp.asarray([3.0, 4.0]), tx.init(None), tnp.asarray([0.6, 0.8]))[0]
    Array([0.3, 0.4], f64)
    """

    def rule(g: Any, p: Any) -> Any:
        own = unitwise_norm(g, axis)
        most = at(clipping, own) * tnp.maximum(unitwise_norm(p, axis), at(eps, own))
        return tnp.where(own < most, g, g * (most / tnp.maximum(own, 1e-6)).astype(g.dtype))

    return elementwise("adaptive_grad_clip", rule, need="compares updates with the parameters")


def unitwise_norm(x: Any, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return the norm of the unit that each element belongs to, in the array's shape.

    axis: the axes of a unit, see `adaptive_grad_clip`. Raises ShapeError for six axes or more without `axis`.

    >>> tracer.optim.unitwise_norm(tnp.asarray([[3.0, 1.0], [4.0, 0.0]]))
    Array([[5., 1.], [5., 1.]], f64)
    """
    x = tnp.asarray(x)
    if axis is None:
        if tnp.squeeze(x).ndim <= 1:
            axis = tuple(range(x.ndim))
        elif x.ndim <= 5:
            axis = 0 if x.ndim <= 3 else tuple(range(x.ndim - 1))
        else:
            raise ShapeError(
                message(
                    f"unitwise_norm{here()}: an array of {x.ndim} axes has no usual units",
                    f"got {x.type}",
                    help="say its axes: adaptive_grad_clip(clipping, axis=0)",
                )
            )
    return tnp.broadcast_to(tnp.sqrt(tnp.sum(squared(wide(x)), axis=axis, keepdims=True)), x.shape)


def per_example_global_norm_clip(grads: Any, l2_norm_clip: Any) -> tuple[Any, Array]:
    """Return the sum of gradients of single examples, each scaled to a global norm of at most `l2_norm_clip`.

    grads: a tree of arrays with a leading axis of examples. l2_norm_clip: a number. The second result counts the
    examples that were clipped. Raises ArgumentError if leading axes differ. Abadi et al. 2016, arXiv:1607.00133.

    >>> tracer.optim.per_example_global_norm_clip(tnp.asarray([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    (Array([0.9, 1.2], f64), Array(1, i64))
    """
    leaves = [tnp.asarray(leaf) for leaf in trees.flatten(grads)[0]]
    if any(leaf.ndim == 0 or len(leaf) != len(leaves[0]) for leaf in leaves):
        raise ArgumentError(
            message(
                f"per_example_global_norm_clip{here()}: gradients need one leading axis of examples",
                f"got {', '.join(str(leaf.type) for leaf in leaves)}",
                help="vmap(grad(loss), in_axes=(None, 0))(params, examples)",
            )
        )
    norms = vmap(global_norm)(grads)
    factors = tnp.where(norms > l2_norm_clip, l2_norm_clip / norms, 1.0)
    return map_leaves(lambda g: tnp.tensordot(factors.astype(g.dtype), g, 1), grads), tnp.sum(factors < 1.0)
