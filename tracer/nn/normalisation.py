"""Normalised exponentials, one-hot vectors, standardisation."""

# mypy: disable-error-code="no-any-return"
# (the functions of `tracer.primitives` give arrays for arrays, literals for literals)

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from tracer.ir import dtypes, shape
from tracer.numpy import (
    abs as absolute,
)
from tracer.numpy import (
    any,
    broadcast_to,
    exp,
    expand_dims,
    isfinite,
    log,
    max,
    mean,
    real,
    sign,
    sqrt,
    square,
    squeeze,
    sum,
    where,
)
from tracer.numpy.core.conversion import array_of, dtype_of_argument
from tracer.numpy.core.promotion import promoted_inexact, require_real
from tracer.numpy.elementwise.logic import truth
from tracer.primitives.base.broadcasting import axis_of
from tracer.primitives.base.shapes import broadcasted_iota
from tracer.primitives.elementwise.stop_gradient import stop_gradient
from tracer.settings import config
from tracer.trace.array import Array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.transforms.custom.derivatives import custom_jvp

Axis = int | Sequence[int] | None


def _peak(x: Array, axis: Axis, where_: Any) -> Array:
    """Return the maximum over axes, kept, held constant, and 0 where infinite: a shift that leaves results unchanged.

    For complex numbers, the maximum of the real parts, which set the size of exponentials.
    """
    top = _top(x, axis, where_)
    return where(isfinite(top), top, 0.0)


def _shift(x: Array, axis: Axis, where_: Any) -> Array:
    """Return `_peak`, but infinite where a maximum is +inf, so that an overflow makes a whole row NaN."""
    top = _top(x, axis, where_)
    return where(top == -math.inf, 0.0, top)


def _top(x: Array, axis: Axis, where_: Any) -> Array:
    size = real(x) if dtypes.is_complex(x.dtype) else x
    return stop_gradient(max(size, axis, keepdims=True, initial=-math.inf, where=where_))


