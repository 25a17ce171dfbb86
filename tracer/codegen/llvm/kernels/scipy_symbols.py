"""Addresses of BLAS and LAPACK in SciPy's Cython modules, and of the switch for BLAS's threads."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any


def capsule_address(module: str, name: str) -> int:
    """Return the address of a C function that a Cython module exports."""
    capsule = _exporting(module).__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get_pointer(capsule, get_name(capsule)))


@cache
def _exporting(name: str) -> Any:
    """Return a Cython module, without importing its package.

    Importing SciPy's package takes five times as long. A later import of the package gets the same module.
    """
    package, _, last = name.rpartition(".")
    root = None if package in sys.modules else find_spec(name.partition(".")[0])
    if root is None or not root.submodule_search_locations:
        return import_module(name)
    folder = Path(root.submodule_search_locations[0], *package.split(".")[1:])
    found = PathFinder.find_spec(last, [str(folder)])
    spec = spec_from_file_location(name, found.origin) if found is not None else None
    if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
        return import_module(name)
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return import_module(name)
    sys.modules.pop(name, None)  # it is not an attribute of its package yet
    return module


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
