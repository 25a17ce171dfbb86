"""AMX: whether this process multiplies matrices of bf16 in its tiles (see `bf16_amx`).

It does if CPUID has them, Linux grants them, and a product of integers came out right.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

from tracer.codegen.llvm.toolchain.target import features

_REQUEST_PERMISSION: Final = 0x1023  # ARCH_REQ_XCOMP_PERM of Linux's arch_prctl
_ARCH_PRCTL: Final = 158
_TILE_DATA: Final = 18  # number of the tiles' component of the processor's state

_WRONG: Final[list[str]] = []
"""Reasons not to use this machine's tiles, found at run time."""


def has_tiles() -> bool:
    """Whether the machine has AMX's products of bf16, and its system keeps the registers."""
    found = dict(features())
    return all(found.get(name, False) for name in ("avx512bf16", "amx-tile", "amx-bf16"))


@cache
def permitted() -> bool:
    """Whether the system lets this process use tiles.

    Linux must be asked once; children of a fork inherit the permission.
    """
    if sys.platform != "linux":
        return False
    syscall = ctypes.CDLL(None).syscall
    syscall.restype = ctypes.c_long
    return int(syscall(*map(ctypes.c_long, (_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA)))) == 0


def in_use() -> bool:
    """Whether this process multiplies in tiles."""
    return not _WRONG and has_tiles() and permitted()


def tried_out(product: Callable[..., None]) -> bool:
    """Whether the product that `in_use` chose is right. Tiles are no longer in use if theirs is not."""
    if in_use() and not agrees(product):
        _WRONG.append("a product of whole numbers")
        return False
    return True


def agrees(product: Callable[..., None]) -> bool:
    """Whether a product of bf16 equals NumPy's, for integers, whose sums are exact in any order.

    m, n and k leave a remainder in every direction.
    """
    m, n, k = 50, 90, 1090
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, shape).astype("f4") for shape in ((m, k), (k, n)))
    x, y = ((matrix.view("u4") >> 16).astype("u2") for matrix in (a, b))
    out: np.ndarray[Any, Any] = np.full((m, n), np.nan, "f4")
    product(x.ctypes.data, y.ctypes.data, out.ctypes.data, m, n, k, k, 1, n, 1, n, None)
    return np.array_equal(out, a @ b)
