"""Array creation: from values, and filled.

The default dtypes are `config.default_float` for floats, and `config.default_int` for integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir import shape as sizes_
from tracer.ir.dtypes import DType
from tracer.numpy.core.conversion import array_of, broadcast, cast, dtype_of_argument, native, shape_argument
from tracer.numpy.core.dlpack import from_dlpack, speaks_dlpack_only
from tracer.numpy.core.dtypes import astype, check_fits
from tracer.numpy.core.fast_asarray import plain_array
from tracer.numpy.core.promotion import literal
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.shapes import reshape
from tracer.runtime.eager.call_cache import cached
from tracer.runtime.system.devices import made, made_on
from tracer.runtime.values.fresh_handles import duplicate
from tracer.settings import config
from tracer.trace.array import Array
from tracer.trace.device_trace import device_of
from tracer.trace.integers import integer
from tracer.trace.source import here

ShapeLike = int | Sequence[int]


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: bool | None = None, device: Any = None) -> Array:
    """Convert numbers, NumPy arrays, nested lists, and objects with `__array__` or `__dlpack__` to an array.

    a: an Array is returned as it is, a NumPy array is copied, Python scalars become weak arrays; dtype: by default the
    value's: `config.default_int` for an int, `config.default_float` for a float, complex numbers likewise; order:
    ignored; copy: True to copy an Array, too, False for a buffer's memory, which must not be written to afterwards.
    Returns the shape of the value. Raises ArgumentError for values that are not numbers and where copy=False needs a
    copy, ShapeError for ragged lists.

    >>> tnp.asarray([[1, 2], [3, 4]], dtype="float32")
    Array([[1., 2.],
           [3., 4.]], f32)
    """
    del order
    if device is None and copy is not False:
        if type(a) is Array:
            if dtype is None:
                return duplicate(a) if copy else a
        elif (found := plain_array(a, dtype)) is not None:
            return found
    if copy is False:
        return made(_uncopied(a, dtype), device, "asarray")
    array = from_dlpack(a, copy=copy) if speaks_dlpack_only(a) else array_of("asarray", a)
    if dtype is not None:
        wanted = dtype_of_argument("asarray", dtype)
        if not isinstance(a, Array):
            array = _narrowed(array, a, wanted)
        elif array.dtype != wanted or array.weak_type:
            array = _converted(array, wanted)
    if type(a) is Array and device is None:
        return duplicate(array) if copy and array is a else array
    found = made(array, device, "asarray")
    return duplicate(found) if copy and found is a else found


def _uncopied(a: Any, dtype: Any) -> Array:
    """Return the memory of a value as an array. Raises ArgumentError if it must be copied."""
    wanted = None if dtype is None else dtype_of_argument("asarray", dtype)
    if not isinstance(a, Array):
        try:
            a = from_dlpack(a if speaks_dlpack_only(a) else np.asarray(a, copy=False), copy=False)
        except (BufferError, ValueError):
            how = f" with strides {a.strides}" if isinstance(a, np.ndarray) else ", which is not an array buffer"
            raise _must_copy(f"got {type(a).__name__}{how}") from None
    if wanted is not None and a.dtype != wanted:
        raise _must_copy(f"got {a.type} for {wanted}")
    return a


def _must_copy(why: str) -> ArgumentError:
    return ArgumentError(
        message(f"asarray{here()}: copy=False forbids the copy that is needed", why, help="leave copy out")
    )


def _narrowed(array: Array, given: Any, wanted: DType) -> Array:
    """Cast values from outside to a dtype. Raises DTypeError for Python integers out of range, as NumPy."""
    if isinstance(given, int) and not isinstance(given, bool) and dtypes.is_integer(wanted):
        return broadcast_in_dim(literal("asarray", given, wanted), (), ())
    check_fits("asarray", given, wanted)
    return _converted(array, wanted)


_converted = cached(astype, named=False)


def array(
    object: Any, dtype: Any = None, copy: bool = True, order: Any = None, ndmin: int = 0, *, device: Any = None
) -> Array:
    """Convert to an array as `asarray` does, with axes of size 1 prepended up to `ndmin` axes.

    object: a value that `asarray` takes, [*s]; dtype: by default its own; copy: False to copy only where needed; order:
    ignored. Returns [*s] with the new axes in front.

    >>> tnp.array([1.0, 2.0], ndmin=2)
    Array([[1., 2.]], f64)
    """
    result = asarray(object, dtype, order, copy=copy or None, device=device)
    if type(ndmin) is int and ndmin <= 0:
        return result
    least = integer("array", "ndmin", ndmin)
    if result.ndim < least:
        return reshape(result, (*[1] * (least - result.ndim), *result.shape))
    return result


def copy(a: Any, order: Any = None) -> Array:
    """Return a copy in memory of its own: writing to one, or donating it, leaves the other unchanged.

    a: [*s]; order: ignored, all arrays are in C order. Returns [*s], in a's dtype.

    >>> x = tnp.asarray([1.0, 2.0]); y = tnp.copy(x); y[0] = 7.0; x
    Array([1., 2.], f64)
    """
    del order
    return duplicate(array_of("copy", a))


# Filled


def full(shape: ShapeLike, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """Return one value everywhere, or an array broadcast to the shape.

    shape: a size, or several; fill_value: a number or an array; dtype: by default fill_value's. Python scalars give
    weak arrays. Raises ShapeError for an array that does not broadcast to the shape.

    >>> tnp.full((2, 2), 7.0)
    Array([[7., 7.],
           [7., 7.]], f64*)
    """
    if device is not None:
        return made_on("full", device, full, shape, fill_value, dtype)
    return _spread("full", asarray(fill_value, dtype), shape_argument("full", shape))


def _spread(name: str, value: Array, sizes: tuple[int, ...]) -> Array:
    extra = value.ndim - len(sizes)
    if extra > 0 and value.shape[:extra] == (1,) * extra:  # as in assignments
        value = reshape(value, value.shape[extra:])
    if sizes_.broadcast(value.shape, sizes, operation=f"{name}{here()}") != sizes:
        got = f"got {value.type} for {sizes_.show(sizes)}"
        raise ShapeError(message(f"{name}{here()}: the value must broadcast to the shape", got))
    return broadcast(value, sizes) if value.ndim else broadcast_in_dim(value, sizes, ())


def zeros(shape: ShapeLike, dtype: Any = None, *, device: Any = None) -> Array:
    """Return zeros, by default of the default float dtype.

    shape: a size, or several; dtype: by default `tracer.config.default_float`, float64. Returns that shape.

    >>> tnp.zeros((2, 2), "int32")
    Array([[0, 0],
           [0, 0]], i32)
    """
    return _filled("zeros", shape, 0, dtype, device)


def ones(shape: ShapeLike, dtype: Any = None, *, device: Any = None) -> Array:
    """Return ones, by default of the default float dtype.

    shape: a size, or several; dtype: by default `tracer.config.default_float`, float64. Returns that shape.

    >>> tnp.ones(2)
    Array([1., 1.], f64)
    """
    return _filled("ones", shape, 1, dtype, device)


def empty(shape: ShapeLike, dtype: Any = None, *, device: Any = None) -> Array:
    """Return zeros: an array is never uninitialised.

    shape: a size, or several; dtype: by default `tracer.config.default_float`, float64. Returns that shape.

    >>> tnp.empty(2)
    Array([0., 0.], f64)
    """
    return _filled("empty", shape, 0, dtype, device)


def _filled(name: str, shape: Any, value: int, dtype: Any, device: Any, weak: bool = False) -> Array:
    if device is not None:
        return made_on(name, device, _filled, name, shape, value, dtype, None, weak)
    wanted = config.default_float if dtype is None else dtype_of_argument(name, dtype)
    return made(broadcast_in_dim(literal(name, value, wanted, weak), shape_argument(name, shape), ()), None, name)


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Array:
    """Return one value in the shape and dtype of another array.

    a: [*s], whose elements are not read; fill_value: a number, or an array that broadcasts to [*s]; dtype: by default
    a's. Returns [*s], or `shape`.

    >>> tnp.full_like(tnp.asarray([1, 2]), 7)
    Array([7, 7], i64)
    """
    like, weak, sizes = _like("full_like", a, dtype, shape)
    value = astype(asarray(fill_value), like) if isinstance(fill_value, Array) else asarray(fill_value, like)
    place = _beside(a, device)
    if place is not None:
        return made_on("full_like", place, _spread, "full_like", cast(value, like, weak), sizes)
    return _spread("full_like", cast(value, like, weak), sizes)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Array:
    """Return zeros in the shape and dtype of another array.

    a: [*s], whose elements are not read; dtype: by default a's. Returns [*s], or `shape`.

    >>> tnp.zeros_like(tnp.asarray([1, 2]))
    Array([0, 0], i64)
    """
    like, weak, sizes = _like("zeros_like", a, dtype, shape)
    return _filled("zeros_like", sizes, 0, like, _beside(a, device), weak)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Array:
    """Return ones in the shape and dtype of another array.

    a: [*s], whose elements are not read; dtype: by default a's. Returns [*s], or `shape`.

    >>> tnp.ones_like(tnp.asarray([1, 2]))
    Array([1, 1], i64)
    """
    like, weak, sizes = _like("ones_like", a, dtype, shape)
    return _filled("ones_like", sizes, 1, like, _beside(a, device), weak)


def empty_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Array:
    """Return zeros in the shape and dtype of another array.

    a: [*s], whose elements are not read; dtype: by default a's. Returns [*s], or `shape`.

    >>> tnp.empty_like(tnp.asarray([1, 2]))
    Array([0, 0], i64)
    """
    like, weak, sizes = _like("empty_like", a, dtype, shape)
    return _filled("empty_like", sizes, 0, like, _beside(a, device), weak)


def _beside(a: Any, device: Any) -> Any:
    """Return the device, by default the array's device; None for the host."""
    return device_of(a) if device is None and isinstance(a, Array) else device


def _like(name: str, a: Any, dtype: Any, shape: Any) -> tuple[DType, bool, tuple[int, ...]]:
    """Return dtype, weakness and shape of an array, unless they are given."""
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        a = array_of(name, a)
    wanted = native(a.dtype) if dtype is None else dtype_of_argument(name, dtype)
    weak = dtype is None and isinstance(a, Array) and a.weak_type
    return wanted, weak, tuple(a.shape) if shape is None else shape_argument(name, shape)
