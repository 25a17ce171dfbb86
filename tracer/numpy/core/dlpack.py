"""DLPack: sharing memory with other libraries in both directions, without a copy where possible.

An exported capsule is marked as read-only if its version supports that. It keeps the memory alive until the consumer
releases it. Constants are shared by programs, so they are copied unless the caller forbids it. Some consumers ignore
the mark and write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.errors import ArgumentError, DeviceError, DTypeError, ExportError, TracerArrayError, message
from tracer.ir.dtypes import DType
from tracer.lazy import LazyModule
from tracer.primitives.base.shapes import copy as copied
from tracer.runtime.system.devices import made, others
from tracer.runtime.values.fresh_handles import another
from tracer.trace.array import KEY_DTYPE, Array
from tracer.trace.convert import as_array
from tracer.trace.device_value import DeviceValue
from tracer.trace.source import here

if TYPE_CHECKING:
    from tracer.numpy.core import dlpack_ml_dtypes
else:
    dlpack_ml_dtypes = LazyModule("tracer.numpy.core.dlpack_ml_dtypes")

CPU = (1, 0)  # DLPack's device type and id
_CUDA = 2

_VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # whether NumPy makes capsules with a read-only flag


def dlpack(
    self: Array, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """Return the array's memory as a DLPack capsule for another library.

    max_version: the newest capsule version that the consumer understands, as (major, minor); before (1, 0) or without
    it, the capsule has no read-only flag. copy: True to copy, False never to copy, None to copy constants only. Raises
    ExportError for another device, a stream, and a dtype without a DLPack code. It also does for a constant that may
    neither be copied nor marked read-only. Raises TracerArrayError for traced arrays, which have no memory.
    """
    value = _memory_of(self)
    if type(value) is not np.ndarray:
        if not _is_numpys(self.dtype):
            raise ExportError(message(f"DLPack{here()}: CuPy does not export this dtype", f"got {self.type}"))
        return value.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
    _check_request(self, stream, dl_device)
    if not _is_numpys(self.dtype):
        capsule = _exported(self, dlpack_ml_dtypes.bytes_of(value), max_version, copy)
        return dlpack_ml_dtypes.renamed(capsule, self.dtype)
    return _exported(self, value, max_version, copy)


def _memory_of(x: Array) -> Any:
    """Return NumPy's array with the elements, or CuPy's on a card. Waits for a device, and raises its faults."""
    if isinstance(x._value, DeviceValue):
        return x._value.place.shared(x._value)
    if x._trace is not None:
        raise TracerArrayError(
            message(f"DLPack{here()}: a traced array has no memory", f"got {x.type}", help="return it first")
        )
    return x._value


def cuda_array_interface(self: Array) -> dict[str, Any]:
    """CUDA array interface, version 3, of an array on a card, marked as read-only; absent on other devices.

    >>> hasattr(tnp.zeros(3), "__cuda_array_interface__")
    False
    """
    held = self._value
    found = getattr(held.place.shared(held), "__cuda_array_interface__", None) if type(held) is DeviceValue else None
    if found is None:
        raise AttributeError("__cuda_array_interface__ is there for arrays on a CUDA device")
    return {**found, "data": (found["data"][0], True), "stream": None}  # the value was waited for


def _exported(x: Array, value: np.ndarray[Any, Any], max_version: Any, copy: bool | None) -> Any:
    constant = not value.flags.writeable
    if max_version is None or max_version[0] < 1 or not _VERSIONED:
        if constant and copy is False:
            raise ExportError(
                message(
                    f"DLPack{here()}: a constant cannot be shared by a capsule without a read-only flag",
                    f"got {x.type}, max_version={max_version}, copy=False",
                    help="ask for max_version=(1, 0), or leave copy out",
                )
            )
        return (value.copy() if copy or constant else value).__dlpack__()
    if copy or (constant and copy is None):
        return value.__dlpack__(max_version=max_version, copy=True)
    view = value.view()
    view.flags.writeable = False
    return view.__dlpack__(max_version=max_version, copy=copy)


def _check_request(x: Array, stream: Any, dl_device: Any) -> None:
    if stream is not None:
        raise ExportError(message(f"DLPack{here()}: arrays on a CPU have no stream", f"got stream={stream!r}"))
    if dl_device is not None and tuple(dl_device) != CPU:
        raise ExportError(
            message(
                f"DLPack{here()}: the array is on the CPU, which is device {CPU}",
                f"got dl_device={tuple(dl_device)}",
                help="move it in the other library",
            )
        )
    if x.dtype is KEY_DTYPE:
        raise ExportError(
            message(f"DLPack{here()}: random keys have no memory to share", help="share tracer.random.key_data(key)")
        )
    if not _is_numpys(x.dtype) and not dlpack_ml_dtypes.has_code(x.dtype):
        raise ExportError(
            message(
                f"DLPack{here()}: elements of fewer than 8 bits cannot be exported, because each is stored in a byte",
                f"got {x.type}",
                help="cast it, or share x.astype(...) of a wider dtype",
            )
        )


def _is_numpys(dtype: DType) -> bool:
    """Return whether NumPy exports the dtype."""
    return dtype.kind in "biufc" and dtype.isbuiltin == 1


def dlpack_device(self: Array) -> tuple[int, int]:
    """Return DLPack's device type and id: (1, 0) for memory of the host, such as the simulated device's."""
    held = self._value
    if type(held) is not DeviceValue:
        return CPU
    kind, number = held.place.shared(held).__dlpack_device__()
    return int(kind), int(number)


def speaks_dlpack_only(x: Any) -> bool:
    """Return whether the value is imported by DLPack or from a CUDA device: `__array__` is absent, or would copy."""
    if isinstance(x, Array):
        return False
    return (hasattr(x, "__dlpack__") and not hasattr(x, "__array__")) or hasattr(x, "__cuda_array_interface__")


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Import an array from another library, without a copy if its memory is in C order. Do not write to it afterwards.

    x: any shape; device: where the array is to be, by default where it is; copy: True to copy, False to raise
    ExportError where a copy is needed. Returns x's shape and dtype. Raises DeviceError for memory of devices that are
    not there, DTypeError for an unsupported dtype.

    >>> tnp.from_dlpack(np.arange(3.0))
    Array([0., 1., 2.], f64)
    """
    if isinstance(x, Array):
        return made(copied(x) if copy else another(x), device, "from_dlpack")
    if _is_on_cuda(x):
        return made(_of_cuda(x), device, "from_dlpack")
    if not hasattr(x, "__dlpack__"):
        raise ArgumentError(
            message(
                f"from_dlpack{here()} takes an array with __dlpack__",
                f"got {type(x).__name__}",
                help="tracer.numpy.asarray takes numbers and lists",
            )
        )
    value = x if isinstance(x, np.ndarray) else _viewed(x)
    if copy is False and not (value.flags.c_contiguous and value.flags.aligned and value.dtype.isnative):
        raise ExportError(
            message(
                f"from_dlpack{here()}: arrays are in C order, aligned and native; this one must be copied",
                f"got strides {value.strides} for shape {value.shape}, and copy=False",
                help="leave copy out",
            )
        )
    return made(as_array(value, "from_dlpack", copy=bool(copy)), device, "from_dlpack")


