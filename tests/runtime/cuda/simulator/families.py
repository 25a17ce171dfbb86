"""The kernels of families.cu: their arguments on odd sizes, and what NumPy says that they compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tracer.runtime.cuda.simulator.memory import DeviceMemory

TEXT = Path(__file__).with_name("families.cu").read_text(encoding="utf-8")
PRELUDE = Path(__file__).with_name("families_prelude.cu").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Run:
    """A launch: a kernel's name, its grid and block, its arguments, the place of its result, and the result."""

    kernel: str
    grid: int
    block: int
    arguments: Callable[[], list[Any]]
    result: int
    wanted: np.ndarray[Any, Any]
    cooperative: bool = False


def runs(kernel: str) -> list[Run]:
    """Return launches of a kernel, on sizes that leave a rest and sizes that do not."""
    return list(_RUNS[kernel]())


_new, _held = DeviceMemory.empty, DeviceMemory.holding


def _numbers(count: int, kind: str = "f4") -> np.ndarray[Any, Any]:
    """Return small whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(count).integers(-9, 9, count).astype(kind)


def _zeros(count: int, kind: str) -> DeviceMemory:
    return _held(np.zeros(count, kind))


def _scaled() -> Iterator[Run]:
    for n in (1037, 1039, 1024):
        a, b = _numbers(n), _numbers(n)[::-1].copy()
        yield Run("scaled", 3, 128, lambda n=n, a=a, b=b: [_new(n, "f4"), _held(a), _held(b), np.int64(n)], 0, a * b)


def _centred() -> Iterator[Run]:
    a = _numbers(1500).reshape(5, 300)
    wanted = a - (a.sum(1, dtype="f4") / np.float32(300))[:, None]
    yield Run("centred", 2, 128, lambda: [_new(1500, "f4"), _held(a), np.int32(5), np.int32(300)], 0, wanted)


def _turned() -> Iterator[Run]:
    for rows, columns in ((70, 45), (33, 65), (40, 64)):
        a, extents = _numbers(rows * columns).reshape(rows, columns), [np.int32(rows), np.int32(columns)]
        tiles = -(-rows // 32) * -(-columns // 32)
        yield Run("turned", tiles, 256, lambda a=a, e=extents: [_new(a.size, "f4"), _held(a), *e], 0, a.T)


def _total() -> Iterator[Run]:
    a = _numbers(1037)
    yield Run(
        "total", 7, 64, lambda: [_new(1, "f4"), _new(7, "f4"), _zeros(1, "u4"), _held(a), np.int64(1037)], 0,
        a.sum(keepdims=True),
    )  # fmt: skip


def _running() -> Iterator[Run]:
    a = _numbers(500, "i4")
    yield Run(
        "running", 8, 64, lambda: [_new(500, "i4"), _zeros(8, "u8"), _zeros(1, "u4"), _held(a), np.int64(500)], 0,
        np.cumsum(a, dtype="i4"),
    )  # fmt: skip


def _counted() -> Iterator[Run]:
    a = _numbers(500, "i4")
    wanted = np.bincount(a & 15, minlength=16).astype("u4")
    yield Run("counted", 8, 64, lambda: [_zeros(16, "u4"), _held(a), np.int32(500)], 0, wanted)


def _smoothed() -> Iterator[Run]:
    u, rounds = _numbers(90), 4
    wanted = u
    for _ in range(rounds):
        wanted = (np.r_[0, wanted[:-1]] + np.r_[wanted[1:], 1]).astype("f4") * np.float32(0.5)
    yield Run(
        "smoothed", 3, 32, lambda: [_held(u), _new(90, "f4"), _zeros(1, "u4"), np.int32(90), np.int32(rounds)], 0,
        wanted, cooperative=True,
    )  # fmt: skip


_RUNS: Mapping[str, Callable[[], Iterator[Run]]] = {
    "scaled": _scaled, "centred": _centred, "turned": _turned, "total": _total, "running": _running,
    "counted": _counted, "smoothed": _smoothed,
}  # fmt: skip
KERNELS = tuple(_RUNS)
