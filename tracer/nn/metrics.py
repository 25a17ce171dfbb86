"""Metrics of predictions, and `Mean`, which accumulates them over batches."""

from __future__ import annotations

from typing import Any, Self

from tracer import numpy as tnp
from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.nn.losses import check_labels
from tracer.nn.module import Module, State
from tracer.primitives.arrays.indexing.checked_indices import counted_from_0
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries


def accuracy(predictions: Any, labels: Any) -> Array:
    """Return 1 for each example whose most probable class is its label, and 0 for any other example.

    Its mean is the accuracy.

    predictions: floats [..., c], such as logits, or the classes, integers [...]; labels: integers [...]. Returns
    float32 [...]. Raises ShapeError and DTypeError for labels that do not fit.

    >>> nn.accuracy(tnp.asarray([[1.0, 2.0], [3.0, 0.0]]), tnp.asarray([1, 1])).mean()
    Array(0.5, f32)
    """
    classes, labels, _ = _classes("accuracy", predictions, labels, None)
    hit: Array = (classes == labels).astype("float32")
    return hit


def top_k(predictions: Any, labels: Any, k: int = 5) -> Array:
    """Return 1 for each example whose label is one of its k most probable classes, and 0 for any other.

    predictions: real numbers [..., c]; labels: integers [...]; k: an integer. Of equal predictions the first come
    first. Returns float32 [...]. Raises ShapeError and DTypeError for labels that do not fit, OutOfBoundsError for
    labels outside of the classes.

    >>> nn.top_k(tnp.asarray([[1.0, 2.0, 3.0]]), tnp.asarray([1]), k=2)
    Array([1.], f32)
    """
    x, labels = tnp.asarray(predictions), tnp.asarray(labels)
    check_labels("top_k", labels)
    if x.ndim != labels.ndim + 1 or x.shape[:-1] != labels.shape:
        raise _unfit("top_k", x, labels)
    inside = counted_from_0(labels, labels.ndim, x.shape[-1])
    own = tnp.take_along_axis(x, inside[..., None], -1, mode="promise_in_bounds")
    earlier = (x == own) & (tnp.arange(x.shape[-1]) < labels[..., None])
    hit: Array = (((x > own) | earlier).sum(-1) < k).astype("float32")
    return hit


def confusion(predictions: Any, labels: Any, count: int | None = None) -> Array:
    """Return how many examples of each class (rows) were predicted as each class (columns).

    predictions: floats [..., c], such as logits, or the classes, integers [...]; labels: integers [...]; count: the
    number of classes, needed for integers. Returns int64 [count, count]; add the results of several batches. Raises
    ShapeError and DTypeError for labels that do not fit, OutOfBoundsError for classes outside.

    >>> nn.confusion(tnp.asarray([0, 1, 1]), tnp.asarray([0, 1, 0]), 2)
    Array([[1, 1],
           [0, 1]], i64)
    """
    classes, labels, count = _classes("confusion", predictions, labels, count)
    if count is None:
        raise ArgumentError(
            message(f"confusion{here()}: the number of classes is needed", help="confusion(predictions, labels, count)")
        )
    rows, columns = (counted_from_0(x.ravel(), axis, count) for axis, x in enumerate((labels, classes)))
    table: Array = tnp.zeros((count, count), "int64").at[rows, columns].add(1)
    return table


def f1(predictions: Any, labels: Any, count: int | None = None) -> Array:
    """Return the harmonic mean of precision and recall for each class; the mean over classes is macro F1.

    predictions: floats [..., c], such as logits, or the classes, integers [...]; labels: integers [...]; count: the
    number of classes, needed for integers. Returns floats [count], 0 for classes that do not occur. Raises as
    `confusion` does.

    >>> nn.f1(tnp.asarray([0, 1, 1]), tnp.asarray([0, 1, 0]), 2).round(4)
    Array([0.6667, 0.6667], f64)
    """
    table = confusion(predictions, labels, count)
    both = table.sum(0) + table.sum(1)
    result: Array = 2 * tnp.diagonal(table) / tnp.maximum(both, 1)
    return result