def logsumexp(
    a: Any, axis: Axis = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """Return the logarithm of the sum of b exp(a) over axes, without overflow; with the sum's sign, if `return_sign`.

    a: [*s]; b: factors that broadcast with it; axis: one or several, by default all; keepdims: keep them with size 1;
    where: bools that broadcast with a, False for terms left out. Returns [*s minus axes], floats or complex numbers;
    integers are cast. The sign has this type, too, and is z / |z| of complex sums. Without `return_sign` a negative sum
    gives NaN.

    Shifted by the maximum: Blanchard, Higham & Higham 2021, IMA J. Numer. Anal. 41(4).

    >>> tracer.nn.logsumexp(tnp.asarray([1000.0, 1000.0]))
    Array(1000.69314718, f64)
    """
    if b is None:
        (x,) = promoted_inexact("logsumexp", a)
    else:
        x, factors = promoted_inexact("logsumexp", array_of("logsumexp", a), array_of("logsumexp", b))
        mask = factors != 0
        where = mask if where is None else mask & truth("logsumexp", where)
    peak = _peak(x, axis, where)
    raised = exp(_hidden(where, x - peak))
    total = sum(raised if b is None else factors * raised, axis, keepdims=True, where=where)
    direction = sign(total)
    total = _or_one(total, axis, where, x)
    of_size = return_sign or (b is not None and not dtypes.is_complex(x.dtype))
    result = _or_nothing(log(absolute(total) if of_size else total) + peak, axis, where, x)
    if of_size and not return_sign:
        result = _nan_below_zero(result, direction)
    if not keepdims:
        axes = shape.axes_tuple(axis, x.ndim, f"logsumexp{here()}")
        result, direction = squeeze(result, axes), squeeze(direction, axes)
    return (result, direction) if return_sign else result


def _hidden(mask: Any, x: Array) -> Array:
    """Return -inf where the mask leaves an element out: its exponential is 0, and so is the derivative."""
    return x if mask is None else where(mask, x, -math.inf)


def _or_one(total: Array, axis: Axis, mask: Any, x: Array) -> Array:
    """Return 1 instead of a sum of no terms, which is divided by, and whose logarithm is taken."""
    return total if mask is None else where(_some(axis, mask, x), total, 1.0)


def _or_nothing(result: Array, axis: Axis, mask: Any, x: Array) -> Array:
    """Return -inf instead of the logarithm of a sum of no terms."""
    return result if mask is None else where(_some(axis, mask, x), result, -math.inf)


def _some(axis: Axis, mask: Any, x: Array) -> Array:
    """Return whether the mask keeps an element, of x's shape with the axes of size 1."""
    return any(broadcast_to(truth("where", mask), x.shape), axis, keepdims=True)


def _nan_below_zero(result: Array, direction: Array) -> Array:
    return where(direction < 0, math.nan, result)


def logmeanexp(x: Any, axis: Axis = None, where: Any = None, keepdims: bool = False) -> Array:
    """Return the logarithm of the mean of exp(x) over axes, without overflow.

    x: [*s]; axis: one or several, by default all; keepdims: keep them with size 1; where: bools that broadcast with x,
    False for terms left out. Returns [*s minus axes], floats or complex numbers; integers are cast. NaN for no terms.

    >>> tracer.nn.logmeanexp(tnp.asarray([1000.0, 1000.0]))
    Array(1000., f64)
    """
    (value,) = promoted_inexact("logmeanexp", x)
    axes = shape.axes_tuple(axis, value.ndim, f"logmeanexp{here()}")
    if where is None:
        terms = shape.size([value.shape[d] for d in axes])
        count: Any = math.log(terms) if terms else -math.inf
    else:
        count = log(sum(truth("logmeanexp", where), axis, dtype=value.dtype, keepdims=keepdims))
    return logsumexp(value, axis, keepdims=keepdims, where=where) - count


def softmax(x: Any, axis: Axis = -1, where: Any = None, initial: Any = -math.inf) -> Array:
    """Return exp(x) over its sum along axes: positive, with sum 1. Elements that `where` leaves out become 0.

    A row with +inf is NaN throughout, so that an overflow shows in the loss.

    x: numbers [*s]; axis: one or several, by default the last; where: bools that broadcast with x; initial: no effect,
    as nothing overflows. Returns floats or complex numbers [*s]; integers are cast.

    >>> tracer.nn.softmax(tnp.asarray([0.0, 1000.0]))
    Array([0., 1.], f64)
    """
    del initial
    (value,) = promoted_inexact("softmax", x)
    return _softmax(value, where, axis)


@partial(custom_jvp, nondiff_argnums=2)
def _softmax(x: Array, where: Any, axis: Axis) -> Array:
    raised = exp(_hidden(where, x - _shift(x, axis, where)))
    return raised / _or_one(sum(raised, axis, keepdims=True), axis, where, x)


@_softmax.defjvp
def _softmax_jvp(axis: Axis, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Array, Array]:
    """Return the result and its tangent, for which reverse mode keeps the result alone."""
    result = _softmax(*primals, axis)
    weighted = result * tangents[0]
    return result, weighted - result * sum(weighted, axis, keepdims=True)


def log_softmax(x: Any, axis: Axis = -1, where: Any = None, initial: Any = -math.inf) -> Array:
    """Return the logarithm of `softmax`, exact for small probabilities. Elements that `where` leaves out become -inf.

    x, axis, where, initial: as of `softmax`. Returns floats or complex numbers [*s]; integers are cast.

    >>> tracer.nn.log_softmax(tnp.asarray([0.0, 1000.0]))
    Array([-1000.,     0.], f64)
    """
    del initial
    (value,) = promoted_inexact("log_softmax", x)
    shifted = value - _shift(value, axis, where)
    total = sum(exp(_hidden(where, shifted)), axis, keepdims=True)
    return _hidden(where, shifted - log(_or_one(total, axis, where, value)))


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """Return vectors of zeros with a one at each index; zeros alone for an index out of range.

    x: integers [*s]; num_classes: n; dtype: by default `tracer.config.default_float`; axis: position of the new axis,
    by default last. Returns [*s, n].

    >>> tracer.nn.one_hot(tnp.asarray([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], f64)
    """
    indices = array_of("one_hot", x)
    require_real("one_hot", indices.dtype, indices)
    wanted = config.default_float if dtype is None else dtype_of_argument("one_hot", dtype)
    along = axis_of("one_hot", axis, indices.ndim + 1)
    sizes = (*indices.shape[:along], integer("one_hot", "num_classes", num_classes), *indices.shape[along:])
    counted = broadcasted_iota(indices.dtype if dtypes.is_integer(indices.dtype) else dtypes.I64, sizes, along)
    return (expand_dims(indices, along) == counted).astype(wanted)


def standardize(
    x: Any, axis: Axis = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5, where: Any = None, *,
    algorithm: str = "fast",
) -> Array:  # fmt: skip
    """Return x minus its mean, over the square root of its variance plus epsilon, along axes.

    x: [*s]; axis: one or several, by default the last; mean, variance: known ones, which broadcast with x; epsilon:
    keeps the root from 0; where: bools, False for elements left out of both; algorithm: no effect, the variance is
    computed from x minus the mean. Returns floats or complex numbers [*s]; integers are cast.

    >>> tracer.nn.standardize(tnp.asarray([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.], f64)
    """
    del algorithm
    (value,) = promoted_inexact("standardize", x)
    centre = _mean(value, axis, keepdims=True, where=where) if mean is None else mean
    spread = _mean(square(value - centre), axis, keepdims=True, where=where) if variance is None else variance
    return (value - centre) / sqrt(spread + epsilon)


_mean = mean  # `standardize` has an argument of that name
