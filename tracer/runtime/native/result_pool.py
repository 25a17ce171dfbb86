"""Memory of large results: freed arrays' memory is kept for new ones, by native routines in `ll/`.

The operating system clears fresh memory page by page, which takes longer than most programs need to fill it. NumPy lets
arrays have memory from elsewhere, and returns it there when they are freed (NEP 49). All functions are called with the
GIL, which guards the table.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final, Protocol

from tracer.once import once

LARGE_BYTES: Final = 1 << 20
"""Bytes from which on results are large; smaller ones are in NumPy's memory."""
CAPACITY: Final = 1 << 28
"""Bytes that are kept at most."""
_BLOCKS: Final = 16  # most blocks that are kept
_GRAIN: Final = 1 << 16  # sizes are multiples of it, so that similar arrays reuse each other's memory
_HUGE: Final = 1 << 22  # bytes from which on pages may be huge, as in NumPy


def routine_names() -> tuple[str, ...]:
    """Return the files in `ll/` that make up the pool: the functions that NumPy calls, and the table they share."""
    new = "new_linux" if sys.platform == "linux" else "new"
    return (
        "declarations", "whole", "take_kept", "drop_kept", "find_kept",
        new, "cleared", "resized", "free", "release",
    )  # fmt: skip


def names() -> dict[str, int]:
    """Return the value of every name in the text: sizes in bytes, and the number of blocks."""
    return {
        "Pool.large": LARGE_BYTES, "Pool.capacity": CAPACITY, "Pool.blocks": _BLOCKS, "Pool.grain": _GRAIN,
        "Pool.grain_mask": _GRAIN - 1, "Pool.huge": _HUGE,
    }  # fmt: skip


C_FUNCTIONS: Final = ("realloc", *(("madvise",) if sys.platform == "linux" else ()))
handler_word = ctypes.c_void_p()
"""Address of NumPy's handler, a capsule; compiled code reads it."""


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p), ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )  # fmt: skip


_CAPSULE_NAME: Final = ctypes.create_string_buffer(b"mem_handler")  # the one that NumPy asks for


class Loaded(Protocol):
    """Machine code in memory."""

    def address(self, name: str) -> int:
        """Return the address of a function."""


def install(loaded: Loaded) -> None:
    """Make the handler of the loaded functions.

    Arrays return their memory even while Python shuts down, when modules' globals are gone. So the handler and the code
    get a reference that is never dropped.
    """
    names = ("new", "cleared", "resized", "free")
    handler = _Handler(b"tracer", 1, None, *(loaded.address(f"tracer_result_{name}") for name in names))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    capsule = new(ctypes.addressof(handler), ctypes.addressof(_CAPSULE_NAME), None)
    for thing in (handler, capsule, _CAPSULE_NAME, loaded):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    handler_word.value = id(capsule)
    _capsules.append(capsule)
    _release.append(loaded.address("tracer_result_release"))


_capsules: list[object] = []
_release: list[int] = []


def handler() -> object:
    """Return NumPy's handler, once it is installed."""
    return _capsules[0]


@once
def _release_function() -> ctypes._FuncPointer:
    return ctypes.PYFUNCTYPE(ctypes.c_int64)(_release[0])


def release_kept() -> int:
    """Return the kept memory to the operating system, and its size in bytes."""
    return int(_release_function()()) if _release else 0
