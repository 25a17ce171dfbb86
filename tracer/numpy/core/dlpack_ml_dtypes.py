"""The dtype in a DLPack capsule: NumPy reads and writes none of ml_dtypes', so bytes travel, and their name is changed.

A capsule points to a struct whose layout `dlpack.h` fixes for the versions 0 and 1. The tensor's dtype in it is a code
and a number of bits, one byte each.
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

# Where the tensor's dtype is: behind its pointer, device and rank, and these in a versioned capsule behind the version,
# two pointers and the flags.
_PLACES = {b"dltensor": 20, b"dltensor_versioned": 52}


def has_code(dtype: DType) -> bool:
    """Whether DLPack has a code for the dtype that NumPy does not know."""
    return dtype in _CODES


def bytes_of(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements as unsigned integers of their size."""
    return value.view(f"u{value.dtype.itemsize}")


def renamed(capsule: Any, dtype: DType) -> Any:
    """The capsule of `bytes_of` an array, which now says what they are."""
    _named(capsule)[0] = _CODES[dtype]
    return capsule


class Bytes:
    """An array of another library by its capsule, which says unsigned integers in place of a dtype that NumPy lacks.

    dtype: which dtype that is; None where it is none of ours. The capsule is the consumer's own.
    """

    def __init__(self, x: Any) -> None:
        try:
            self._capsule = x.__dlpack__(max_version=(1, 0))
        except TypeError:  # older than versions
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
    """The two bytes of a capsule that say its dtype."""
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    name = name_of(capsule)
    return (ctypes.c_uint8 * 2).from_address(pointer_of(capsule, name) + _PLACES[name])
