"""Methods and attributes of `Array` that are not functions of `tracer.numpy`, or differ from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import TracerFloatError
from tracer.ir.dtypes import BOOL, is_complex
from tracer.ir.types import is_differentiable
from tracer.numpy import arithmetic, joining, manipulation, rounding, sorting, taking
from tracer.numpy import dtypes as dtypes_
from tracer.numpy.conversion import dtype_of_argument
from tracer.primitives.conversion import bitcast_convert_type
from tracer.runtime.devices import check_device, device_of
from tracer.runtime.handles import another, makes_new
from tracer.trace.array import Array


def reshape(self: Array, *shape: Any, order: str = "C", copy: bool | None = None) -> Array:
    """The same elements in another shape, given as a tuple or as integers.

    >>> tnp.arange(6).reshape(2, -1).shape
    (2, 3)
    """
    return manipulation.reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def transpose(self: Array, *axes: Any) -> Array:
    """The axes in another order, given as a tuple or as integers; reversed without one.

    >>> tnp.ones((2, 3, 4)).transpose(2, 0, 1).shape
    (4, 2, 3)
    """
    order = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], list | tuple)) else axes or None
    return manipulation.transpose(self, order)


def astype(
    self: Array,
    dtype: Any,
    order: Any = None,
    casting: Any = None,
    subok: Any = None,
    copy: bool = True,
    *,
    device: Any = None,
) -> Array:
    """The array in another dtype. casting: DTypeError for a cast that is not "safe", "same_kind" and so on.

    >>> tnp.asarray([1.7, -1.7]).astype(int)
    Array([ 1, -1], i64)
    """
    del order, subok, copy
    check_device(device, "astype")
    result = dtypes_.astype(self, dtype)
    if casting is not None:
        dtypes_.check_cast("astype", self, result.dtype, casting)
    return result


def item(self: Array, *args: Any) -> Any:
    """One element as a Python number: the only one, or that at an index.

    Raises TracerFloatError for floats that are differentiated, whose gradient it would lose.

    >>> tnp.asarray([[1, 2], [3, 4]]).item(1, 0)
    3
    """
    chosen = self
    if args:
        index = args[0] if len(args) == 1 else args
        chosen = manipulation.ravel(self)[index] if isinstance(index, int) and self.ndim > 1 else self[index]
    return chosen._scalar(TracerFloatError, "item", differentiated=not is_differentiable(chosen.type)).item()


def tolist(self: Array) -> Any:
    """The elements as nested lists of Python numbers.

    >>> tnp.asarray([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return np.asarray(self).tolist()


def to_numpy(self: Array) -> np.ndarray[Any, Any]:
    """The elements as a NumPy array, read-only; by this name plotting libraries look for it.

    >>> tnp.arange(3).to_numpy()
    array([0, 1, 2])
    """
    return np.asarray(self)


def tobytes(self: Array, order: Any = "C") -> bytes:
    """The elements' bytes in row-major order.

    >>> tnp.asarray([1, 2], "uint8").tobytes()
    b'\\x01\\x02'
    """
    return np.asarray(self).tobytes(order)


def clip(self: Array, min: Any = None, max: Any = None) -> Array:
    """The elements kept between two bounds.

    >>> tnp.arange(5).clip(1, 3)
    Array([1, 1, 2, 3, 3], i64)
    """
    return arithmetic.clip(self, min, max)


@makes_new
def view(self: Array, dtype: Any = None) -> Array:
    """The same bytes read as another dtype; without one, the array behind another handle.

    >>> tnp.asarray([1.0], "float32").view("int32")
    Array([1065353216], i32)
    """
    if dtype is None:
        return another(self)
    wanted = dtype_of_argument("view", dtype)
    if self.dtype == BOOL and wanted != BOOL:
        return view(dtypes_.astype(self, np.uint8), wanted)
    if is_complex(self.dtype) and not is_complex(wanted) and self.ndim:
        halves = joining.stack([rounding.real(self), rounding.imag(self)], -1)
        return view(manipulation.reshape(halves, (*self.shape[:-1], 2 * self.shape[-1])), wanted)
    result: Array = bitcast_convert_type(self, wanted)
    if wanted.itemsize < self.dtype.itemsize:
        return manipulation.reshape(result, (*self.shape[:-1], -1))
    return result


def sort(
    self: Array,
    axis: int | None = -1,
    kind: None = None,
    order: None = None,
    *,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The elements in ascending order: a new array, unlike ndarray's method.

    >>> tnp.asarray([3, 1, 2]).sort()
    Array([1, 2, 3], i64)
    """
    return sorting.sort(self, axis, kind, order, stable=stable, descending=descending)


def flatten(self: Array, order: str = "C") -> Array:
    """All elements along one axis.

    >>> tnp.asarray([[1, 2], [3, 4]]).flatten()
    Array([1, 2, 3, 4], i64)
    """
    return manipulation.ravel(self, order)


def block_until_ready(self: Array) -> Array:
    """The array, when it has been computed: on a CPU it always has.

    >>> tnp.arange(3).block_until_ready()
    Array([0, 1, 2], i64)
    """
    return self


def devices(self: Array) -> set[Any]:
    """Where the array lives, as a set of one.

    >>> tnp.arange(3).devices()
    {CpuDevice(0)}
    """
    return {device_of(self)}


def to_device(self: Array, device: Any, /, *, stream: Any = None) -> Array:
    """The array on a device. DeviceError if that is not there.

    >>> tnp.arange(3).to_device("cpu")
    Array([0, 1, 2], i64)
    """
    del stream
    check_device(device, "to_device")
    return self


def nbytes(self: Array) -> int:
    """How many bytes the elements take.

    >>> tnp.zeros((2, 3)).nbytes
    48
    """
    return self.size * int(self.dtype.itemsize)


def itemsize(self: Array) -> int:
    """How many bytes one element takes.

    >>> tnp.zeros((2, 3)).itemsize
    8
    """
    return int(self.dtype.itemsize)


def compress(self: Array, condition: Any, axis: int | None = None) -> Array:
    """The slices along an axis, or the elements, where a known vector of bools is true.

    >>> tnp.asarray([1, 2, 3]).compress([True, False, True])
    Array([1, 3], i64)
    """
    return taking.compress(condition, self, axis)


def round(self: Array, ndigits: int | None = None) -> Array:
    """As `tracer.numpy.round`, for Python's `round`.

    >>> round(tnp.asarray([1.25, 2.71]), 1)
    Array([1.2, 2.7], f64)
    """
    return rounding.round(self, ndigits or 0)
