"""Scaled dot-product attention. Vaswani et al. 2017, arXiv:1706.03762."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes, shape
from tracer.nn.normalisation import logsumexp, softmax
from tracer.numpy import arange, broadcast_to, einsum, promote_types, reshape, where
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.promotion import promoted_real
from tracer.primitives.elementwise.stop_gradient import stop_gradient
from tracer.trace.array import Array
from tracer.trace.integers import pairs
from tracer.trace.source import here


def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: Any = None,
    is_causal: bool = False, query_seq_lengths: Any = None, key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None,
    return_residual: bool = False,
) -> Any:  # fmt: skip
    """Return softmax(scale query key^T + bias) value, for every head.

    query: floats [b, t, n, h] or [t, n, h], for t positions and n heads; key, value: [b, s, k, h] or [s, k, h], where n
    is a multiple of k: n / k heads share a key (arXiv:2305.13245). bias: numbers that broadcast to [b, n, t, s]; mask:
    bools that broadcast to it, False for positions left out. scale: 1 / sqrt(h) by default. is_causal: whether a query
    sees only positions up to its own; local_window_size: how many positions a query sees before and after its own, a
    pair or one number for both. query_seq_lengths, key_value_seq_lengths: integers [b], the valid positions; results of
    queries beyond are 0. implementation: None or "xla". return_residual: whether to return the logarithms of the summed
    exponentials, too.

    Returns floats of query's shape and dtype, and the residual, [b, t, n] or [t, n], held constant. A query that sees
    nothing gets the mean of the values. Computed in float32 at least (in JAX, at most float32). Raises ShapeError,
    DTypeError and ArgumentError for operands that do not fit.

    >>> x = tnp.asarray([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> tracer.nn.dot_product_attention(x, x, x, is_causal=True)[:, 0]
    Array([[1.        , 0.        ],
           [0.33023845, 0.66976155]], f64)
    """
    if implementation not in (None, "xla"):
        raise _refused(
            "there is one implementation", f"implementation={implementation!r}", 'leave it out, or say "xla"'
        )
    return attended(
        query, key, value, bias, mask, scale=scale, is_causal=is_causal, query_seq_lengths=query_seq_lengths,
        key_value_seq_lengths=key_value_seq_lengths, local_window_size=local_window_size,
        return_residual=return_residual,
    )  # fmt: skip


def attended(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: Any = None,
    is_causal: bool = False, query_seq_lengths: Any = None, key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None, return_residual: bool = False,
    on_weights: Callable[[Array], Array] | None = None,
) -> Any:  # fmt: skip
    """Return the results of `dot_product_attention`. on_weights: a function of the softmax, such as dropout."""
    wanted = array_of(_NAME, query).shape
    q, k, v = (_with_batch(x) for x in (query, key, value))
    _check(q, k, v)
    batch, targets, heads, size = q.shape
    sources, groups = k.shape[1], k.shape[2]
    wide = promote_types(q.dtype, dtypes.F32)
    together = (batch, groups, heads // groups, targets, sources)  # heads that share a key are adjacent

    grouped = reshape(q, (batch, targets, groups, heads // groups, size))
    logits = einsum("btkgh,bskh->bkgts", grouped.astype(wide), k.astype(wide))
    logits = logits * array_of(_NAME, 1 / math.sqrt(max(size, 1)) if scale is None else scale).astype(wide)
    if bias is not None:
        logits = (logits + _grouped("bias", bias, together)).astype(wide)
    seen = _seen(together, mask, is_causal, query_seq_lengths, key_value_seq_lengths, local_window_size)
    if seen is not None:
        logits = where(seen, logits, -0.7 * float(dtypes.finfo(wide).max))
    weights = softmax(logits) if on_weights is None else on_weights(softmax(logits))
    found = einsum("bkgts,bskh->btkgh", weights.astype(v.dtype), v)
    found = reshape(found, (batch, targets, heads, size))
    if query_seq_lengths is not None:
        found = where(_counted(query_seq_lengths, batch, targets)[:, :, None, None], found, 0)
    result = reshape(found, wanted)
    if not return_residual:
        return result
    residual = einsum("bkgt->btkg", logsumexp(logits, axis=-1).astype(q.dtype))
    return result, stop_gradient(reshape(residual, wanted[:-1]))


_NAME = "dot_product_attention"


def _refused(reason: str, got: str, remedy: str, kind: type[Exception] = ArgumentError) -> Exception:
    return kind(message(f"{_NAME}{here()}: {reason}", f"got {got}", help=remedy))


def _with_batch(x: Any) -> Array:
    (given,) = promoted_real(_NAME, x)
    return reshape(given, (1, *given.shape)) if given.ndim == 3 else given


def _check(q: Array, k: Array, v: Array) -> None:
    shown = f"query {q.type}, key {k.type} and value {v.type}"
    if not q.dtype == k.dtype == v.dtype:
        raise _refused("query, key and value have one dtype", shown, "cast them with .astype(...)", DTypeError)
    if (
        any(x.ndim != 4 for x in (q, k, v))
        or k.shape != v.shape
        or (q.shape[0], q.shape[3]) != (k.shape[0], k.shape[3])
    ):
        remedy = "query is [b, t, n, h], key and value are [b, s, k, h], or all without b"
        raise _refused("the shapes do not belong together", shown, remedy, ShapeError)
    if not k.shape[2] or q.shape[2] % k.shape[2]:
        remedy = "repeat the keys and values for each head"
        raise _refused("the query's heads are a multiple of the key's", shown, remedy, ShapeError)


def _grouped(role: str, x: Any, together: shape.Shape) -> Array:
    """Return an array that broadcasts to [batch, heads, targets, sources], with the heads in groups."""
    given = array_of(_NAME, x)
    batch, groups, sharing, targets, sources = together
    wanted = (batch, groups * sharing, targets, sources)
    if given.ndim > 4 or shape.broadcast(given.shape, wanted, operation=f"{_NAME}{here()}: {role}") != wanted:
        raise _refused(f"{role} broadcasts to {shape.show(wanted)}", str(given.type), "see its shape", ShapeError)
    return reshape(broadcast_to(given, wanted), together)


def _seen(
    together: shape.Shape, mask: Any, is_causal: bool, query_lengths: Any, key_lengths: Any, window: Any
) -> Array | None:
    """Return a mask of the sources that every query sees; None for all."""
    batch, _, _, targets, sources = together
    query, source = arange(targets)[:, None], arange(sources)
    parts = []
    if mask is not None:
        given = array_of(_NAME, mask)
        if given.dtype != dtypes.BOOL:
            raise _refused("mask holds bools", str(given.type), "pass numbers for the logits as bias=", DTypeError)
        parts.append(_grouped("mask", given, together))
    if is_causal:
        parts.append(source <= query)
    if window is not None:
        sides = window if isinstance(window, tuple) else (window, window)
        ((before, behind),) = pairs(_NAME, "local_window_size", (sides,))
        parts.append((source >= query - before) & (source <= query + behind))
    if query_lengths is not None:
        parts.append(_counted(query_lengths, batch, targets)[:, None, None, :, None])
    if key_lengths is not None:
        parts.append(_counted(key_lengths, batch, sources)[:, None, None, None, :])
    found = None
    for part in parts:
        found = part if found is None else found & part
    return found


def _counted(lengths: Any, batch: int, positions: int) -> Array:
    """Return whether each position is within the length: bool [batch, positions]."""
    given = array_of(_NAME, lengths)
    if given.shape != (batch,) or not dtypes.is_integer(given.dtype):
        raise _refused(
            f"lengths are integers {shape.show((batch,))}", str(given.type), "one for each batch", ShapeError
        )
    return arange(positions) < given[:, None]
