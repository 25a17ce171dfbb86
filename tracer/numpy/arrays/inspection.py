"""Capabilities of `tracer.numpy`, for libraries written against the array API standard."""

from __future__ import annotations

from typing import Any

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.numpy.core.dtypes import isdtype
from tracer.runtime.system.devices import devices, found_device
from tracer.settings import config
from tracer.trace.source import here

_STANDARD: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (dtypes.BOOL, *dtypes.INTEGERS, dtypes.F32, dtypes.F64, *dtypes.COMPLEX)
}  # fmt: skip


class NamespaceInfo:
    """Result of `__array_namespace_info__`: capabilities, devices and dtypes.

    >>> info = tnp.__array_namespace_info__()
    >>> info.default_dtypes()["real floating"]
    dtype('float64')
    """

    __module__ = "tracer.numpy"

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities. Boolean indexing and data-dependent shapes work eagerly, not under `jit`."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Return the device on which arrays are created by default."""
        return found_device(None, "default_device")

    def devices(self) -> tuple[Any, ...]:
        """Return all devices."""
        return tuple(devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Return the dtypes of arrays created without a dtype: `config.default_float` and `default_int`."""
        found_device(device, "default_dtypes")
        real = config.default_float
        return {
            "real floating": real, "complex floating": dtypes.complex_dtype(real),
            "integral": config.default_int, "indexing": dtypes.I64,
        }  # fmt: skip

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """Return the dtypes of one kind, of several, or all. The standard omits float16, bfloat16 and narrow dtypes."""
        found_device(device, "dtypes")
        if kind is None:
            return dict(_STANDARD)
        if not (isinstance(kind, str) or (isinstance(kind, tuple) and all(isinstance(k, str) for k in kind))):
            raise ArgumentError(
                message(f"dtypes{here()}: kind must be the name of a kind, or a tuple of names", f"got {kind!r}")
            )
        return {name: dtype for name, dtype in _STANDARD.items() if isdtype(dtype, kind)}


def namespace_info() -> NamespaceInfo:
    """Return capabilities, devices and dtypes of `tracer.numpy`: the array API's `__array_namespace_info__`.

    Takes no arrays. On the result, `default_dtypes()`, `dtypes()` and `capabilities()` return dictionaries of dtypes,
    and of features that depend on values or shapes.

    >>> tnp.__array_namespace_info__().devices()
    (CpuDevice(0),)
    """
    return NamespaceInfo()


namespace_info.__name__ = "__array_namespace_info__"