def auroc(scores: Any, labels: Any) -> Array:
    """Return the area below the receiver operating characteristic: how often a positive example scores higher.

    scores: real numbers [...]; labels: bools, or integers 0 and 1, of the same shape. Equal scores count one half.
    Returns a float, NaN without positive or negative examples. Hanley & McNeil 1982, Radiology 143(1). Raises
    ShapeError if shapes differ.

    >>> nn.auroc(tnp.asarray([0.1, 0.4, 0.35, 0.8]), tnp.asarray([0, 0, 1, 1]))
    Array(0.75, f64)
    """
    x, positive = tnp.asarray(scores), tnp.asarray(labels)
    if x.shape != positive.shape:
        raise _unfit("auroc", x, positive)
    x, positive = x.ravel(), positive.ravel() != 0
    ordered = tnp.sort(x)
    ranks = (tnp.searchsorted(ordered, x, "left") + tnp.searchsorted(ordered, x, "right") + 1) / 2
    of_both = positive.sum(), (~positive).sum()
    above = tnp.where(positive, ranks, 0.0).sum() - of_both[0] * (of_both[0] + 1) / 2
    result: Array = above / (of_both[0] * of_both[1])
    return result


def r2(predictions: Any, targets: Any) -> Array:
    """Return the share of the targets' variance over the first axis that predictions explain, 1 for all.

    predictions, targets: real numbers [n, ...] of one shape. Returns floats [...]. Raises ShapeError if shapes differ.

    >>> nn.r2(tnp.asarray([1.0, 2.0, 4.0]), tnp.asarray([1.0, 2.0, 3.0]))
    Array(0.5, f64)
    """
    x, y = tnp.asarray(predictions), tnp.asarray(targets)
    if x.shape != y.shape or not x.ndim:
        raise _unfit("r2", x, y)
    result: Array = 1 - tnp.square(x - y).sum(0) / tnp.square(y - y.mean(0)).sum(0)
    return result


class Mean(Module):
    """Mean of all numbers added so far, exact over batches of different sizes.

    The state is a weighted sum and the sum of weights, in float64 by default. A tree: a scan may carry it.

    >>> mean = nn.Mean()
    >>> for batch in ([1.0, 2.0], [6.0]):
    ...     mean = mean.add(tnp.asarray(batch))
    >>> mean.value
    Array(3., f64)
    """

    sum: Any
    weight: Any

    def __init__(self, dtype: Any = "float64") -> None:
        self.sum = State(tnp.zeros((), dtype))
        self.weight = State(tnp.zeros((), dtype))

    def add(self, values: Any, weights: Any = 1.0) -> Self:
        """Return the mean of these numbers, too. values: [...]; weights: real numbers that broadcast to them."""
        x = tnp.asarray(values).astype(self.sum.dtype)
        w = tnp.broadcast_to(tnp.asarray(weights, self.sum.dtype), x.shape)
        return self.replace(sum=self.sum + tnp.where(w == 0, 0.0, x * w).sum(), weight=self.weight + w.sum())

    def __add__(self, other: Self) -> Self:
        return self.replace(sum=self.sum + other.sum, weight=self.weight + other.weight)

    @property
    def value(self) -> Array:
        """The mean; NaN if nothing was added."""
        found: Array = self.sum / self.weight
        return found


def _unfit(name: str, predictions: Array, labels: Array) -> ShapeError:
    return ShapeError(message(f"{name}{here()}: the shapes do not fit", f"got {predictions.type} and {labels.type}"))


def _classes(name: str, predictions: Any, labels: Any, count: int | None) -> tuple[Array, Array, int | None]:
    x, labels = tnp.asarray(predictions), tnp.asarray(labels)
    check_labels(name, labels)
    if x.ndim == labels.ndim + 1:
        count = x.shape[-1] if count is None else count
        x = tnp.argmax(x, -1)
    elif not dtypes.is_integer(x.dtype):
        raise DTypeError(
            message(f"{name}{here()} takes classes that are integers, or an axis of logits", f"got {x.type}")
        )
    if x.shape != labels.shape:
        raise _unfit(name, tnp.asarray(predictions), labels)
    return x, labels, count


set_boundaries(globals(), ["accuracy", "auroc", "confusion", "f1", "r2", "top_k"])
