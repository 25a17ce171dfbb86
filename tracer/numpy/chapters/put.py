"""NumPy's functions that write to an array, which is rebound to its new values, as by x[i] = v."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, MutationError, ShapeError, message
from tracer.numpy.chapters.editing import resize
from tracer.numpy.core.conversion import array_of, broadcast, cast
from tracer.numpy.core.dtypes import can_cast
from tracer.numpy.core.promotion import fitted, operand
from tracer.numpy.elementwise.logic import truth
from tracer.numpy.elementwise.rounding import finite
from tracer.numpy.shapes.manipulation import ravel, reshape
from tracer.numpy.shapes.take import along, take
from tracer.numpy.shapes.updates import SET, updated
from tracer.numpy.shapes.where import where as where_
from tracer.primitives.elementwise import arithmetic
from tracer.runtime.eager.call_cache import cached
from tracer.runtime.values.fresh_handles import apart
from tracer.trace.array import Array, concrete_value, is_recorded
from tracer.trace.source import here


def written(name: str, target: Any, new: Array, inplace: bool) -> Array:
    """Return the new values; if `inplace`, rebind `target` to them, or write them into a NumPy array."""
    if not inplace:
        return new
    if isinstance(target, Array):
        target._rebind(cast(new, target.dtype))
        return target
    if not isinstance(target, np.ndarray):
        raise ArgumentError(
            message(
                f"{name}{here()}: only an array can be written to",
                f"got {type(target).__name__}",
                help=f"x = {name}(..., inplace=False) returns another",
            )
        )
    if is_recorded(new):
        raise MutationError(
            message(
                f"{name}{here()}: a traced value cannot be written into a NumPy array",
                f"got {new.type}",
                help="use the function's result, x = x + y instead of x += y, or start from a tracer array",
            )
        )
    np.copyto(target, np.asarray(new), casting="unsafe")
    return new


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """Return the array with NaN and infinities replaced: by 0 and the largest finite values, unless given.

    nan, posinf, neginf: numbers, or arrays that broadcast with x and may be traced; copy: False to rebind the array to
    the new values, as by x[...] = v.

    >>> tnp.nan_to_num(tnp.asarray([tnp.nan, 1.0]))
    Array([0., 1.], f64)
    """
    value = operand("nan_to_num", x)
    inplace = not copy and isinstance(x, Array | np.ndarray)
    new = written("nan_to_num", x, _finite(value, nan, posinf, neginf), inplace)
    return new if inplace else apart(new, (x,), {})


_finite = cached(finite, named=False)


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Array:
    """Write a value, or repeated values, to the main diagonal of an array of at least two axes.

    a: [*s] of two axes, or of more of one size; val: a number, or any shape, flattened; wrap: restart the diagonal
    below in a tall matrix. Returns a's shape and dtype. Raises ShapeError for other shapes.

    >>> tnp.fill_diagonal(tnp.zeros((2, 2)), 5.0, inplace=False)
    Array([[5., 0.],
           [0., 5.]], f64)
    """
    x = array_of("fill_diagonal", a)
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) != 1):
        raise ShapeError(message(f"fill_diagonal{here()} takes two axes, or more of one size", f"got {x.type}"))
    if x.ndim == 2:
        step = x.shape[1] + 1
        stop = x.size if wrap else x.shape[1] * x.shape[1]
    else:
        step, stop = 1 + int(np.cumprod(x.shape[:-1]).sum()), x.size
    indices = np.arange(0, min(stop, x.size), step)
    given = ravel(fitted("fill_diagonal", val, x.dtype))
    if not given.shape[0]:
        return written("fill_diagonal", a, x, inplace)
    spread = take(given, np.arange(len(indices)) % max(given.shape[0], 1))
    return written("fill_diagonal", a, reshape(ravel(x).at[indices].set(spread), x.shape), inplace)


def put(a: Any, ind: Any, v: Any, mode: Any = None, *, inplace: bool = True) -> Array:
    """Write values, repeated as needed, to flat indices; `mode` as in `x.at[i].set`.

    a: [*s]; ind: integers of any shape; v: any shape, flattened. Returns a's shape and dtype. Raises OutOfBoundsError
    for indices out of bounds.

    >>> tnp.put(tnp.asarray([1, 2, 3]), [0, 2], [-4, -5], inplace=False)
    Array([-4,  2, -5], i64)
    """
    x, indices = array_of("put", a), ravel(array_of("put", ind))
    given = ravel(fitted("put", v, x.dtype))
    if not given.shape[0]:
        return written("put", a, x, inplace)
    spread = take(given, np.arange(indices.shape[0]) % given.shape[0])
    if mode == "clip":  # as in `take`: negative indices become 0
        indices = arithmetic.max(indices, 0)
    return written("put", a, reshape(ravel(x).at[indices].set(spread, mode=mode), x.shape), inplace)


def _mask_of(name: str, x: Array, mask: Any) -> Array:
    """Return a mask in the array's shape. Raises ShapeError for a mask of another size."""
    holds = truth(name, mask)
    if holds.size != x.size:
        raise ShapeError(
            message(
                f"{name}{here()}: the mask must have as many elements as the array",
                f"got {holds.type} for {x.type}",
                help="broadcast_to(mask, x.shape)",
            )
        )
    return reshape(holds, x.shape)


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Array:
    """Write values, repeated as needed, where a mask is true, in row-major order.

    arr, mask: [*s]; vals: any shape, flattened, at least one value. Returns arr's shape and dtype. Raises ShapeError
    for no values, and for a mask of another size.

    >>> tnp.place(tnp.asarray([1, 2, 3]), [True, False, True], [8, 9], inplace=False)
    Array([8, 2, 9], i64)
    """
    x = array_of("place", arr)
    holds = ravel(_mask_of("place", x, mask))
    given = ravel(fitted("place", vals, x.dtype))
    if not given.shape[0]:
        known = concrete_value(holds)
        if known is not None and not known.any():
            return written("place", arr, x, inplace)
        raise ShapeError(message(f"place{here()} takes at least one value"))
    number = holds.cumsum() - 1
    spread = reshape(take(given, number % given.shape[0]), x.shape)
    return written("place", arr, where_(reshape(holds, x.shape), spread, x), inplace)


