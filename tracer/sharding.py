"""Shardings of arrays and meshes of devices: each array lies whole on one device, `x.sharding`."""

from tracer.absent import absent
from tracer.runtime.system.devices import Sharding, SingleDeviceSharding
from tracer.runtime.system.shardings import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    get_mesh,
    make_single_device_sharding,
    reshard,
    set_mesh,
    use_abstract_mesh,
)

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec", "Sharding",
    "SingleDeviceSharding", "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh",
    "make_single_device_sharding", "reshard", "set_mesh", "use_abstract_mesh",
]  # fmt: skip


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return list(__all__)
