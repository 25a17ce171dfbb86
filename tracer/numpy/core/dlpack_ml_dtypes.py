"""DLPack of ml_dtypes' dtypes, which NumPy cannot export: their bytes travel, and the capsule's dtype is replaced.

A capsule points to a struct whose layout `dlpack.h` fixes for the versions 0 and 1. It holds the tensor's dtype as a
code and a number of bits, one byte each.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from tracer.ir.dtypes import DType

_UNSIGNED = 1
_CODES = {
    np.dtype(dtype): code
    for dtype, code in (
        (ml_dtypes.bfloat16, 4), (ml_dtypes.float8_e3m4, 7), (ml_dtypes.float8_e4m3, 8),
        (ml_dtypes.float8_e4m3b11fnuz, 9), (ml_dtypes.float8_e4m3fn, 10), (ml_dtypes.float8_e4m3fnuz, 11),
        (ml_dtypes.float8_e5m2, 12), (ml_dtypes.float8_e5m2fnuz, 13), (ml_dtypes.float8_e8m0fnu, 14),
    )
}  # fmt: skip
_DTYPES = {(code, 8 * dtype.itemsize): dtype for dtype, code in _CODES.items()}

# Byte offset of the tensor's dtype: after its pointer, device and rank. In a versioned capsule the version, two
# pointers and the flags precede these.
_OFFSETS = {b"dltensor": 20, b"dltensor_versioned": 52}


def has_code(dtype: DType) -> bool:
    """Return whether DLPack has a code for a dtype that NumPy cannot export."""
    return dtype in _CODES


def bytes_of(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the elements as unsigned integers of their size."""
    return value.view(f"u{value.dtype.itemsize}")


def renamed(capsule: Any, dtype: DType) -> Any:
    """Replace the dtype in a capsule of `bytes_of` an array. Returns the capsule."""
    _named(capsule)[0] = _CODES[dtype]
    return capsule


class Bytes:
    """Array of another library whose capsule declares unsigned integers instead of a dtype that NumPy lacks.

    dtype: the replaced dtype; None if it is not supported. The consumer owns the capsule.
    """

    def __init__(self, x: Any) -> None:
        try:
            self._capsule = x.__dlpack__(max_version=(1, 0))
        except TypeError:  # older than versioned capsules
            self._capsule = x.__dlpack__()
        self._device = x.__dlpack_device__()
        name = _named(self._capsule)
        self.dtype = _DTYPES.get((name[0], name[1]))
        name[0] = _UNSIGNED

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> Any:
        return self._device


def _named(capsule: Any) -> Any:
    """Return the two bytes of a capsule that hold its dtype."""
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    name = name_of(capsule)
    return (ctypes.c_uint8 * 2).from_address(pointer_of(capsule, name) + _OFFSETS[name])
