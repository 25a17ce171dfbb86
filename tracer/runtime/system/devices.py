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
    """The processor, with all its cores.

    >>> isinstance(tracer.devices()[0], tracer.Device)
    True
    """

    id: int = 0
    platform = device_kind = "cpu"
    process_index = 0

    def __repr__(self) -> str:
        return f"CpuDevice({self.id})"

    def __str__(self) -> str:
        return "cpu"


CPU = CpuDevice()


def devices(backend: str | None = None) -> list[CpuDevice]:
    """The devices there are, of all platforms or of one. Raises DeviceError for a platform that is not there.

    backend: the platform, "cpu", or None for all.

    >>> tracer.devices()
    [CpuDevice(0)]
    """
    return _devices("devices", backend)


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[CpuDevice]:
    """The devices of this process, which are all.

    process_index: 0, or None; backend: as of `devices`; host_id: an older name of process_index. Raises DeviceError for
    another process, or for a platform that is not there.

    >>> tracer.local_devices()
    [CpuDevice(0)]
    """
    if process_index or host_id:
        text = f"local_devices{here()}: no process {process_index or host_id}"
        raise DeviceError(message(text, help="there is one process, 0"))
    return _devices("local_devices", backend)


def device_count(backend: str | None = None) -> int:
    """How many devices there are. backend: as of `devices`.

    >>> tracer.device_count()
    1
    """
    return len(_devices("device_count", backend))


def local_device_count(backend: str | None = None) -> int:
    """How many devices this process has: all. backend: as of `devices`.

    >>> tracer.local_device_count()
    1
    """
    return len(_devices("local_device_count", backend))


def default_backend() -> str:
    """The platform on which arrays are made: "cpu".

    >>> tracer.default_backend()
    'cpu'
    """
    return CPU.platform


def process_count(backend: str | None = None) -> int:
    """How many processes compute together: this one. backend: as of `devices`.

    >>> tracer.process_count()
    1
    """
    return len(_devices("process_count", backend))


def process_index(backend: str | None = None) -> int:
    """The number of this process among those that compute together: 0. backend: as of `devices`.

    >>> tracer.process_index()
    0
    """
    return _devices("process_index", backend)[0].process_index


def _devices(name: str, backend: str | None) -> list[CpuDevice]:
    if backend is not None:
        check_device(backend, name)
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


@dataclass(frozen=True, slots=True)
class SingleDeviceSharding:
    """Where the parts of an array lie that one device has: all on it. `x.sharding` is one, `device_put` takes one.

    device: one of `tracer.devices()`.

    >>> tracer.sharding.SingleDeviceSharding(tracer.devices()[0]).is_fully_replicated
    True
    """

    device: CpuDevice
    is_fully_replicated = is_fully_addressable = True

    @property
    def device_set(self) -> set[CpuDevice]:
        """The devices: one."""
        return {self.device}

    @property
    def addressable_devices(self) -> set[CpuDevice]:
        """The devices of this process: all."""
        return {self.device}

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what the device has of an array of a shape: all of it."""
        return tuple(global_shape)


def sharding_of(x: Array) -> SingleDeviceSharding:
    """How an array is spread over devices: it is not.

    >>> tnp.zeros(3).sharding
    SingleDeviceSharding(device=CpuDevice(0))
    """
    del x
    return SingleDeviceSharding(CPU)


def device_of(x: Array) -> CpuDevice:
    """Where an array lives.

    >>> tnp.zeros(3).device
    CpuDevice(0)
    """
    del x
    return CPU


def check_device(device: Any, what: str) -> None:
    """Raise DeviceError for what is no device, or one that is not there."""
    if device is None or isinstance(device, CpuDevice | SingleDeviceSharding) or device in ("cpu", "cpu:0"):
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
