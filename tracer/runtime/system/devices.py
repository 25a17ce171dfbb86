"""Devices that hold arrays: the CPU, NVIDIA's GPUs, and a simulated one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import optree

from tracer.errors import ArgumentError, DeviceError, message
from tracer.lazy import LazyModule
from tracer.runtime.system.spans import transferring
from tracer.settings import config, gate
from tracer.trace import device_trace, trees
from tracer.trace.array import FOLLOWS, Array
from tracer.trace.convert import as_array
from tracer.trace.source import here, user_source
from tracer.trace.trace import default_trace

if TYPE_CHECKING:
    from tracer import markup
else:
    markup = LazyModule("tracer.markup")


class Device:
    """Device that holds arrays, of any platform.

    platform: "cpu", "cuda", or "cuda-sim". id: its number among the platform's. device_kind: its maker's name for it.

    >>> isinstance(tnp.zeros(2).device, tracer.Device)
    True
    """

    __slots__ = ()
    platform: str
    device_kind: str
    id: int
    process_index = 0

    def memory_stats(self) -> dict[str, int] | None:
        """Return the bytes in use and their peak, of memory that tracer allocated; None for the CPU."""
        return None

    def _repr_html_(self) -> str:
        rows = [("platform", self.platform), ("kind", self.device_kind), ("id", str(self.id))]
        return markup.view(repr(self), markup.table(("", ""), [*rows, *_stats(self)], text=(0, 1)))


def _stats(device: Device) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), f"{count:,}") for name, count in (device.memory_stats() or {}).items()]


class Devices(list[Any]):
    """List of devices, a table in notebooks."""

    def _repr_html_(self) -> str:
        rows = [(str(d), d.device_kind, ", ".join(f"{n} {name}" for name, n in _stats(d)), repr(d)) for d in self]
        return markup.view("devices", markup.table(("name", "kind", "memory", ""), rows, text=(0, 1, 2, 3)))


@dataclass(frozen=True, slots=True)
class CpuDevice(Device):
    """Processor with all its cores.

    >>> isinstance(tracer.devices()[0], tracer.Device)
    True
    """

    id: int = 0
    platform = device_kind = "cpu"

    def __repr__(self) -> str:
        return f"CpuDevice({self.id})"

    def __str__(self) -> str:
        return "cpu"


CPU = CpuDevice()


class Others:
    """Slot for the module of devices besides the CPU, which `tracer/__init__` fills: `tracer.runtime.cuda.devices`."""

    __slots__ = ("module",)
    module: Any


others = Others()
_NAME: Final = re.compile(r"(cuda|gpu|cuda-sim)(?::(\d+))?")


def devices(backend: str | None = None) -> list[Any]:
    """Return the devices of one platform, or of all.

    backend: the platform, "cpu", "cuda", or "cuda-sim" for the simulated GPU, which only its name finds; None for all
    platforms but the simulated one. The list is a table in notebooks. Raises DeviceError for a missing platform.

    >>> tracer.devices()
    [CpuDevice(0)]
    """
    return _devices("devices", backend)


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Any]:
    """Return the devices of this process, which are all.

    process_index: 0 or None. backend: see `devices`. host_id: older name of process_index. Raises DeviceError for
    another process, and for a missing platform.

    >>> tracer.local_devices()
    [CpuDevice(0)]
    """
    if process_index or host_id:
        text = f"local_devices{here()}: no process {process_index or host_id}"
        raise DeviceError(message(text, help="there is one process, 0"))
    return _devices("local_devices", backend)


def device_count(backend: str | None = None) -> int:
    """Return the count of devices. backend: see `devices`.

    >>> tracer.device_count()
    1
    """
    return len(_devices("device_count", backend))


def local_device_count(backend: str | None = None) -> int:
    """Return the count of this process's devices, which are all. backend: see `devices`.

    >>> tracer.local_device_count()
    1
    """
    return len(_devices("local_device_count", backend))


def default_backend() -> str:
    """Return the platform on which arrays are made: "cpu", unless `config.default_device` is another.

    >>> tracer.default_backend()
    'cpu'
    """
    return str(found_device(None, "default_backend").platform)


def process_count(backend: str | None = None) -> int:
    """Return the count of processes that compute together, 1. backend: see `devices`.

    >>> tracer.process_count()
    1
    """
    return len(_devices("process_count", backend))


def process_index(backend: str | None = None) -> int:
    """Return the index of this process among the processes that compute together, 0. backend: see `devices`.

    >>> tracer.process_index()
    0
    """
    return int(_devices("process_index", backend)[0].process_index)


def _devices(name: str, backend: str | None) -> list[Any]:
    if backend is not None and backend not in ("cuda", "gpu"):
        return Devices([found_device(backend, name)])
    cards = others.module.cards()
    if backend is not None and not cards:
        found_device(backend, name)  # raises, saying why
    return Devices(cards if backend is not None else [CPU, *cards])


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """Return a tree with its leaves as arrays on the device; arrays on it already are returned themselves.

    x: a tree of arrays, NumPy arrays and scalars. device: one of `devices()`, its name, a sharding, None for the
    default, or a tree of these that is a prefix of x. src, donate, may_alias: accepted as in JAX. Shapes and dtypes are
    kept. Raises DeviceError for a missing device, ArgumentError where device is no prefix.

    >>> tracer.device_put({"a": np.ones(2), "b": 1}, tracer.devices()[0])
    {'a': Array([1., 1.], f64), 'b': Array(1, i64*)}
    """
    del src, donate, may_alias
    with transferring("device_put", user_source, lambda: sum(as_array(leaf).nbytes for leaf in trees.flatten(x)[0])):
        return placed(x, device, "device_put")


def placed(xs: Any, places: Any, caller: str) -> Any:
    """Return a tree of arrays on devices or by shardings, which are checked. caller: named in errors."""
    given, structure = optree.tree_flatten(places, none_is_leaf=True, namespace=trees.NAMESPACE)
    try:
        parts = structure.flatten_up_to(xs)
    except ValueError:
        text = f"{caller}{here()}: devices and shardings are a prefix of the tree that they place"
        raise ArgumentError(message(text, help="give one for all, or a tree of them")) from None
    for place in given:
        found_device(place, caller)

    def put(leaf: Any, place: Any) -> Array:
        array = as_array(leaf, caller)
        if isinstance(place, Sharding):
            place.shard_shape(array.shape)  # raises if it does not fit
        return made(array, place, caller)

    rows = zip(given, parts, strict=True)
    return structure.unflatten([trees.tree_map(lambda x, place=place: put(x, place), part) for place, part in rows])


@contextmanager
def default_device(device: Any) -> Iterator[None]:
    """Make arrays on this device until the block ends, on this thread.

    device: one of `devices()`, its name, or None for the CPU. NumPy's arrays, numbers and keys alone in a call
    go to it, too. `config.default_device` sets it for good. Raises DeviceError for a missing device.

    >>> with tracer.default_device("cuda-sim"):
    ...     tnp.zeros(2).device
    CudaDevice('cuda-sim:0')
    """
    found = CPU if device is None else found_device(device, "default_device")
    with config.using(default_device=str(found)):
        yield


def made_on(caller: str, device: Any, function: Callable[..., Array], *args: Any) -> Array:
    """Return the array that a creation function makes on a device. caller: its name. Raises DeviceError."""
    found = found_device(device, caller)
    with config.using(default_device=str(found)):
        return put_on(function(*args), found, caller)


def made(x: Array, device: Any, caller: str) -> Array:
    """Return an array made of values outside, on a device or where arrays are made. caller: named in errors."""
    if device is not None:
        x = put_on(x, device, caller)
    elif gate.elsewhere and (trace := default_trace([x])) is not None:
        x = trace.device.put(x)
    if x._atom is FOLLOWS:
        x._atom = None
    return x


class Sharding:
    """Placement of arrays on the CPU, the one device of shardings, so every placement puts whole arrays there.

    >>> isinstance(tnp.zeros(3).sharding, tracer.sharding.Sharding)
    True
    """

    __slots__ = ()

    @property
    def device_set(self) -> set[CpuDevice]:
        """Set of the one device."""
        return {CPU}

    @property
    def addressable_devices(self) -> set[CpuDevice]:
        """Devices of this process: all."""
        return self.device_set

    @property
    def has_addressable_devices(self) -> bool:
        """Whether this process has one of the devices: it does."""
        return True

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return len(self.device_set)

    def with_memory_kind(self, kind: str) -> Sharding:
        """Return the placement in memory of a kind; the CPU has one, which all names mean."""
        del kind
        return self

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return True

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process reaches all parts of the array: it does."""
        return True

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the device's part of an array: the array's own shape."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[CpuDevice, tuple[slice, ...]]:
        """Return the slices of an array that each device holds: all of them."""
        return {device: (slice(None),) * len(global_shape) for device in self.device_set}

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[CpuDevice, tuple[slice, ...]]:
        """Return the slices of an array that each device of this process holds: all of them."""
        return self.devices_indices_map(global_shape)

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both place an array of `ndim` axes alike."""
        whole = (1,) * ndim
        return self.device_set == other.device_set and self.shard_shape(whole) == other.shard_shape(whole)


@dataclass(frozen=True, slots=True)
class SingleDeviceSharding(Sharding):
    """Placement of a whole array on one device. `x.sharding` is one, `device_put` takes one.

    device: one of `tracer.devices()`.

    >>> tracer.sharding.SingleDeviceSharding(tracer.devices()[0]).is_fully_replicated
    True
    """

    device: Any

    @property
    def device_set(self) -> set[Any]:
        """Set of the one device."""
        return {self.device}


def sharding_of(x: Array) -> SingleDeviceSharding:
    """Return the placement of an array on devices: all of it on one.

    >>> tnp.zeros(3).sharding
    SingleDeviceSharding(device=CpuDevice(0))
    """
    return SingleDeviceSharding(device_of(x))


def device_of(x: Array) -> Any:
    """Return the device of an array.

    >>> tnp.zeros(3).device
    CpuDevice(0)
    """
    return device_trace.device_of(x) or CPU


def put_on(x: Array, device: Any, caller: str) -> Array:
    """Return an array on a device, copied unless it is there. device: None leaves it. caller: named in errors."""
    if device is None:
        return x
    found = found_device(device, caller)
    if found is not CPU:
        array: Array = found.put(x)
        return array
    there: Array = x if device_trace.device_of(x) is None else others.module.to_host(x)
    return there


def found_device(device: Any, caller: str) -> Any:
    """Return a device by itself, its name or a sharding, the default for None. Raises DeviceError for a missing one."""
    if device is None:
        device = config.default_device
    if isinstance(device, SingleDeviceSharding):
        device = device.device
    if isinstance(device, CpuDevice | Sharding) or device in ("cpu", "cpu:0"):
        return CPU
    if hasattr(device, "put"):
        return device
    named = _NAME.fullmatch(device) if isinstance(device, str) else None
    if named is None:
        raise DeviceError(message(f"{caller}{here()}: no device {device!r}", help='there are "cpu" and "cuda-sim"'))
    platform = "cuda-sim" if named[1] == "cuda-sim" else "cuda"
    try:
        return others.module.device_named(platform, int(named[2] or 0))
    except DeviceError as error:
        reasons = [line.strip() for line in str(error).splitlines()]
        raise DeviceError(message(f"{caller}{here()}: no device {device!r}", *reasons)) from None


def trace_named(name: str) -> Any:
    """Return the trace of a device."""
    return found_device(name, "default_device").trace


def check_device(device: Any, caller: str) -> None:
    """Raise DeviceError unless the device is the CPU. caller: named in errors."""
    if found_device(device, caller) is not CPU:
        text = f"{caller}{here()}: {device} is not taken here"
        raise DeviceError(message(text, help="programs run where their arrays lie: tracer.device_put(x, device)"))
