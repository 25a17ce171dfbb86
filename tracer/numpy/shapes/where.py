"""Selection between arrays by a condition, and the indices of the elements that satisfy it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, TracerArrayError, message
from tracer.ir import dtypes, shape
from tracer.numpy.core.conversion import array_of, broadcast, cast, unified
from tracer.numpy.core.fast_asarray import known_value
from tracer.numpy.core.promotion import operand, promoted
from tracer.numpy.elementwise.logic import truth
from tracer.primitives.arrays.indexing.dimension_numbers import ScatterDimensionNumbers
from tracer.primitives.arrays.indexing.gather import scatter_add
from tracer.primitives.arrays.indexing.scatter import scatter
from tracer.primitives.arrays.slice_pad_concatenate import concatenate
from tracer.primitives.base.broadcasting import expand_dims, full
from tracer.primitives.base.shapes import iota, reshape
from tracer.primitives.control.cumulative import cumsum
from tracer.primitives.elementwise import comparison
from tracer.primitives.elementwise.arithmetic import div, sub
from tracer.primitives.elementwise.rounding import rem
from tracer.runtime.eager.elementwise_dispatch import elementwise
from tracer.runtime.values.fresh_handles import makes_new
from tracer.settings import gate
from tracer.trace.array import KEY_DTYPE, Array, concrete_value, unowned
from tracer.trace.convert import as_array
from tracer.trace.device_trace import beside
from tracer.trace.integers import integer
from tracer.trace.source import here


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Return x where the condition holds, else y, broadcast together. Both are computed.

    condition: bool, or numbers, true where not 0; x, y: arrays or numbers. Returns the shape to which all three
    broadcast, in the dtype to which x and y are promoted. The derivative of the branch not chosen is 0, or NaN where
    its slope is infinite: see `apply_where`.

    With the condition alone, return the indices of its true elements; size, fill_value: as in `nonzero`. Raises
    ArgumentError if only one of x and y is given.

    >>> tnp.where(tnp.asarray([True, False]), tnp.asarray([1.0, 2.0]), 0.0)
    Array([1., 0.], f64)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ArgumentError(message(f"where{here()}: x and y are given together, or neither is"))
    return _where(condition, x, y)


@elementwise
def _where(condition: Any, x: Any, y: Any) -> Any:
    which = truth("where", condition)
    if any(isinstance(v, Array) and v.dtype is KEY_DTYPE for v in (x, y)):
        cases: list[Any] = unified("where", [array_of("where", x), array_of("where", y)])
    else:
        cases = promoted("where", x, y)
    sizes = shape.broadcast(which.shape, *(v.shape for v in cases if isinstance(v, Array)), operation=f"where{here()}")
    cases = [broadcast(v, sizes) if isinstance(v, Array) else v for v in cases]
    return comparison.select(broadcast(which, sizes), *cases)


def apply_where(
    cond: Any, args: Any, f1: Callable[..., Any], f2: Callable[..., Any] | None = None, /, *, fill_value: Any = None,
    safe: Any = 1,
) -> Any:  # fmt: skip
    """Return f1(*args) where the condition holds, else f2(*args) or `fill_value`, without NaN in derivatives.

    cond: [*s]; args: an array or a tuple of arrays, which broadcast; f1, f2: functions of them, f2 by default None, for
    `fill_value`. Returns the broadcast shape, in the dtype to which the results are promoted.

    `where(x > 0, log(x), 0)` computes log(x) for every x. Its derivative at x = 0 is 0 · inf = NaN, although log(x) was
    not chosen there. `apply_where` gives each function `safe` in place of the elements of the other branch. Choose a
    value at which both functions and their derivatives are finite.

    >>> x = tnp.asarray([0.0, 4.0])
    >>> tracer.grad(lambda x: tnp.where(x > 0, tnp.sqrt(x), 0.0).sum())(x)
    Array([ nan, 0.25], f64)
    >>> tracer.grad(lambda x: tnp.apply_where(x > 0, x, tnp.sqrt, fill_value=0.0).sum())(x)
    Array([0.  , 0.25], f64)
    """
    if (f2 is None) == (fill_value is None):
        raise ArgumentError(
            message(
                f"apply_where{here()} takes either f2 or fill_value",
                "got both a function and a fill_value" if f2 is not None else "got neither a function nor a fill_value",
                help="give one: apply_where(cond, x, f1, f2), or fill_value=0.0",
            )
        )
    operands = args if isinstance(args, tuple | list) else (args,)
    chosen = f1(*(where(cond, x, safe) for x in operands))
    other = fill_value if f2 is None else f2(*(where(cond, safe, x) for x in operands))
    return where(cond, chosen, other)


@makes_new
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """Return from each choice the elements whose condition is the first to hold; the default where none holds.

    condlist: bools [*s]; choicelist: as many arrays or numbers; default: one more. Both may be arrays, whose rows are
    meant. All broadcast together and are promoted; returns that shape and dtype. Raises ArgumentError for lists of
    different lengths.

    >>> x = tnp.arange(4)
    >>> tnp.select([x < 1, x < 3], [x, 10 * x], -1)
    Array([ 0, 10, 20, -1], i64)
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ArgumentError(
            message(
                f"select{here()} takes one choice for each condition, and at least one",
                f"got {len(condlist)} conditions and {len(choicelist)} choices",
            )
        )
    choices = promoted("select", *choicelist, default)
    result: Any = choices[-1]
    for condition, choice in zip(reversed(condlist), reversed(choices[:-1]), strict=True):
        result = where(condition, *(x if isinstance(x, Array) else x.value for x in (choice, result)))
    return result


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """Return the indices of the elements that are not 0, one array for each axis, in row-major order.

    a: [*s] of rank r, r >= 1. Returns r arrays of int64 [n].

    Under `jit`, n is unknown: `size` must be given. Results are truncated to it, or padded with `fill_value` (by
    default 0; a number, or one for each axis). Raises TracerArrayError under `jit` without `size`.

    >>> tnp.nonzero(tnp.asarray([0, 3, 0, 4]))
    (Array([1, 3], i64),)
    """
    value = operand("nonzero", a)
    if size is None and not gate.words[0] and type(value._value) is np.ndarray and value._value.ndim:
        return tuple([unowned(found.copy(), False) for found in value._value.nonzero()])  # columns of one array
    if not value.ndim:
        raise ShapeError(
            message(
                f"nonzero{here()}: an array without axes has no indices", f"got {value.type}", help="x[None], or where"
            )
        )
    known = concrete_value(value)
    if known is not None and size is None:
        columns = [found.copy() for found in np.nonzero(known)]  # of one array
        return tuple(beside(value, as_array(found, copy=False)) for found in columns)
    return _sized_nonzero(truth("nonzero", value), size, fill_value)


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Return the indices of the elements that are not 0 in the flattened array; `size` as in `nonzero`.

    a: any shape; fill_value: the padding, by default 0. Returns int64 [n], or [size].

    >>> tnp.flatnonzero(tnp.asarray([[0, 3], [0, 4]]))
    Array([1, 3], i64)
    """
    if size is None and (known := known_value(a)) is not None:
        return unowned(known.ravel().nonzero()[0].copy(), False)
    value = operand("flatnonzero", a)
    return nonzero(reshape(value, (value.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Return the indices of the elements that are not 0 as rows, [n, axes]; `size` as in `nonzero`.

    a: any shape; fill_value: the padding, by default 0. Returns int64.

    >>> tnp.argwhere(tnp.asarray([[0, 3], [0, 4]]))
    Array([[0, 1],
           [1, 1]], i64)
    """
    value = operand("argwhere", a)
    found = nonzero(reshape(value, (1,)) if not value.ndim else value, size=size, fill_value=fill_value)
    if not value.ndim:
        return full((found[0].shape[0], 0), 0, dtypes.I64)
    return concatenate([expand_dims(index, (1,)) for index in found], 1)


