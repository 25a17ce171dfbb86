"""Shardings of arrays: each array lies on one device, `x.sharding`."""

from tracer.absent import absent
from tracer.runtime.system.devices import SingleDeviceSharding

__all__ = ["SingleDeviceSharding"]


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return list(__all__)
