"""Conversion of arguments to arrays: Python scalars, NumPy arrays, nested lists, objects with `__array__`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, TracedValueError, TracerIntegerError, message
from tracer.ir import dtypes
from tracer.ir import shape as shapes
from tracer.ir.dtypes import DType
from tracer.primitives.arrays.slice_pad_concatenate import concatenate
from tracer.primitives.base.broadcasting import broadcast_in_dim, expand_dims
from tracer.primitives.elementwise.conversion import convert_element_type, dtype_named
from tracer.settings import config
from tracer.trace.array import KEY_DTYPE, Array, concrete_value, is_recorded
from tracer.trace.convert import as_array
from tracer.trace.source import here

Pair = tuple[DType, bool]

_LISTS = (list, tuple)


_PLAIN = frozenset((np.ndarray, bool, int, float, complex))


def array_of(name: str, x: Any, *, copy: bool = True) -> Array:
    """Return an argument as an array. Python scalars become weak, lists are stacked, NumPy arrays copied if `copy`."""
    if isinstance(x, Array):
        return x
    if type(x) in _PLAIN:
        return as_array(x, name, copy=copy)
    if isinstance(x, _LISTS):
        return _nested(name, x)
    if hasattr(x, "__jax_array__"):
        return array_of(name, x.__jax_array__())
    if type(x) is range:
        return _nested(name, x)
    return as_array(x, name, copy=copy)


def _nested(name: str, x: Sequence[Any]) -> Array:
    """Return a list or tuple as an array: one constant if it holds no Array, else its elements stacked."""
    if _FLOATS.issuperset(map(type, x)):  # a fast path
        return as_array(np.array(x, config.default_float), copy=False)
    if _holds_array(x):
        elements = unified(name, [array_of(name, element) for element in x])
        shape = elements[0].shape
        if any(element.shape != shape for element in elements):
            raise _ragged(name, x)
        return strong(concatenate([expand_dims(element, (0,)) for element in elements], 0))
    try:
        value = np.asarray(x)
    except ValueError:
        raise _ragged(name, x) from None
    except OverflowError:
        raise DTypeError(message(f"{name}{here()}: an integer does not fit in 64 bits")) from None
    if value.dtype.kind in "fc" and (value.size == 0 or not _holds_numpy(x)):
        default = config.default_float
        value = value.astype(default if value.dtype.kind == "f" else dtypes.complex_dtype(default), copy=False)
    if value.dtype == dtypes.I64 and config.default_int is not dtypes.I64 and not _holds_numpy(x):
        narrow = value.astype(config.default_int)
        value = narrow if (narrow == value).all() else value
    if value.dtype == np.object_ and not (found := _culprit(x)):
        raise DTypeError(
            message(f"{name}{here()}: an integer of the list does not fit in 64 bits", help="write it as a float")
        )
    if value.dtype == np.object_:
        raise ArgumentError(
            message(
                f"{name}{here()}: the list holds something other than numbers",
                f"got {found}",
                help="lists hold numbers and arrays, nested to one depth; NaN may stand for missing values",
            )
        )
    return as_array(value, name, copy=False)


_FLOATS = frozenset((float,))
_NUMBERS = frozenset((bool, int, float, complex))


def _holds_array(x: Any) -> bool:
    if isinstance(x, _LISTS):
        return not _NUMBERS.issuperset(map(type, x)) and any(map(_holds_array, x))
    return isinstance(x, Array)


def _holds_numpy(x: Any) -> bool:
    if isinstance(x, _LISTS):
        return not _NUMBERS.issuperset(map(type, x)) and any(map(_holds_numpy, x))
    return isinstance(x, np.ndarray | np.generic)


def _culprit(x: Any) -> str:
    if isinstance(x, list | tuple):
        return next((text for text in map(_culprit, x) if text), "")
    known = isinstance(x, bool | int | float | complex | np.ndarray | np.generic | Array)
    return "" if known else f"{type(x).__name__}: {x!r}"[:60]


def _ragged(name: str, x: Sequence[Any]) -> ShapeError:
    shapes = [f"a list of {len(e)}" if isinstance(e, list | tuple) else str(np.shape(e)) for e in x[:4]]
    return ShapeError(
        message(
            f"{name}{here()}: the elements of a list must have equal shapes",
            f"got {', '.join(shapes)}{', ...' if len(x) > 4 else ''}",
            help="pad them, or keep a list of arrays",
        )
    )


# Shapes


def shape_argument(name: str, shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of ints. Raises TracerIntegerError for traced sizes, ShapeError for negative ones."""
    sizes = sizes_argument(name, shape)
    if any(n < 0 for n in sizes):
        raise ShapeError(message(f"{name}{here()}: sizes must not be negative", f"got {sizes}"))
    return sizes