def _of_cuda(x: Any) -> Array:
    try:
        found: Array = others.module.adopted(x)
    except DeviceError as error:
        reasons = [line.strip() for line in str(error).splitlines()]
    else:
        return found
    raise DeviceError(message(f"from_dlpack{here()}: {type(x).__name__} lies on a CUDA device", *reasons))


def _is_on_cuda(x: Any) -> bool:
    """Whether another library's array lies on a CUDA device."""
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        device = x.__dlpack_device__()
        return isinstance(device, tuple) and len(device) == 2 and device[0] == _CUDA
    return hasattr(x, "__cuda_array_interface__")


def _viewed(x: Any) -> np.ndarray[Any, Any]:
    if not hasattr(x, "__dlpack_device__"):
        raise ArgumentError(message(f"from_dlpack{here()}: {type(x).__name__} has no __dlpack_device__"))
    device = x.__dlpack_device__()
    if not (isinstance(device, tuple) and len(device) == 2 and all(isinstance(part, int) for part in device)):
        raise ExportError(
            message(
                f"from_dlpack{here()}: {type(x).__name__}.__dlpack_device__ gives a type and a number",
                f"got {device!r}",
                help="return (1, 0) for the CPU",
            )
        )
    kind, number = map(int, device)
    if kind != CPU[0]:
        raise DeviceError(
            message(
                f"from_dlpack{here()}: only the CPU's memory can be shared",
                f"got {type(x).__name__} on DLPack's device ({kind}, {number})",
                help="move it to the CPU in its own library, as x.cpu()",
            )
        )
    try:
        return np.from_dlpack(x)
    except ValueError as error:
        if "PyCapsule" not in str(error):
            raise
        raise ExportError(
            message(
                f"from_dlpack{here()}: {type(x).__name__}.__dlpack__ gave no capsule, or one that was taken before",
                help="a capsule is taken once: give from_dlpack the array itself, which makes a capsule for each call",
            )
        ) from None
    except RuntimeError as error:
        if "dtype" not in str(error):
            raise
    theirs = dlpack_ml_dtypes.Bytes(x)
    if theirs.dtype is None:
        raise DTypeError(
            message(
                f"from_dlpack{here()}: this dtype is not supported",
                f"got {getattr(x, 'dtype', type(x).__name__)}",
                help="cast it, or share its bits as an integer dtype and .view() them here",
            )
        )
    return np.from_dlpack(theirs).view(theirs.dtype)
