"""Methods and attributes of `Array` that are absent from `tracer.numpy`, or have other signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer.errors import ShapeError, TracerFloatError, message
from tracer.ir.dtypes import BOOL, DType, is_complex, real_dtype
from tracer.ir.types import is_differentiable
from tracer.numpy.core import dtypes as dtypes_
from tracer.numpy.core.conversion import dtype_of_argument
from tracer.numpy.core.fast_asarray import known_value
from tracer.numpy.elementwise import arithmetic, logic, rounding
from tracer.numpy.shapes import joining, manipulation, take
from tracer.primitives.elementwise.complex import complex as join
from tracer.primitives.elementwise.conversion import bitcast_convert_type
from tracer.runtime.system.devices import device_of, put_on
from tracer.runtime.values.fresh_handles import another, makes_new
from tracer.trace.array import Array
from tracer.trace.device_value import DeviceValue
from tracer.trace.source import here


def reshape(self: Array, *shape: Any, order: str = "C", copy: bool | None = None) -> Array:
    """Return the elements in another shape, given as a tuple or as integers.

    >>> tnp.arange(6).reshape(2, -1).shape
    (2, 3)
    """
    return manipulation.reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def transpose(self: Array, *axes: Any) -> Array:
    """Return the array with its axes permuted, given as a tuple or as integers; by default reversed.

    >>> tnp.ones((2, 3, 4)).transpose(2, 0, 1).shape
    (4, 2, 3)
    """
    if len(axes) == 1 and (axes[0] is None or np.ndim(axes[0])):
        return manipulation.transpose(self, axes[0])
    return manipulation.transpose(self, axes or None)


def astype(
    self: Array, dtype: Any, order: Any = None, casting: Any = None, subok: Any = None, copy: bool = True, *,
    device: Any = None,
) -> Array:  # fmt: skip
    """Cast the array to another dtype. Raises DTypeError for a cast that `casting` forbids.

    >>> tnp.asarray([1.7, -1.7]).astype(int)
    Array([ 1, -1], i64)
    """
    del order, subok, copy
    result = dtypes_.astype(put_on(self, device, "astype"), dtype)
    if casting is not None:
        dtypes_.check_cast("astype", self, result.dtype, casting)
    return result


def item(self: Array, *args: Any) -> Any:
    """Return one element as a Python scalar: the only one, or the one at an index.

    Raises TracerFloatError for floats under differentiation, because the gradient would be lost.

    >>> tnp.asarray([[1, 2], [3, 4]]).item(1, 0)
    3
    """
    chosen = self
    if not args and self._is_plain_number():
        return self._value.item()
    known = known_value(self) if args else None
    if known is not None and known.dtype.kind in "fciub":
        try:
            return known.item(*args)
        except (IndexError, TypeError, ValueError):
            pass  # reported below
    if args:
        index = args[0] if len(args) == 1 else args
        chosen = manipulation.ravel(self)[index] if isinstance(index, int) and self.ndim != 1 else self[index]
    return chosen._scalar(TracerFloatError, "item", differentiated=not is_differentiable(chosen.type)).item()


def tolist(self: Array) -> Any:
    """Return the elements as nested lists of Python scalars.

    >>> tnp.asarray([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    known = known_value(self)
    return (np.asarray(self) if known is None else known).tolist()


def to_numpy(self: Array) -> np.ndarray[Any, Any]:
    """Return the elements as a read-only NumPy array. Plotting libraries look for this name.

    >>> tnp.arange(3).to_numpy()
    array([0, 1, 2])
    """
    return np.asarray(self)


def tobytes(self: Array, order: Any = "C") -> bytes:
    """Return the bytes of the elements in row-major order.

    >>> tnp.asarray([1, 2], "uint8").tobytes()
    b'\\x01\\x02'
    """
    return np.asarray(self).tobytes(order)


def clip(self: Array, min: Any = None, max: Any = None) -> Array:
    """Limit the elements to the interval from `min` to `max`.

    >>> tnp.arange(5).clip(1, 3)
    Array([1, 1, 2, 3, 3], i64)
    """
    return arithmetic.clip(self, min, max)


@makes_new
def view(self: Array, dtype: Any = None) -> Array:
    """Return the bytes read as another dtype; without one, the array behind another handle.

    The size of the last axis changes with the itemsize. Raises ShapeError if the bytes do not divide evenly, and
    without an axis if the itemsize changes. Bytes read as bools are true unless they are 0.

    >>> tnp.asarray([1.0], "float32").view("int32")
    Array([1065353216], i32)
    """
    if dtype is None:
        return another(self)
    wanted = dtype_of_argument("view", dtype)
    if wanted == self.dtype:
        return another(self)
    old, new = self.dtype.itemsize, wanted.itemsize
    if not self.ndim and old != new:
        raise ShapeError(
            message(
                f"view{here()}: an array without axes cannot change its itemsize",
                f"got {self.type} as {wanted}",
                help="give it an axis, x[None].view(dtype)",
            )
        )
    if self.ndim and (self.shape[-1] * old) % new:
        raise ShapeError(
            message(
                f"view{here()}: the last axis must hold whole elements of {wanted}, of {new} bytes",
                f"got {self.type}",
                help=f"its size must be a multiple of {new // old}",
            )
        )
    if is_complex(wanted):
        halves = _regrouped(self, real_dtype(wanted))
        parts = manipulation.reshape(halves, (*halves.shape[:-1], halves.shape[-1] // 2, 2) if self.ndim else (2,))
        return join(parts[..., 0], parts[..., 1])
    return manipulation.reshape(found, ()) if (found := _regrouped(self, wanted)).ndim > self.ndim else found


def _regrouped(x: Array, wanted: DType) -> Array:
    """Return the bytes along the last axis as elements of a real dtype; without axes, as a vector if needed."""
    if is_complex(x.dtype):
        halves = joining.stack([rounding.real(x), rounding.imag(x)], -1)
        return _regrouped(manipulation.reshape(halves, (*x.shape[:-1], 2 * x.shape[-1]) if x.ndim else (2,)), wanted)
    if x.dtype == BOOL:
        x = dtypes_.astype(x, np.uint8)
    if wanted == BOOL:
        return logic.not_equal(_regrouped(x, np.dtype(np.uint8)), 0)
    old, new = x.dtype.itemsize, wanted.itemsize
    if old == new:
        return x if x.dtype == wanted else bitcast_convert_type(x, wanted)
    if not x.ndim:
        return manipulation.reshape(bitcast_convert_type(x, wanted), (-1,))
    sizes = (*x.shape[:-1], x.shape[-1] * old // new)
    if old < new:
        return bitcast_convert_type(manipulation.reshape(x, (*sizes, new // old)), wanted)
    return manipulation.reshape(bitcast_convert_type(x, wanted), sizes)


def flatten(self: Array, order: str = "C") -> Array:
    """Return all elements along one axis.

    >>> tnp.asarray([[1, 2], [3, 4]]).flatten()
    Array([1, 2, 3, 4], i64)
    """
    return manipulation.ravel(self, order)


def block_until_ready(self: Array) -> Array:
    """Return the array once it is computed, which it always is on a CPU. Raises faults of programs on a device.

    >>> tnp.arange(3).block_until_ready()
    Array([0, 1, 2], i64)
    """
    if isinstance(self._value, DeviceValue):
        self._value.wait()
    return self


def devices(self: Array) -> set[Any]:
    """Return the device of the array, as a set of one.

    >>> tnp.arange(3).devices()
    {CpuDevice(0)}
    """
    return {device_of(self)}


def to_device(self: Array, device: Any, /, *, stream: Any = None) -> Array:
    """Return the array on a device. Raises DeviceError if the device does not exist.

    >>> tnp.arange(3).to_device("cpu")
    Array([0, 1, 2], i64)
    """
    del stream
    return put_on(self, device, "to_device")


def nbytes(self: Array) -> int:
    """Size of the elements in bytes.

    >>> tnp.zeros((2, 3)).nbytes
    48
    """
    return self.size * int(self.dtype.itemsize)


def itemsize(self: Array) -> int:
    """Size of one element in bytes.

    >>> tnp.zeros((2, 3)).itemsize
    8
    """
    return int(self.dtype.itemsize)


def compress(self: Array, condition: Any, axis: int | None = None) -> Array:
    """Return the slices along an axis, or the elements, where a concrete vector of bools is true.

    >>> tnp.asarray([1, 2, 3]).compress([True, False, True])
    Array([1, 3], i64)
    """
    return take.compress(condition, self, axis)


def round(self: Array, ndigits: int | None = None) -> Array:
    """Return the array rounded as by `tracer.numpy.round`, for Python's `round`.

    >>> round(tnp.asarray([1.25, 2.71]), 1)
    Array([1.2, 2.7], f64)
    """
    return rounding.round(self, ndigits or 0)