def sizes_argument(name: str, shape: Any) -> tuple[int, ...]:
    """Return an integer, a sequence of integers, or an array of at most one axis as a tuple of ints."""
    known = concrete_value(shape) if isinstance(shape, Array) else None
    given = shape if known is None else known
    several = given.ndim == 1 if isinstance(given, np.ndarray | Array) else isinstance(given, Sequence)
    try:
        return tuple(map(operator.index, given)) if several else (operator.index(given),)
    except TracedValueError:
        raise TracerIntegerError(
            message(
                f"{name}{here()}: a shape must be known while tracing",
                f"got {shape!r}",
                help="take it from x.shape, or mark the argument static: jit(f, static_argnums=...)",
            )
        ) from None
    except TypeError:
        raise ArgumentError(
            message(
                f"{name}{here()}: a shape is an integer or a tuple of them",
                f"got {shape!r}",
                help="round and cast sizes with int(...)",
            )
        ) from None


# dtypes


def dtype_of_argument(name: str, dtype: Any) -> DType:
    """Return a dtype argument as a dtype; `float`, `int` and `complex` are the default ones."""
    if dtype is int:
        return config.default_int
    if dtype is float:
        return config.default_float
    if dtype is complex:
        return dtypes.complex_dtype(config.default_float)
    return dtype_named(name, dtype)


def native(dtype: DType) -> DType:
    """Return a NumPy dtype in the machine's byte order; any other dtype as it is."""
    return dtype.newbyteorder("=") if not getattr(dtype, "isnative", True) else dtype


def default_pair(value: bool | int | float | complex) -> Pair:
    """Return the dtype of a Python scalar, and whether it is weak: all but bools are."""
    if isinstance(value, bool):
        return dtypes.BOOL, False
    if isinstance(value, int):
        return (dtypes.I64 if -(2**63) <= value < 2**63 else dtypes.U64), True
    default = config.default_float
    return (default if isinstance(value, float) else dtypes.complex_dtype(default)), True


def common_pair(name: str, pairs: Sequence[Pair]) -> Pair:
    """Return the dtype to which operands are promoted, and whether the result is weak. Raises DTypeError if none."""
    key = tuple(pairs)
    default = config.default_float
    found = _PROMOTED.get((key, default))
    if found is None:
        if any(d is KEY_DTYPE for d, _ in key):
            raise DTypeError(
                message(f"{name}{here()}: random keys are not numbers", help="tracer.random's functions take keys")
            )
        found = dtypes.promote(*key, default_float=default)
        if found is None:
            shown = " and ".join(dtypes.short_name(d) for d, _ in key)
            raise DTypeError(
                message(
                    f"{name}{here()}: the operands have no common dtype",
                    f"got {shown}",
                    help="cast one operand with .astype(...)",
                )
            )
        _PROMOTED[key, default] = found
    return found


_PROMOTED: dict[tuple[tuple[Pair, ...], DType], Pair] = {}


def inexact_dtype(dtype: DType) -> DType:
    """Return the float dtype of functions of `dtype`: float32 for integers up to 32 bits, else the default, as JAX.

    >>> inexact_dtype(np.dtype("int64")), inexact_dtype(np.dtype("int8"))
    (dtype('float64'), dtype('float32'))
    """
    if dtypes.is_inexact(dtype):
        return dtype
    return config.default_float if dtype.itemsize == 8 else dtypes.F32


