"""AMX's instructions on bf16 in NumPy, as functions that compiled code calls in their place.

Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: LDTILECFG, TILEZERO, TILELOADD, TDPBF16PS,
TILESTORED, TILERELEASE. Sums are rounded from float64, which differs from one rounding only where that is a tie.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
INSTRUCTIONS = {
    "ldtilecfg": (ctypes.c_void_p,),
    "tilezero": (ctypes.c_int8,),
    "tileloadd64": (ctypes.c_int8, ctypes.c_void_p, ctypes.c_int64),
    "tdpbf16ps": (ctypes.c_int8, ctypes.c_int8, ctypes.c_int8),
    "tilestored64": (ctypes.c_int8, ctypes.c_void_p, ctypes.c_int64),
    "tilerelease": (),
}


class TileUnit:
    """Eight tiles, and how often each instruction ran. Misuse, which would raise #UD or #GP, is kept in `faults`.

    flips: multiply a's odd elements with b's even ones, as a wrong machine might.
    """

    def __init__(self, *, flips: bool = False) -> None:
        self.flips = flips
        self.rows: list[int] | None = None
        self.bytes: list[int] = []
        self.tiles = np.zeros((8, 16, 64), "u1")
        self.counts = dict.fromkeys(INSTRUCTIONS, 0)
        self.faults: list[str] = []
        self.functions = {name: self._function(name, types) for name, types in INSTRUCTIONS.items()}

    def text(self, text: str) -> str:
        """Kernels' text with calls of these functions in place of instructions."""
        for name in INSTRUCTIONS:
            text = text.replace(f"@llvm.x86.{name}(", f"@model.{name}(")
        return text

    def symbols(self) -> dict[str, int]:
        """The functions' addresses."""
        return {f"model.{name}": ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in self.functions.items()}

    def _function(self, name: str, types: tuple[Any, ...]) -> Any:
        def run(*given: Any) -> None:
            self.counts[name] += 1
            try:
                getattr(self, f"_{name}")(*given)
            except (AssertionError, IndexError, TypeError) as error:
                self.faults.append(f"{name}{given}: {error!r}")

        return ctypes.CFUNCTYPE(None, *types)(run)

    def _ldtilecfg(self, address: int) -> None:
        word = bytes((ctypes.c_uint8 * 64).from_address(address))
        assert word[0] == 1, "palette"
        assert not any(word[1:16]), "start row and reserved bytes"
        assert not any(word[32:48]), "reserved bytes"
        assert not any(word[56:]), "reserved bytes"
        self.bytes = np.frombuffer(word[16:32], "u2").tolist()
        self.rows = list(word[48:56])
        assert all(n <= 64 for n in self.bytes)
        assert all(n <= 16 for n in self.rows)
        self.tiles[:] = 0

    def _tilerelease(self) -> None:
        self.rows = None
        self.tiles[:] = 0

    def _tilezero(self, tile: int) -> None:
        self._size(tile)
        self.tiles[tile] = 0

    def _tileloadd64(self, tile: int, address: int, stride: int) -> None:
        rows, width = self._size(tile)
        self.tiles[tile] = 0
        for row in range(rows):
            self.tiles[tile, row, :width] = (ctypes.c_uint8 * width).from_address(address + row * stride)

    def _tilestored64(self, tile: int, address: int, stride: int) -> None:
        rows, width = self._size(tile)
        for row in range(rows):
            ctypes.memmove(address + row * stride, self.tiles[tile, row].tobytes(), width)

    def _tdpbf16ps(self, target: int, left: int, right: int) -> None:
        (rows, width), (a_rows, a_width), (b_rows, b_width) = map(self._size, (target, left, right))
        assert len({target, left, right}) == 3, "one tile for two operands"
        assert (rows, width, a_width // 4) == (a_rows, b_width, b_rows), "sizes"
        a, b = (_floats(self.tiles[tile]) for tile in (left, right))
        totals = np.zeros((2, 16, 16))
        for k in range(a_width // 4):
            for part in range(2):
                x = a[:, 2 * k + (1 - part if self.flips else part)]
                totals[part] = _rounded(totals[part] + np.multiply.outer(x, b[k, part::2]))
        both = _rounded(totals[0] + totals[1])
        old = _flushed(self.tiles[target].view("f4"))
        sums = _rounded(old + both).astype("f4")
        self.tiles[target, :rows, :width] = sums.view("u1")[:rows, :width]

    def _size(self, tile: int) -> tuple[int, int]:
        assert self.rows is not None, "no configuration"
        return self.rows[tile], self.bytes[tile]


def _floats(tile: Array) -> Array:
    """Rows of bf16 as float64, subnormal ones as zeros."""
    return _flushed((tile.view("u2").astype("u4") << 16).view("f4"))


def _flushed(x: Array) -> Array:
    return np.where(np.abs(x) < np.finfo("f4").tiny, np.copysign(0, x), x).astype("f8")


def _rounded(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return _flushed(x.astype("f4"))
