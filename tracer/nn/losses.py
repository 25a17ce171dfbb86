"""Losses, which return one number an example: the caller averages, and so weights and masks examples as it likes.

Computed in float32 at least. `linear_cross_entropy` of tracer/nn/linear_losses.py has no logits in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tracer import lax
from tracer import numpy as tnp
from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.nn.activations import log_sigmoid
from tracer.nn.normalisation import log_softmax, logsumexp
from tracer.primitives.arrays.indexing.checked_indices import counted_from_0
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

Axes = int | Sequence[int] | None


def cross_entropy(
    logits: Any, labels: Any, *, smoothing: float = 0.0, ignore: int | None = None, weights: Any = None
) -> Array:
    """Return minus the logarithm of the probability that softmax(logits) gives to the labels.

    logits: floats [..., c]; labels: integers [...] from 0 up to c, or probabilities, floats [..., c]; smoothing: the
    share of the label that goes to all classes alike; ignore: an integer that marks examples of loss 0; weights: of the
    classes, [c]. Returns floats [...], as PyTorch's with reduction="none". For its mean, divide the sum of losses by
    the sum of weights[labels], or by the count of counted labels. Raises ShapeError and DTypeError for labels that do
    not fit. Raises OutOfBoundsError, in compiled code too, for labels outside of the classes.

    >>> nn.cross_entropy(tnp.asarray([[0.0, 0.0], [5.0, 0.0]]), tnp.asarray([1, 0])).round(4)
    Array([0.6931, 0.0067], f64)
    """
    scores = _wide("cross_entropy", logits)
    labels = _labels("cross_entropy", scores, labels, or_probabilities=True)
    if not 0 <= smoothing <= 1:
        raise ArgumentError(message(f"cross_entropy{here()}: smoothing is from 0 to 1", f"got {smoothing!r}"))
    each = None if weights is None else _class_weights("cross_entropy", scores, weights)
    if dtypes.is_float(labels.dtype):
        shares = labels.astype(scores.dtype) * (1 - smoothing) + smoothing / scores.shape[-1]
        logs = log_softmax(scores)
        logs = tnp.where((shares == 0) & (logs == -math.inf), 0.0, logs)  # impossible classes that do not occur
        result: Array = -(shares * logs if each is None else shares * logs * each).sum(-1)
        return result
    kept, labels = _not_ignored(labels, ignore)
    total = logsumexp(scores, -1)
    loss = total - _at(scores, labels)
    if each is not None:
        loss = loss * rows_of(each, labels)
    if smoothing:
        shared = (total[..., None] - scores) if each is None else (total[..., None] - scores) * each
        loss = (1 - smoothing) * loss + smoothing * shared.mean(-1)
    return _where(kept, loss)


def nll(log_probabilities: Any, labels: Any, *, ignore: int | None = None, weights: Any = None) -> Array:
    """Return minus the logarithms of probabilities at the labels.

    log_probabilities: floats [..., c]; labels: integers [...]; ignore: an integer that marks examples of loss 0;
    weights: of the classes, [c]. Returns floats [...]. Raises as `cross_entropy` does.

    >>> nn.nll(tnp.log(tnp.asarray([[0.25, 0.75]])), tnp.asarray([1])).round(4)
    Array([0.2877], f64)
    """
    logs = _wide("nll", log_probabilities)
    labels = _labels("nll", logs, labels)
    kept, labels = _not_ignored(labels, ignore)
    loss = -_at(logs, labels)
    if weights is not None:
        loss = loss * rows_of(_class_weights("nll", logs, weights), labels)
    return _where(kept, loss)


def binary_cross_entropy(logits: Any, labels: Any, *, axes: Axes = None) -> Array:
    """Return minus the logarithm of the probability that sigmoid(logits) gives to the labels.

    logits: floats [b, ...]; labels: bools, 0 and 1, or probabilities, of the same shape; axes: the axes of one example,
    over which losses are averaged: by default all but the first, () for none. Returns floats [b]. Raises ShapeError if
    shapes differ.

    >>> nn.binary_cross_entropy(tnp.asarray([0.0, 5.0]), tnp.asarray([1, 1])).round(4)
    Array([0.6931, 0.0067], f64)
    """
    x, y = _pair("binary_cross_entropy", logits, labels)
    return _averaged(_binary(x, y), axes)


def _binary(x: Array, y: Array) -> Array:
    return -(y * log_sigmoid(x) + (1 - y) * log_sigmoid(-x))


def focal(logits: Any, labels: Any, *, gamma: float = 2.0, alpha: Any = None, axes: Axes = None) -> Array:
    """Return the cross entropy times (1 - p)^gamma, where p is the probability of the label.

    logits: floats [..., c] and labels: integers [...], of classes; or both [b, ...] with labels 0 and 1, for sigmoid(
    logits). gamma: the exponent, 0 for the cross entropy; alpha: weights of the classes, [c]; or, for labels 0 and 1,
    the weight of 1, where 0 has 1 - alpha. axes: the axes of one example, for labels 0 and 1, as in
    `binary_cross_entropy`. Returns floats [...] or [b]. Lin et al. 2017, arXiv:1708.02002. Raises as `cross_entropy`
    does.

    >>> nn.focal(tnp.asarray([[0.0, 0.0]]), tnp.asarray([1])).round(4)
    Array([0.1733], f64)
    """
    x = _wide("focal", logits)
    if tnp.shape(labels) != x.shape:
        loss = cross_entropy(x, labels)
        loss = (-tnp.expm1(-loss)) ** gamma * loss
        if alpha is None:
            return loss
        return loss * rows_of(_class_weights("focal", x, alpha), tnp.asarray(labels))
    x, y = _pair("focal", x, labels)
    loss, opposite = _binary(x, y), tnp.exp(log_sigmoid(-x)) * y + tnp.exp(log_sigmoid(x)) * (1 - y)
    loss = loss * opposite**gamma
    if alpha is not None:
        loss = loss * (alpha * y + (1 - alpha) * (1 - y))
    return _averaged(loss, axes)


def mse(predictions: Any, targets: Any, *, axes: Axes = None) -> Array:
    """Return the mean square difference of each example.

    predictions, targets: real numbers [b, ...] of one shape; axes: the axes of one example, over which squares are
    averaged: by default all but the first, () for none. Returns floats [b]. Raises ShapeError if shapes differ.

    >>> nn.mse(tnp.asarray([[1.0, 2.0], [3.0, 5.0]]), tnp.asarray([[1.0, 2.0], [3.0, 3.0]]))
    Array([0., 2.], f64)
    """
    x, y = _pair("mse", predictions, targets)
    return _averaged(tnp.square(x - y), axes)


def l1(predictions: Any, targets: Any, *, axes: Axes = None) -> Array:
    """Return the mean absolute difference of each example.

    predictions, targets: real numbers [b, ...] of one shape; axes: the axes of one example, as in `mse`. Returns floats
    [b]. Raises ShapeError if shapes differ.

    >>> nn.l1(tnp.asarray([1.0, 2.0]), tnp.asarray([1.0, 4.0]))
    Array([0., 2.], f64)
    """
    x, y = _pair("l1", predictions, targets)
    return _averaged(tnp.abs(x - y), axes)


def huber(predictions: Any, targets: Any, *, delta: float = 1.0, axes: Axes = None) -> Array:
    """Return the mean of each example's d^2 / 2 for differences d up to delta, and delta (|d| - delta / 2) beyond.

    predictions, targets: real numbers [b, ...] of one shape; delta: a positive number; axes: the axes of one example,
    as in `mse`. Returns floats [b]. Huber 1964, Ann. Math. Stat. 35(1). Raises ShapeError if shapes differ,
    ArgumentError for other deltas.

    >>> nn.huber(tnp.asarray([1.0, 2.0]), tnp.asarray([1.5, 5.0]))
    Array([0.125, 2.5  ], f64)
    """
    if delta <= 0:
        raise ArgumentError(message(f"huber{here()}: delta is positive", f"got {delta!r}"))
    x, y = _pair("huber", predictions, targets)
    size = tnp.abs(x - y)
    return _averaged(tnp.where(size <= delta, 0.5 * tnp.square(x - y), delta * (size - 0.5 * delta)), axes)


def kl_divergence(log_probabilities: Any, probabilities: Any) -> Array:
    """Return the Kullback-Leibler divergence of predicted distributions from given ones, sum p (log p - log q).

    log_probabilities: log q, floats [..., c]; probabilities: p, floats [..., c]. Returns floats [...], 0 where p is 0.
    Raises ShapeError if shapes differ.

    >>> nn.kl_divergence(tnp.log(tnp.asarray([0.5, 0.5])), tnp.asarray([1.0, 0.0])).round(4)
    Array(0.6931, f64)
    """
    logs, shares = _pair("kl_divergence", log_probabilities, probabilities)
    if not logs.ndim:
        raise ShapeError(message(f"kl_divergence{here()} takes distributions [..., c]", f"got {logs.type}"))
    occurs = shares > 0
    terms = shares * (tnp.log(tnp.where(occurs, shares, 1.0)) - tnp.where(occurs, logs, 0.0))
    result: Array = terms.sum(-1)
    return result


def hinge(scores: Any, labels: Any, *, margin: float = 1.0, axes: Axes = None) -> Array:
    """Return max(0, margin - label * score), averaged over each example.

    scores: floats [b, ...]; labels: -1 and 1, of the same shape; margin: the score from which the loss is 0; axes:
    the axes of one example, as in `mse`. Returns floats [b]. Raises ShapeError if shapes differ.

    >>> nn.hinge(tnp.asarray([2.0, 0.5, 0.5]), tnp.asarray([1, 1, -1]))
    Array([0. , 0.5, 1.5], f64)
    """
    x, y = _pair("hinge", scores, labels)
    return _averaged(tnp.maximum(margin - x * y, 0.0), axes)


def cosine_similarity(x: Any, y: Any, *, axis: int = -1, eps: float = 1e-8) -> Array:
    """Return the cosine of the angle between vectors: 1 minus it is a loss.

    x, y: floats whose shapes broadcast, vectors along `axis`; eps: the least norm that they are divided by. Returns
    floats [...], the shape without the axis.

    >>> nn.cosine_similarity(tnp.asarray([1.0, 0.0]), tnp.asarray([1.0, 1.0])).round(4)
    Array(0.7071, f64)
    """
    a, b = _wide("cosine_similarity", x), _wide("cosine_similarity", y)
    unit_a, unit_b = (v * lax.rsqrt(tnp.maximum(tnp.square(v).sum(axis, keepdims=True), eps**2)) for v in (a, b))
    result: Array = (unit_a * unit_b).sum(axis)
    return result


def triplet(
    anchor: Any, positive: Any, negative: Any, *, margin: float = 1.0, p: float = 2.0, swap: bool = False,
    eps: float = 1e-6,
) -> Array:  # fmt: skip
    """Return max(0, d(anchor, positive) - d(anchor, negative) + margin) for distances d of vectors.

    anchor, positive, negative: floats [..., n]; margin: the difference of distances from which the loss is 0; p: the
    norm's order; eps: added to differences, as in PyTorch; swap: whether the distance of positive and negative is taken
    where it is shorter. Returns floats [...]. Schroff, Kalenichenko & Philbin 2015, arXiv:1503.03832. Raises ShapeError
    if shapes differ.

    >>> nn.triplet(tnp.asarray([0.0, 0.0]), tnp.asarray([0.0, 1.0]), tnp.asarray([0.0, 1.5])).round(4)
    Array(0.5, f64)
    """
    a, same = _pair("triplet", anchor, positive)
    a, other = _pair("triplet", a, negative)
    far = _distance(a, other, p, eps)
    if swap:
        far = tnp.minimum(far, _distance(same, other, p, eps))
    result: Array = tnp.maximum(_distance(a, same, p, eps) - far + margin, 0.0)
    return result


def _distance(x: Array, y: Array, p: float, eps: float) -> Array:
    found: Array = tnp.linalg.norm(x - y + eps, p, -1)
    return found


_MIN = -1e30  # the logarithm of nothing, of which differences are finite


def ctc(logits: Any, labels: Any, *, lengths: Any = None, label_lengths: Any = None, blank: int = 0) -> Array:
    """Return minus the logarithm of the probability that a sequence gives the labels: connectionist classification.

    logits: floats [b, t, c], of softmax at every step; labels: integers [b, s]; lengths, label_lengths: integers [b],
    how many steps and labels count, by default all; blank: the class of no label. Repeated classes are one label,
    unless a blank is between them. Returns floats [b], inf, with derivative 0, where the steps are too few. Graves et
    al. 2006, ICML. Raises ShapeError and DTypeError for labels that do not fit, OutOfBoundsError for labels outside.

    >>> nn.ctc(tnp.zeros((1, 2, 3)), tnp.asarray([[1]])).round(4)  # three of nine paths: 1 1, 1 blank, blank 1
    Array([1.0986], f64)
    """
    logs = log_softmax(_wide("ctc", logits))
    labels = tnp.asarray(labels)
    if logs.ndim != 3 or labels.ndim != 2 or len(labels) != len(logs):
        raise ShapeError(
            message(f"ctc{here()} takes logits [b, t, c] and labels [b, s]", f"got {logs.type} and {labels.type}")
        )
    check_labels("ctc", labels)
    batch, steps, _ = logs.shape
    count = labels.shape[1]
    most = tnp.full(batch, count) if label_lengths is None else tnp.asarray(label_lengths)
    valid = tnp.full(batch, steps) if lengths is None else tnp.asarray(lengths)
    labels = tnp.where(tnp.arange(count) < most[:, None], labels, blank)
    states = tnp.full((batch, 2 * count + 1), blank, labels.dtype).at[:, 1::2].set(labels)  # blanks between labels
    inside = counted_from_0(states, 2, logs.shape[-1])
    scores = tnp.take_along_axis(logs, tnp.broadcast_to(inside[:, None], (batch, steps, 2 * count + 1)), -1)
    before = tnp.pad(states, ((0, 0), (2, 0)), constant_values=blank)[:, :-2]
    may_skip = (states != blank) & (states != before)

    def step(alpha: Array, at: Any) -> Any:
        here_, active = at
        padded = tnp.pad(alpha, ((0, 0), (2, 0)), constant_values=_MIN)
        ways = [alpha, padded[:, 1:-1], tnp.where(may_skip, padded[:, :-2], _MIN)]
        return tnp.where(active[:, None], logsumexp(tnp.stack(ways), 0) + here_, alpha), None

    start = tnp.full((batch, 2 * count + 1), _MIN, logs.dtype).at[:, 0].set(0.0)
    active = tnp.arange(steps)[:, None] < valid
    alpha, _ = lax.scan(step, start, (tnp.swapaxes(scores, 0, 1), active))
    last = tnp.take_along_axis(alpha, 2 * most[:, None], 1)[:, 0]
    label = tnp.take_along_axis(alpha, tnp.maximum(2 * most[:, None] - 1, 0), 1)[:, 0]
    loss = -logsumexp(tnp.stack([last, tnp.where(most > 0, label, _MIN)]), 0)
    result: Array = tnp.where(loss > -0.5 * _MIN, math.inf, loss)
    return result


def _wide(name: str, x: Any) -> Array:
    """Return real numbers as floats of 32 bits at least."""
    x = tnp.asarray(x)
    if dtypes.is_complex(x.dtype):
        raise DTypeError(message(f"{name}{here()} takes real numbers", f"got {x.type}"))
    own = x.dtype if dtypes.is_float(x.dtype) else tnp.asarray(0.0).dtype
    widened: Array = x.astype(tnp.promote_types(own, "float32"))
    return widened


def _pair(name: str, predictions: Any, targets: Any) -> tuple[Array, Array]:
    """Return both as floats of one dtype. Raises ShapeError unless they have one shape: broadcasting hides mistakes."""
    x, y = tnp.asarray(predictions), tnp.asarray(targets)
    if x.shape != y.shape:
        column = x.ndim == y.ndim + 1 and x.shape[-1:] == (1,)
        raise ShapeError(
            message(
                f"{name}{here()} takes two arrays of one shape",
                f"got {x.type} and {y.type}",
                help="the first one's [..., 0]" if column else "reshape or broadcast one of them first",
            )
        )
    if not dtypes.is_float(y.dtype):
        x = _wide(name, x)
        return x, y.astype(x.dtype)
    x, y = _wide(name, x), _wide(name, y)
    dtype = tnp.promote_types(x.dtype, y.dtype)
    return x.astype(dtype), y.astype(dtype)


def _averaged(loss: Array, axes: Axes) -> Array:
    if axes is None:
        axes = tuple(range(1, loss.ndim))
    result: Array = loss.mean(axes) if axes != () else loss
    return result


def check_labels(name: str, labels: Array) -> None:
    """Raise DTypeError unless labels are integers."""
    if not dtypes.is_integer(labels.dtype):
        raise DTypeError(
            message(f"{name}{here()} takes labels that are integers", f"got {labels.type}", help="labels.astype(int)")
        )


def _labels(name: str, logits: Array, labels: Any, or_probabilities: bool = False) -> Array:
    """Return labels as an array. Raises unless they are integers, or probabilities, of the shape that fits."""
    labels = tnp.asarray(labels)
    found: Array = labels
    if or_probabilities and dtypes.is_float(labels.dtype) and labels.shape == logits.shape:
        return found
    if not logits.ndim or labels.shape != logits.shape[:-1]:
        raise ShapeError(
            message(
                f"{name}{here()} takes logits [..., c] and labels [...]" + (" or [..., c]" if or_probabilities else ""),
                f"got {logits.type} and {labels.type}",
                help="the classes are the last axis"
                if labels.shape != logits.shape
                else 'labels.astype("float32") are probabilities',
            )
        )
    check_labels(name, labels)
    return found


def _class_weights(name: str, logits: Array, weights: Any) -> Array:
    each: Array = tnp.asarray(weights, logits.dtype)
    if each.shape != logits.shape[-1:]:
        raise ShapeError(
            message(f"{name}{here()}: there is one weight for each of {logits.shape[-1]} classes", f"got {each.type}")
        )
    return each


def _not_ignored(labels: Array, ignore: int | None) -> tuple[Array | None, Array]:
    """Return which labels count, None for all, and labels with 0 where they do not."""
    if ignore is None:
        return None, labels
    kept = labels != ignore
    return kept, tnp.where(kept, labels, 0)


def _at(x: Array, labels: Array) -> Array:
    inside = counted_from_0(labels, labels.ndim, x.shape[-1])
    chosen: Array = tnp.take_along_axis(x, inside[..., None], -1, mode="promise_in_bounds")[..., 0]
    return chosen


def rows_of(table: Array, indices: Array) -> Array:
    """Return rows by integers from 0 up to the table's length. Raises OutOfBoundsError, in compiled code too."""
    inside = counted_from_0(indices, 0, len(table))
    rows: Array = table.at[inside].get(mode="promise_in_bounds", wrap_negative_indices=False)
    return rows


def _where(kept: Array | None, loss: Array) -> Array:
    return loss if kept is None else tnp.where(kept, loss, 0.0)


set_boundaries(
    globals(),
    [
        "binary_cross_entropy", "cosine_similarity", "cross_entropy", "ctc", "focal", "hinge", "huber", "kl_divergence",
        "l1", "mse", "nll", "triplet",
    ],
)  # fmt: skip