def floating(x: Array) -> Array:
    """Cast integers and bools of any width to the default float dtype."""
    return x if dtypes.is_inexact(x.dtype) else cast(x, config.default_float)


def cast(x: Array, dtype: DType, weak: bool = False) -> Array:
    """Cast an array to a dtype. Returns `x` itself if nothing changes."""
    if x.dtype == dtype and x.weak_type == weak:
        return x
    return convert_element_type(x, dtype, weak=weak)


def unified(name: str, arrays: Sequence[Array]) -> list[Array]:
    """Return the arrays in their common dtype, each in its own shape. Random keys mix only with random keys."""
    if any(x.dtype is KEY_DTYPE for x in arrays):
        if all(x.dtype is KEY_DTYPE for x in arrays):
            return list(arrays)
        raise DTypeError(message(f"{name}{here()}: random keys do not mix with numbers", help="see random.key_data"))
    first = arrays[0]
    if all(x.dtype == first.dtype and not x.weak_type for x in arrays):
        return list(arrays)
    dtype, weak = common_pair(name, [(x.dtype, x.weak_type) for x in arrays])
    if dtypes.is_integer(dtype) and dtype != dtypes.I64:
        for x in arrays:
            if x.weak_type and not fits(x, dtype):
                value = np.asarray(x).flat[0]
                shown = f"the integer {value} does not fit in {dtypes.short_name(dtype)}"
                raise DTypeError(message(f"{name}{here()}: {shown}", help=room_for(value, dtype)))
    return [x if x.dtype == dtype else cast(x, dtype, weak) for x in arrays]


def room_for(value: Any, dtype: DType) -> str:
    """Return the remedy for a scalar that is out of a dtype's range."""
    if value != value:
        return "cast the array to a float dtype first"
    if value < 0 and dtypes.is_unsigned(dtype):
        return f"{dtypes.short_name(dtype)} has 0 to {dtypes.iinfo(dtype).max}: cast the array to a signed dtype first"
    return "cast the array to a wider dtype first" if dtype.itemsize < 8 else "write it as a float"


def fits(x: Array, dtype: DType) -> bool:
    """Return whether the concrete integers of an array are in range of a dtype; True for traced ones.

    A staged array is asked for its value, too: a function whose operations depend on it has no prepared call.
    """
    known = None if is_recorded(x) and x._value is not None else concrete_value(x)
    if known is None or not known.size or known.dtype.kind not in "iu":
        return True
    limits = dtypes.iinfo(dtype)
    return bool(limits.min <= known.min() and known.max() <= limits.max)


def comparable(name: str, *values: Any) -> list[Array]:
    """Return arrays in a dtype for comparisons; a Python integer out of range widens it."""
    arrays = [array_of(name, x) for x in values]
    integers = [x.dtype for x in arrays if dtypes.is_integer(x.dtype) and not x.weak_type]
    return unified(name, [strong(x) if x.weak_type and not all(fits(x, d) for d in integers) else x for x in arrays])


def broadcast(x: Array, shape: tuple[int, ...]) -> Array:
    """Return the array repeated to a shape to which it broadcasts."""
    if x.shape == shape:
        return x
    first = len(shape) - x.ndim
    return broadcast_in_dim(x, shape, range(first, len(shape)))


def aligned(name: str, *operands: Any) -> list[Any]:
    """Return operands of an elementwise function: arrays broadcast to one shape, scalars as they are."""
    shape = shapes.broadcast(*(x.shape for x in operands if isinstance(x, Array)), operation=name)
    return [broadcast(x, shape) if isinstance(x, Array) else x for x in operands]


def strong(x: Array) -> Array:
    """Return the array without its weak flag."""
    return convert_element_type(x, x.dtype) if x.weak_type else x


def no_out(name: str, out: object) -> None:
    """Raise DTypeError if `out` is not None. Arrays are handled in `tracer.numpy.chapters.ufunc_options`."""
    if out is not None:
        raise DTypeError(
            message(f"{name}{here()}: out= must be an array", f"got {type(out).__name__}", help="x = f(y)")
        )
