"""Array creation: from values, filled, counted and evenly spaced.

The default dtype of floats is `config.default_float`; integers are int64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from tracer.errors import ArgumentError, ShapeError, TracerIntegerError, message
from tracer.ir import dtypes
from tracer.ir import shape as sizes_
from tracer.ir.dtypes import DType
from tracer.numpy.core.conversion import (
    array_of,
    broadcast,
    cast,
    common_pair,
    dtype_of_argument,
    native,
    shape_argument,
)
from tracer.numpy.core.dlpack import from_dlpack, speaks_dlpack_only
from tracer.numpy.core.dtypes import astype, check_fits
from tracer.numpy.core.fast_asarray import plain_array
from tracer.numpy.core.promotion import literal, promoted_inexact
from tracer.numpy.elementwise.powers import power
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.base.broadcasting import axis_of, broadcast_in_dim
from tracer.primitives.base.shapes import broadcasted_iota, expand_dims, moveaxis, reshape
from tracer.primitives.elementwise import arithmetic
from tracer.primitives.elementwise.rounding import floor
from tracer.runtime.eager.call_cache import replayed
from tracer.runtime.system.devices import check_device
from tracer.runtime.values.fresh_handles import another
from tracer.settings import config
from tracer.trace.array import Array
from tracer.trace.captured_values import looked_at
from tracer.trace.integers import integer
from tracer.trace.source import here

ShapeLike = int | Sequence[int]


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: bool | None = None, device: Any = None) -> Array:
    """Convert numbers, NumPy arrays, nested lists, and objects with `__array__` or `__dlpack__` to an array.

    a: an Array is returned as it is, a NumPy array is copied, Python scalars become weak arrays; dtype: by default the
    value's: int64, the default float or complex128 for Python scalars; order: ignored; copy: True for another handle,
    False for the memory of a buffer, which must not be written to afterwards. Returns the shape of the value. Raises
    ArgumentError for values that are not numbers and where copy=False needs a copy, ShapeError for ragged lists.

    >>> tnp.asarray([[1, 2], [3, 4]], dtype="float32")
    Array([[1., 2.],
           [3., 4.]], f32)
    """
    del order
    if device is None and copy is not False:
        if type(a) is Array:
            if dtype is None:
                return another(a) if copy else a
        elif (found := plain_array(a, dtype)) is not None:
            return found
    if device is not None:
        check_device(device, "asarray")
    if copy is False:
        return _uncopied(a, dtype)
    array = from_dlpack(a, copy=copy) if speaks_dlpack_only(a) else array_of("asarray", a)
    if dtype is not None:
        wanted = dtype_of_argument("asarray", dtype)
        if not isinstance(a, Array):
            array = _narrowed(array, a, wanted)
        elif array.dtype != wanted or array.weak_type:
            array = _converted(array, wanted)
    return another(array) if copy and array is a else array


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


_converted = replayed(astype, named=False)


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
    """Return the values behind another handle: writing to one leaves the other unchanged.

    a: [*s]; order: ignored, all arrays are in C order. Returns [*s], in a's dtype.

    >>> x = tnp.asarray([1.0, 2.0]); y = tnp.copy(x); y[0] = 7.0; x
    Array([1., 2.], f64)
    """
    del order
    return another(array_of("copy", a))


# Filled


def full(shape: ShapeLike, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """Return one value everywhere, or an array broadcast to the shape.

    shape: a size, or several; fill_value: a number or an array; dtype: by default fill_value's. Python scalars give
    weak arrays. Raises ShapeError for an array that does not broadcast to the shape.

    >>> tnp.full((2, 2), 7.0)
    Array([[7., 7.],
           [7., 7.]], f64*)
    """
    check_device(device, "full")
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
    check_device(device, name)
    wanted = config.default_float if dtype is None else dtype_of_argument(name, dtype)
    return broadcast_in_dim(literal(name, value, wanted, weak), shape_argument(name, shape), ())


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Array:
    """Return one value in the shape and dtype of another array.

    a: [*s], whose elements are not read; fill_value: a number, or an array that broadcasts to [*s]; dtype: by default
    a's. Returns [*s], or `shape`.

    >>> tnp.full_like(tnp.asarray([1, 2]), 7)
    Array([7, 7], i64)
    """
    like, weak, sizes = _like("full_like", a, dtype, shape)
    value = astype(asarray(fill_value), like) if isinstance(fill_value, Array) else asarray(fill_value, like)
    check_device(device, "full_like")
    return _spread("full_like", cast(value, like, weak), sizes)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Array:
    """Return zeros in the shape and dtype of another array.

    a: [*s], whose elements are not read; dtype: by default a's. Returns [*s], or `shape`.

    >>> tnp.zeros_like(tnp.asarray([1, 2]))
    Array([0, 0], i64)
    """
    like, weak, sizes = _like("zeros_like", a, dtype, shape)
    return _filled("zeros_like", sizes, 0, like, device, weak)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Array:
    """Return ones in the shape and dtype of another array.

    a: [*s], whose elements are not read; dtype: by default a's. Returns [*s], or `shape`.

    >>> tnp.ones_like(tnp.asarray([1, 2]))
    Array([1, 1], i64)
    """
    like, weak, sizes = _like("ones_like", a, dtype, shape)
    return _filled("ones_like", sizes, 1, like, device, weak)


def empty_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Array:
    """Return zeros in the shape and dtype of another array.

    a: [*s], whose elements are not read; dtype: by default a's. Returns [*s], or `shape`.

    >>> tnp.empty_like(tnp.asarray([1, 2]))
    Array([0, 0], i64)
    """
    like, weak, sizes = _like("empty_like", a, dtype, shape)
    return _filled("empty_like", sizes, 0, like, device, weak)


def _like(name: str, a: Any, dtype: Any, shape: Any) -> tuple[DType, bool, tuple[int, ...]]:
    """Return dtype, weakness and shape of an array, unless they are given."""
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        a = array_of(name, a)
    wanted = native(a.dtype) if dtype is None else dtype_of_argument(name, dtype)
    weak = dtype is None and isinstance(a, Array) and a.weak_type
    return wanted, weak, tuple(a.shape) if shape is None else shape_argument(name, shape)


# Counted and spaced


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None) -> Array:
    """Return start, start + step, ... before stop; `arange(stop)` starts at 0.

    start, stop, step: numbers, step by default 1; dtype: by default int64 for integers, else the default float. Returns
    [n] with n = ceil((stop - start) / step), at least 0. All three must be concrete, because they decide the shape.
    Raises ArgumentError for a step of 0.

    >>> tnp.arange(3), tnp.arange(1.0, 2.0, 0.25)
    (Array([0, 1, 2], i64), Array([1.  , 1.25, 1.5 , 1.75], f64))
    """
    check_device(device, "arange")
    first, last = (0, start) if stop is None else (start, stop)
    by = 1 if step is None else step
    first, last, by = (_static_number("arange", v) for v in (first, last, by))
    if any(isinstance(v, complex) for v in (first, last, by)):
        raise ArgumentError(
            message(
                f"arange{here()}: complex numbers have no order to count in",
                f"got start={first}, stop={last}, step={by}",
                help="linspace takes complex ends",
            )
        )
    if by == 0:
        raise ArgumentError(message(f"arange{here()}: the step must not be 0"))
    if dtype is None:
        given = [np.asarray(v) for v in (first, last, by)]
        pair, _ = common_pair(
            "arange", [(g.dtype, not isinstance(v, np.generic)) for g, v in zip(given, (first, last, by), strict=True)]
        )
        wanted = dtypes.I64 if dtypes.is_bool(pair) else pair
    else:
        wanted = dtype_of_argument("arange", dtype)
    count = (
        max(0, math.ceil((last - first) / by)) if not _all_integers(first, last, by) else len(range(first, last, by))
    )
    return _counted(int(count), first, by, wanted)


def _all_integers(*numbers: Any) -> bool:
    return all(isinstance(n, int) for n in numbers)


def _static_number(name: str, value: Any) -> Any:
    """Return a concrete bound as a Python scalar."""
    if isinstance(value, Array | np.ndarray):
        if isinstance(value, Array) and value._trace is not None:
            raise TracerIntegerError(
                message(
                    f"{name}{here()}: its bounds must be concrete, because they decide the shape",
                    f"got {value!r}",
                    help="take them from x.shape, or mark the argument static: jit(f, static_argnums=...)",
                )
            )
        if value.size != 1:
            raise ArgumentError(message(f"{name}{here()}: its bounds are single numbers", f"got {value!r}"))
        return (looked_at(value) if isinstance(value, np.ndarray) else np.asarray(value)).item()
    if not isinstance(value, int | float | complex | np.generic):
        raise ArgumentError(
            message(f"{name}{here()}: its bounds are numbers", f"got {type(value).__name__}: {value!r}"[:80])
        )
    return value if not isinstance(value, np.integer | np.bool_ | bool) else int(value)


def _counted(count: int, first: Any, by: Any, dtype: DType) -> Array:
    if count == 0:
        return broadcast_in_dim(literal("arange", 0, dtype), (0,), ())
    if dtypes.is_bool(dtype):
        return array_of("arange", np.arange(first, first + count * by, by)[:count].astype(bool))
    index = broadcasted_iota(dtype, (count,), 0)
    if by != 1:
        index = arithmetic.mul(index, _term(by, dtype))
    from_zero = first == 0 and not (by < 0 and dtypes.is_inexact(dtype))  # else the first would be -0
    return index if from_zero else arithmetic.add(index, _term(first, dtype))


def _term(value: Any, dtype: DType) -> Any:
    return literal("arange", value if isinstance(value, int) else dtype.type(value), dtype)


@overload
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: Literal[False] = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Array: ...  # fmt: skip
@overload
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, *, retstep: Literal[True], dtype: Any = None,
    axis: int = 0, device: Any = None,
) -> tuple[Array, Array]: ...  # fmt: skip
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """Return `num` evenly spaced values from start to stop, which is included if `endpoint`.

    start, stop: numbers or arrays, which broadcast to [*s]; axis: position of the new axis; retstep: return the spacing
    as well; dtype: integers are rounded down. Returns [num, *s] by default, floats or complex numbers. Raises
    ShapeError for a negative num.

    >>> tnp.linspace(0.0, 1.0, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], f64)
    """
    check_device(device, "linspace")
    if isinstance(num, float | str):
        raise ArgumentError(
            message(f"linspace{here()}: the number of values is an integer", f"got {num!r}", help="arange takes a step")
        )
    count = integer("linspace", "num", num)
    if count < 0:
        raise ShapeError(message(f"linspace{here()}: the number of values must not be negative", f"got num={count}"))
    first, last = promoted_inexact("linspace", asarray(start), asarray(stop))
    computed = first.dtype
    parts = count - 1 if endpoint else count
    step = arithmetic.div(arithmetic.sub(last, first), parts if parts > 0 else math.nan)
    wanted = computed if dtype is None else dtype_of_argument("linspace", dtype)
    values = _spaced(first, last, count, endpoint, step)
    if dtypes.is_integer(wanted) and not dtypes.is_complex(computed):
        values = floor(values)
    result = moveaxis(cast(values, wanted), 0, axis)
    if retstep and parts < 1:
        return result, array_of("linspace", dtypes.real_dtype(step.dtype).type(math.nan))
    return (result, step) if retstep else result


def _spaced(first: Array, last: Array, count: int, endpoint: bool, step: Array) -> Array:
    """Return first + i step, in NumPy's order of operations so that grids have the same bits, and the exact end."""
    sizes = (count, *first.shape)
    if count == 0:
        return broadcast_in_dim(literal("linspace", 0, first.dtype), sizes, ())
    if count == 1:
        return expand_dims(first, (0,))
    position = cast(broadcasted_iota(dtypes.real_dtype(first.dtype), sizes, 0), first.dtype)
    values = arithmetic.add(arithmetic.mul(position, broadcast(step, sizes)), broadcast(first, sizes))
    if not endpoint:
        return values
    return concatenate([slice_in_dim(values, 0, count - 1), expand_dims(last, (0,))], 0)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Array:
    """Return base to the powers of `linspace(start, stop, num)`.

    start, stop, num, endpoint, axis, dtype: as in `linspace`; base: a number, or an array that broadcasts with both.
    Returns [num, *s] by default, floats or complex numbers.

    >>> tnp.logspace(0.0, 2.0, 3)
    Array([  1.,  10., 100.], f64)
    """
    bases = array_of("logspace", base)
    if bases.ndim:
        ends = [array_of("logspace", end) for end in (start, stop)]
        sizes = sizes_.broadcast(bases.shape, *(end.shape for end in ends), operation=f"logspace{here()}")
        first, last = (broadcast(end, sizes) for end in ends)
        exponents = linspace(first, last, num, endpoint, axis=axis)
        at = axis_of("logspace", axis, exponents.ndim)
        bases = broadcast(bases, sizes)
        result = power(reshape(bases, (*sizes[:at], 1, *sizes[at:])), exponents)
    else:
        result = power(base, linspace(start, stop, num, endpoint, axis=axis))
    return result if dtype is None else cast(result, dtype_of_argument("logspace", dtype))
