"""Stand-in for CuPy with one card, whose kernels the simulator runs, and whose errors tests choose."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace, TracebackType
from typing import Any

import numpy as np
import pytest

from tracer.runtime.cuda import devices
from tracer.runtime.cuda.simulator.kernels import built
from tracer.runtime.cuda.simulator.memory import DeviceMemory

_KINDS = {name: name.replace("i", "int").replace("u", "uint").replace("f", "float") for name in (
    "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64",
)} | {"f16": "uint16", "bf16": "uint16"}  # fmt: skip


class CudaError(RuntimeError):
    """Error of CUDA's runtime, with its number."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class DriverError(CudaError):
    """Error of CUDA's driver."""


class NoMemoryError(MemoryError):
    """CuPy's OutOfMemoryError."""


class CudaArray(np.ndarray[Any, Any]):
    """CuPy's array."""

    device = SimpleNamespace(id=0)

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)

    def set(self, values: Any) -> None:
        self[...] = values

    def get(self) -> np.ndarray[Any, Any]:
        return np.array(self)

    def __dlpack_device__(self) -> tuple[int, int]:  # type: ignore[override]
        return 2, 0

    def __dlpack__(self, **options: Any) -> Any:  # type: ignore[override]
        return ("capsule", self.ctypes.data, options["stream"])

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.__array_interface__, "version": 3, "stream": 1}


class Card:
    """The card. failing: the error that its calls raise from now on. free: bytes that may still be allocated."""

    def __init__(self, *, free: int = 1 << 40) -> None:
        self.failing: Exception | None = None
        self.starting: Exception | None = None
        self.free = free
        self.cupy = ModuleType("cupy")
        self.cupy.__spec__ = ModuleSpec("cupy", None)
        vars(self.cupy).update(
            cuda=SimpleNamespace(
                runtime=SimpleNamespace(
                    getDeviceCount=self._count, memGetInfo=lambda: (self.free, 1 << 40), CUDARuntimeError=CudaError,
                    getDeviceProperties=lambda ordinal: {"name": b"Stand-in"},
                ),
                driver=SimpleNamespace(CUDADriverError=DriverError),
                memory=SimpleNamespace(OutOfMemoryError=NoMemoryError), Device=lambda ordinal: _Device(self, ordinal),
            ),
            empty=self._empty, copyto=np.copyto, RawModule=lambda code, **options: _Module(self, code),
            ascontiguousarray=lambda x: x, from_dlpack=lambda x: x,
            asarray=lambda x: np.asarray(x.array).view(CudaArray),
            get_default_memory_pool=lambda: SimpleNamespace(used_bytes=lambda: 512),
        )  # fmt: skip

    def check(self) -> None:
        """Raise the error, if there is one."""
        if self.failing is not None:
            raise self.failing

    def _count(self) -> int:
        if self.starting is not None:
            raise self.starting
        return 1

    def _empty(self, size: int, dtype: Any) -> Any:
        self.check()
        if size > self.free:
            raise NoMemoryError
        self.free -= size
        return np.empty(size, dtype).view(CudaArray)


class _Device:
    compute_capability = "90"

    def __init__(self, card: Card, ordinal: int) -> None:
        self._card = card
        self.id = ordinal

    def __enter__(self) -> None: ...
    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def synchronize(self) -> None:
        self._card.check()


class _Module:
    def __init__(self, card: Card, text: str) -> None:
        self._card = card
        self._kernels = built(text)

    def get_function(self, name: str) -> Any:
        kinds = [re.sub(r"const |\*.*", "", p.kind) for p in self._kernels._parameters[name]]

        def launch(grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any]) -> None:
            given = [_memory(x, kind) for x, kind in zip(arguments, kinds, strict=True)]
            self._kernels.launch(name, grid, block, given)

        return launch


def installed(monkeypatch: pytest.MonkeyPatch, card: Card | None = None) -> Card:
    """Return a card, which is the machine's during a test."""
    card = card or Card()
    monkeypatch.setitem(sys.modules, "cupy", card.cupy)
    monkeypatch.setattr(devices, "_devices", {})
    return card


def _memory(x: Any, kind: str) -> Any:
    if not isinstance(x, CudaArray):
        return x
    values = np.asarray(x)
    return DeviceMemory(values.view(_KINDS[kind]), np.ones(values.nbytes, np.uint8))
