"""Devices: where arrays live. This version computes on the CPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tracer.errors import DeviceError, message
from tracer.settings import config
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import here


@dataclass(frozen=True, slots=True)
class CpuDevice:
    """The processor, with all its cores."""

    id: int = 0
    platform = "cpu"

    def __repr__(self) -> str:
        return f"CpuDevice({self.id})"

    def __str__(self) -> str:
        return "cpu"


CPU = CpuDevice()


def devices(platform: str | None = None) -> list[CpuDevice]:
    """The devices there are, of all platforms or of one. Raises DeviceError for a platform that is not there.

    platform: "cpu", or None for all.

    >>> tracer.devices()
    [CpuDevice(0)]
    """
    if platform is not None:
        check_device(platform, "devices")
    return [CPU]


def device_put(x: Any, device: Any = None) -> Any:
    """A tree with its leaves as arrays on the device; arrays that are there already stay as they are.

    x: a tree of arrays, NumPy arrays and numbers; device: one of `devices()`, its name, or None for the default.
    Returns arrays of their shapes and dtypes. Raises DeviceError for one that is not there.

    >>> tracer.device_put({"a": np.ones(2), "b": 1}, tracer.devices()[0])
    {'a': Array([1., 1.], f64), 'b': Array(1, i64*)}
    """
    check_device(device, "device_put")
    return trees.tree_map(lambda leaf: as_array(leaf, "device_put"), x)


@contextmanager
def default_device(device: Any) -> Iterator[None]:
    """Make arrays on this device until the block ends, on this thread.

    device: one of `devices()`, or its name. Raises DeviceError for one that is not there.

    >>> with tracer.default_device("cpu"):
    ...     tnp.zeros(2).device
    CpuDevice(0)
    """
    check_device(device, "default_device")
    with config.using(default_device="cpu"):
        yield


def device_of(x: Array) -> CpuDevice:
    """Where an array lives.

    >>> tnp.zeros(3).device
    CpuDevice(0)
    """
    del x
    return CPU


def check_device(device: Any, what: str) -> None:
    """Raise DeviceError for what is no device, or one that is not there."""
    if device is None or isinstance(device, CpuDevice) or device in ("cpu", "cpu:0"):
        return
    if str(device).startswith(("cuda", "gpu")):
        raise DeviceError(message(f"{what}{here()}: no device {str(device)!r}", *_missing_cuda()))
    raise DeviceError(message(f"{what}{here()}: no device {device!r}", help='there is "cpu"'))


def _missing_cuda() -> tuple[str, ...]:
    if importlib.util.find_spec("cupy") is None:
        missing = "CuPy is not installed (the extra tracer[cuda]); and whole programs do not run on GPUs yet"
    else:
        missing = "whole programs do not run on GPUs yet"
    return (missing, "help: jit(f).lower(x).cuda() shows the kernels that a program would have")
