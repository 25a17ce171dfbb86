"""Copies of NumPy's arrays, as arrays of ours: large ones begin where pages do, as large results do.

NumPy's own memory begins 16 bytes into a cache line, so that every second or every load of a vector takes parts of two
lines; products with vectors, for one, take an eighth longer then.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.ir.dtypes import DType
from tracer.lazy import LazyModule
from tracer.once import once
from tracer.runtime.native import result_pool

if TYPE_CHECKING:
    from tracer.runtime.native import capi, support
else:
    capi, support = LazyModule("tracer.runtime.native.capi"), LazyModule("tracer.runtime.native.support")


def copied(value: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """A copy of that dtype, C-contiguous."""
    if value.size * dtype.itemsize < result_pool.LEAST or capi.why_not() is not None:
        return np.array(value, dtype, order="C", copy=True)
    support.support()  # which has the functions of the memory
    use = _set_handler()
    before = use(result_pool.handler())
    try:
        return np.array(value, dtype, order="C", copy=True)
    finally:
        use(before)


@once
def _set_handler() -> Any:
    """PyDataMem_SetHandler, for this thread's context; returns the handler before."""
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(capi.entry_symbols()["PyDataMem_SetHandler"])