def _sized_nonzero(mask: Array, size: int | None, fill_value: Any) -> tuple[Array, ...]:
    """Return the indices of true elements, truncated or padded to `size`. Each is scattered to its rank among them."""
    if size is None:
        raise TracerArrayError(
            message(
                f"nonzero{here()}: the number of results depends on the values",
                f"got {mask.type}, whose values are concrete only when the compiled program runs",
                help="give the maximal number, nonzero(x, size=n), or keep the shape with tnp.where",
            )
        )
    size = integer("nonzero", "size", size)
    flat, count = reshape(mask, (mask.size,)), mask.size
    ranks = comparison.select(flat, sub(cumsum(cast(flat, dtypes.I64)), 1), size)
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    indices = reshape(ranks, (count, 1))
    empty = full((size,), 0, dtypes.I64)
    serial = iota(dtypes.I64, count)
    found = scatter(empty, indices, serial, numbers, mode="drop", unique_indices=True)
    ones = full((count,), 1, dtypes.I64)
    taken = comparison.ne(scatter_add(empty, indices, ones, numbers, mode="drop"), 0)
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value or 0,) * mask.ndim
    result, stride = [], mask.size
    for n, fill in zip(mask.shape, fills, strict=True):
        stride = stride // n if n else 0
        index = rem(div(found, stride or 1), n or 1)
        result.append(comparison.select(taken, index, fill))
    return tuple(result)