def putmask(a: Any, mask: Any, values: Any, *, inplace: bool = True) -> Array:
    """Write, where a mask is true, the elements of `values` at the same flat indices; `values` is repeated to a's size.

    a, mask: [*s]; values: any shape. Returns a's shape and dtype. Raises ShapeError for a mask of another size.

    >>> x = tnp.asarray([1, 2, 3]); _ = tnp.putmask(x, x > 1, [7, 8]); x
    Array([1, 8, 7], i64)
    """
    x = array_of("putmask", a)
    holds = _mask_of("putmask", x, mask)
    given = fitted("putmask", values, x.dtype)
    if not given.size:
        return written("putmask", a, x, inplace)
    given = resize(given, x.shape)
    return written("putmask", a, where_(holds, given, x), inplace)


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: Any = None
) -> Array:
    """Write values where `take_along_axis` would read.

    arr: [*s]; indices: integers, of as many axes; values: of a shape that broadcasts to theirs; axis: None to flatten;
    mode: as in `x.at[i].set`. Returns arr's shape and dtype. Raises ShapeError for indices of another number of axes.

    >>> tnp.put_along_axis(tnp.asarray([[1, 2], [3, 4]]), tnp.asarray([[1], [0]]), 0, axis=1, inplace=False)
    Array([[1, 0],
           [0, 4]], i64)
    """
    x, index = along("put_along_axis", arr, indices, axis)
    new = updated(x, index, values, SET._replace(name="put_along_axis"), mode=mode)
    return written("put_along_axis", arr, new if axis is not None else reshape(new, np.shape(arr)), inplace)


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Array:
    """Write the values of `src`, broadcast, everywhere or where a mask is true. Returns the rebound array.

    dst: [*s]; src: any shape that broadcasts to it; where: bools, likewise. Returns dst's shape and dtype. Raises
    DTypeError if `casting` forbids the cast from src's dtype to dst's.

    >>> x = tnp.zeros(3); _ = tnp.copyto(x, [1.0, 2.0, 3.0], where=[True, False, True]); x
    Array([1., 0., 3.], f64)
    """
    x, given = array_of("copyto", dst), array_of("copyto", src)
    if not (given.weak_type or can_cast(given.dtype, x.dtype, casting)):
        raise DTypeError(
            message(
                f"copyto{here()}: the cast is not {casting}",
                f"got {given.type}, to be written to {x.type}",
                help='cast it first, src.astype(dst.dtype), or pass casting="unsafe"',
            )
        )
    new = broadcast(cast(given, x.dtype), x.shape)
    return written("copyto", dst, where_(truth("copyto", where), new, x), True)
