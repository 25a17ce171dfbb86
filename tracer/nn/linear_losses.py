"""Cross entropy of a linear layer of many classes, by blocks of its weight: memory never holds all logits.

The blocks' logits are computed twice, for the loss and for its derivative. Wijmans et al. 2025, arXiv:2411.09009.
"""

# mypy: disable-error-code="no-any-return"
# (operands are `Any`, and so are their methods' results)

from __future__ import annotations

import math
from typing import Any

from tracer import lax
from tracer import numpy as tnp
from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.nn.losses import rows_of
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries
from tracer.transforms.custom.derivatives import custom_vjp


def linear_cross_entropy(x: Any, weight: Any, labels: Any, *, block: int = 8192, ignore: int | None = None) -> Array:
    """Return cross_entropy(x @ weight.T, labels) without ever storing all logits, nor their derivatives.

    x: floats [..., n]; weight: floats [c, n], such as the weight of nn.Linear or nn.Embedding; labels: integers [...];
    block: the most classes whose logits are in memory at once; ignore: an integer that marks examples of loss 0.
    Returns floats [...], computed in float32 at least. Raises ShapeError and DTypeError for operands that do not fit.
    Raises OutOfBoundsError, in compiled code too, for labels outside of the classes.

    >>> x, weight = tnp.asarray([[1.0, 0.0]]), tnp.asarray([[0.0, 1.0], [2.0, 1.0], [1.0, 0.0]])
    >>> nn.linear_cross_entropy(x, weight, tnp.asarray([1]), block=2).round(4)
    Array([0.4076], f64)
    """
    x, weight, labels = tnp.asarray(x), tnp.asarray(weight), tnp.asarray(labels)
    if weight.ndim != 2 or not x.ndim or x.shape[-1] != weight.shape[1] or labels.shape != x.shape[:-1]:
        raise ShapeError(
            message(
                f"linear_cross_entropy{here()} takes x [..., n], weight [c, n] and labels [...]",
                f"got {x.type}, {weight.type} and {labels.type}",
            )
        )
    if not dtypes.is_float(x.dtype) or not dtypes.is_float(weight.dtype) or not dtypes.is_integer(labels.dtype):
        raise DTypeError(
            message(
                f"linear_cross_entropy{here()} takes floats and labels that are integers",
                f"got {x.type}, {weight.type} and {labels.type}",
            )
        )
    if block < 1 or not len(weight):
        raise ArgumentError(
            message(f"linear_cross_entropy{here()}: there are blocks of one class at least", f"got block={block!r}")
        )
    kept = None if ignore is None else labels != ignore
    chosen = labels if kept is None else tnp.where(kept, labels, 0)
    count = -(-len(weight) // block)
    size = -(-len(weight) // count)
    flat = x.reshape(-1, x.shape[-1])
    indices = chosen.reshape(-1)
    wide = tnp.promote_types(tnp.promote_types(x.dtype, weight.dtype), "float32")
    scores = (flat.astype(wide) * rows_of(weight, indices).astype(wide)).sum(-1)
    loss = (_log_normaliser(flat, weight, size) - scores).reshape(labels.shape)
    return loss if kept is None else tnp.where(kept, loss, 0.0)


def _blocks(weight: Array, size: int) -> Array:
    """Return the numbers of the blocks. The last one starts early enough to be whole."""
    return tnp.arange(-(-len(weight) // size))


def _logits(x: Array, weight: Array, size: int, n: Array) -> tuple[Any, Array, Array]:
    """Return where block n starts, its rows, and its logits: -inf for rows that the block before it has, too."""
    wide = tnp.promote_types(tnp.promote_types(x.dtype, weight.dtype), "float32")
    first = n * size
    start = tnp.minimum(first, len(weight) - size)
    rows = lax.dynamic_slice_in_dim(weight, start, size)
    logits = tnp.matmul(x, rows.T, preferred_element_type=wide)
    if len(weight) % size:
        logits = tnp.where(start + tnp.arange(size) >= first, logits, -math.inf)
    return start, rows, logits


def _log_normaliser(x: Array, weight: Array, size: int) -> Array:
    """Return the logarithm of the summed exponentials of x @ weight.T, [b]."""
    return _log_normaliser_rule(x, weight, size)


def _forward(x: Array, weight: Array, size: int) -> tuple[Array, Any]:
    wide = tnp.promote_types(tnp.promote_types(x.dtype, weight.dtype), "float32")

    def join(carry: Any, n: Array) -> Any:
        top, total = carry
        _, _, logits = _logits(x, weight, size, n)
        new = tnp.maximum(top, logits.max(-1))
        shift = tnp.where(tnp.isfinite(new), new, 0.0)
        return (new, total * tnp.exp(top - shift) + tnp.exp(logits - shift[:, None]).sum(-1)), None

    start = tnp.full(len(x), -math.inf, wide), tnp.zeros(len(x), wide)
    (top, total), _ = lax.scan(join, start, _blocks(weight, size))
    result = tnp.log(total) + tnp.where(tnp.isfinite(top), top, 0.0)
    return result, (x, weight, result)


def _backward(size: int, residuals: Any, cotangent: Array) -> Any:
    x, weight, normaliser = residuals

    def add(carry: Any, n: Array) -> Any:
        of_x, of_weight = carry
        start, rows, logits = _logits(x, weight, size, n)
        slope = tnp.exp(logits - normaliser[:, None]) * cotangent[:, None]
        of_weight = lax.dynamic_update_slice_in_dim(of_weight, slope.T @ x.astype(slope.dtype), start, 0)
        return (of_x + slope @ rows.astype(slope.dtype), of_weight), None

    start = tnp.zeros(x.shape, cotangent.dtype), tnp.zeros(weight.shape, cotangent.dtype)
    # The last block comes first. The block before it overwrites the rows that both have, which are 0 in the last one.
    (of_x, of_weight), _ = lax.scan(add, start, _blocks(weight, size), reverse=True)
    return of_x.astype(x.dtype), of_weight.astype(weight.dtype)


_log_normaliser_rule = custom_vjp(lambda x, weight, size: _forward(x, weight, size)[0], nondiff_argnums=(2,))
_log_normaliser_rule.defvjp(_forward, _backward)

set_boundaries(globals(), ["linear_cross_entropy"])
