"""Copies of NumPy arrays, large ones aligned to pages as large results are.

NumPy's own memory begins 16 bytes into a cache line. So every vector load, or every second one, spans two lines.
Products with vectors take an eighth longer then.
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
    """Return a C-contiguous copy in the dtype, aligned to a page if large."""
    if value.size * dtype.itemsize < result_pool.LARGE_BYTES or capi.why_not() is not None:
        return np.array(value, dtype, order="C", copy=True)
    support.support()  # loads the handler's functions
    use = _set_handler()
    before = use(result_pool.handler())
    try:
        return np.array(value, dtype, order="C", copy=True)
    finally:
        use(before)


@once
def _set_handler() -> Any:
    """Return PyDataMem_SetHandler, which sets the handler of this thread's context and returns the previous one."""
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(capi.entry_symbols()["PyDataMem_SetHandler"])
