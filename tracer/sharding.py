"""Shardings of arrays and meshes of devices: each array lies whole on one device, `x.sharding`."""

from tracer.absent import absent
from tracer.runtime.system.devices import Sharding, SingleDeviceSharding
from tracer.runtime.system.meshes import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    PartitionSpec,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
)
from tracer.runtime.system.shardings import (
    NamedSharding,
    auto_axes,
    explicit_axes,
    make_single_device_sharding,
    reshard,
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
