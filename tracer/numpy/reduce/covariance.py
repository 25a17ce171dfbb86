"""Covariance and correlation, and products, variances and standard deviations that ignore NaN."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.numpy.core.conversion import array_of, broadcast, cast, dtype_of_argument
from tracer.numpy.core.promotion import inexact_beside, operand
from tracer.numpy.elementwise.arithmetic import maximum
from tracer.numpy.elementwise.logic import isnan, truth
from tracer.numpy.elementwise.powers import sqrt
from tracer.numpy.elementwise.rounding import conjugate, imag, real
from tracer.numpy.reduce.matmul import matmul
from tracer.numpy.reduce.reductions import Axis, prod, sum
from tracer.numpy.reduce.statistics import average, degrees_taken_off, inexact_stays, var, without_nan
from tracer.numpy.shapes.creation import full_like
from tracer.numpy.shapes.joining import concatenate
from tracer.numpy.shapes.manipulation import atleast_2d
from tracer.numpy.shapes.matrices import diagonal
from tracer.numpy.shapes.where import where as where_
from tracer.trace.array import Array, concrete_value
from tracer.trace.source import here


def nanprod(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, initial: Any = None,
    where: Any = None,
) -> Array:  # fmt: skip
    """Return `prod` with NaN as 1.

    a: [*s]; axis: one or several, by default all; keepdims, initial: as in `prod`; dtype: by default a's, 64 bits for
    bools and small integers. Returns [*s minus axes].

    >>> tnp.nanprod(tnp.asarray([2.0, tnp.nan]))
    Array(2., f64)
    """
    return prod(without_nan("nanprod", a, 1)[0], axis, dtype, out, keepdims, initial, where)


def nanvar(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False, *,
    where: Any = None, mean: Any = None, correction: float | None = None,
) -> Array:  # fmt: skip
    """Return `var` of the elements that are not NaN; NaN unless more than `ddof` remain.

    a: [*s]; axis, ddof, keepdims, mean, correction, dtype: as in `var`. Returns floats [*s minus axes].

    >>> tnp.nanvar(tnp.asarray([1.0, tnp.nan, 3.0]))
    Array(1., f64)
    """
    x = operand("nanvar", a)
    if not dtypes.is_inexact(x.dtype):
        return var(x, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    inexact_stays("nanvar", x, dtype)
    present = ~isnan(x)
    if where is not None:
        present = present & broadcast(truth("nanvar", where), x.shape)
    taken_off = degrees_taken_off("nanvar", ddof, correction)
    filled = without_nan("nanvar", x, 0)[0]
    result = var(filled, axis, dtype, out, taken_off, keepdims, where=present, mean=mean)
    count = sum(present, axis, keepdims=keepdims)
    return where_(count > taken_off, result, np.nan).astype(result.dtype)


def nanstd(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False, *,
    where: Any = None, mean: Any = None, correction: float | None = None,
) -> Array:  # fmt: skip
    """Return the square root of `nanvar`.

    a: [*s]; axis, ddof, keepdims, mean, correction, dtype: as in `var`. Returns floats [*s minus axes].

    >>> tnp.nanstd(tnp.asarray([1.0, tnp.nan, 3.0]))
    Array(1., f64)
    """
    return sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction))


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Array:  # fmt: skip
    """Return the covariances of variables, given as the rows of a matrix of observations (columns without `rowvar`).

    m: [k, n] of k variables, [n, k] without `rowvar`, or [n] of one; y: more variables, likewise. bias: divide by n
    instead of n - 1; ddof: divide by n - ddof. fweights: [n] integers, the count of each observation; aweights: [n],
    the weight of each. dtype: of the computation. Returns floats or complex numbers [k, k], or [] for one variable.
    Raises ArgumentError for negative weights.

    >>> tnp.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    Array([[ 1., -1.],
           [-1.,  1.]], f64)
    """
    x = inexact_beside("cov", array_of("cov", m), *(() if y is None else (array_of("cov", y),)))
    if dtype is not None:
        x = cast(x, dtype_of_argument("cov", dtype))
    if x.ndim > 2:
        raise ShapeError(message(f"cov{here()} takes a vector or a matrix", f"got {x.type}"))
    rows = atleast_2d(x)
    rows = rows.T if not rowvar and x.ndim == 2 else rows
    if y is not None:
        other = atleast_2d(array_of("cov", y).astype(x.dtype) if dtype is not None else array_of("cov", y))
        rows = concatenate([rows, other.T if not rowvar and other.shape[0] != 1 else other])
    weights = _weights(fweights, aweights)
    if not rows.shape[1]:
        return full_like(rows, np.nan, shape=(rows.shape[0],) * 2).squeeze()
    off = degrees_taken_off("cov", ddof if ddof is not None else 0 if bias else 1, None)
    if weights is None:
        total: Any = rows.shape[1]
        norm: Any = builtins.max(total - off, 0)
    else:
        total = sum(weights)
        share = sum(weights * array_of("cov", aweights)) / total if aweights is not None else 1
        norm = maximum(total - off * share, 0)
    centred = rows - average(rows, 1, weights)[:, None]
    weighted = centred if weights is None else centred * weights
    return matmul(weighted, conjugate(centred).T).squeeze() / norm


def _weights(*factors: Any) -> Array | None:
    """Return the product of weights, None if there are none. Raises ArgumentError for concrete negative ones."""
    product = None
    for factor in (array_of("cov", given) for given in factors if given is not None):
        known = concrete_value(factor)
        if known is not None and (known < 0).any():
            raise ArgumentError(message(f"cov{here()}: weights must not be negative", f"got {factor}"))
        product = factor if product is None else product * factor
    return product


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """Return the correlations of variables: their covariances divided by the product of their standard deviations.

    x, y, rowvar, dtype: as in `cov`. Returns floats or complex numbers [k, k] for k variables, [] for one. A constant
    variable gives NaN.

    >>> tnp.corrcoef([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    Array([[ 1., -1.],
           [-1.,  1.]], f64)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    spread = sqrt(real(diagonal(c)))
    ratio = c / spread[:, None] / spread[None, :]
    if dtypes.is_complex(ratio.dtype):
        return real(ratio).clip(-1, 1) + 1j * imag(ratio).clip(-1, 1)
    return ratio.clip(-1, 1)
