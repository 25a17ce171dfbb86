"""The switch for the threads of SciPy's BLAS."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

_threads = ctypes.c_int32(1)  # threads of BLAS for large products; compiled code reads it
_ignore = ctypes.CFUNCTYPE(None, ctypes.c_int32)(lambda count: None)


@cache
def blas_thread_symbols() -> dict[str, int]:
    """Return the symbols by which compiled code sets the number of BLAS threads.

    The setter does nothing where SciPy's BLAS has no such function.
    """
    setter = _ignore
    library = _scipy_openblas()
    if library is not None:
        _threads.value = int(library.scipy_openblas_get_num_threads())
        setter = library.scipy_openblas_set_num_threads
    address = ctypes.cast(setter, ctypes.c_void_p).value
    assert address is not None
    return {"tracer_blas_threads": ctypes.addressof(_threads), "tracer_blas_set_threads": address}


def _scipy_openblas() -> Any:
    """Return the OpenBLAS of SciPy's wheels where it is loaded, else None."""
    folder = Path(import_module("scipy").__file__ or "").resolve().parent.parent / "scipy.libs"
    for path in sorted(folder.glob("libscipy_openblas*")):
        try:
            library = ctypes.CDLL(str(path), mode=getattr(os, "RTLD_NOLOAD", 0) | ctypes.RTLD_LOCAL)
        except OSError:
            continue
        if hasattr(library, "scipy_openblas_set_num_threads"):
            return library
    return None
