"""Gradients of large batches, computed part by part in the memory of one part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer import lax, random
from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError, message
from tracer.trace import trees
from tracer.trace.array import KEY_DTYPE, Array
from tracer.trace.source import here
from tracer.trace.tracebacks import boundary
from tracer.transforms.gradients import value_and_grad


def microbatches(f: Callable[..., Any], n: int, *, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function of (model, *batch) that gives the mean loss and its gradient, over n parts of the batch.

    f: a function of (model, *part) that returns (sum of losses, sum of weights), both scalars; with `has_aux`, ((sum of
    losses, sum of weights), model), where the model has the state that was written, and the next part starts from it.
    batch: trees of arrays [b, ...], whose first axis is divided into n equal parts; keys are split; other scalars go to
    all parts. Gradients are added in float32 at least, and divided once by the sum of weights. So ragged weights give
    the gradient of the whole batch. Returns (value, gradients), or ((value, model), gradients), as `value_and_grad`
    does. Raises ShapeError unless n divides b.

    >>> def loss(w, x, y):
    ...     return ((w * x - y) ** 2).sum(), len(x)
    >>> x = tnp.arange(4.0)
    >>> nn.microbatches(loss, 2)(tnp.asarray(1.0), x, 2 * x)
    (Array(3.5, f64), Array(-7., f64))
    """
    if n < 1:
        raise ArgumentError(message(f"microbatches{here()}: n is positive", f"got {n!r}"))

    def of_part(model: Any, *part: Any) -> Any:
        result = f(model, *part)
        (loss, weight), new = result if has_aux else (result, None)
        return loss, (lax.stop_gradient(tnp.asarray(weight, tnp.asarray(loss).dtype)), new)

    step = value_and_grad(of_part, has_aux=True)

    def mean_and_grad(model: Any, *batch: Any) -> Any:
        model = trees.tree_map(tnp.asarray, model)
        zeros = trees.tree_map(lambda p: tnp.zeros(p.shape, _wide(p)), trees.trained_part(model))
        leaves, structure = trees.flatten(batch)
        leaves = [_parts(tnp.asarray(leaf), n) for leaf in leaves]
        is_shared = [leaf.ndim == 0 for leaf in leaves]

        def add(carry: Any, parts: Any) -> Any:
            model, sums = carry
            given = iter(parts)
            own = [leaf if shared else next(given) for leaf, shared in zip(leaves, is_shared, strict=True)]
            (loss, (weight, new)), grads = step(model, *trees.unflatten(structure, own))
            sums = trees.tree_map(lambda total, grad: total + grad.astype(total.dtype), sums, grads)
            return (new if has_aux else model, sums), (loss.astype(_wide(loss)), weight.astype(_wide(loss)))

        divided = [leaf for leaf, shared in zip(leaves, is_shared, strict=True) if not shared]
        (new, sums), (losses, weights) = lax.scan(add, (model, zeros), divided, length=n)
        total = weights.sum()
        grads = trees.tree_map(lambda s, p: (s / total).astype(p.dtype), sums, trees.trained_part(model))
        value = losses.sum() / total
        return ((value, new) if has_aux else value), grads

    return boundary(mean_and_grad)


def _wide(x: Array) -> Any:
    return tnp.promote_types(x.dtype, "float32")


def _parts(x: Array, n: int) -> Array:
    """Return an array with a first axis of n parts; scalars as they are, keys split."""
    if x.ndim == 0:
        return random.split(x, n) if x.dtype == KEY_DTYPE else x
    if x.shape[0] % n:
        raise ShapeError(
            message(
                f"microbatches{here()}: the first axis is divided into {n} equal parts",
                f"got {x.type}",
                help="a batch of a multiple of that size, padded with examples of weight 0",
            )
        )
    parts: Array = x.reshape(n, x.shape[0] // n, *x.shape[1:])
    return parts
