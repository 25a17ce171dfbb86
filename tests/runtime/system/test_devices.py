"""Devices: the CPU is there, and errors say what is missing of others."""

from __future__ import annotations

import numpy as np
import pytest

from tracer import jit
from tracer.errors import DeviceError
from tracer.runtime.system.devices import (
    CpuDevice,
    SingleDeviceSharding,
    default_backend,
    default_device,
    device_count,
    device_of,
    device_put,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)
from tracer.trace.array import Array


def test_the_cpu_is_a_device() -> None:
    assert repr(devices()) == "[CpuDevice(0)]"
    assert devices("cpu") == devices() == [CpuDevice(0)]
    assert str(devices()[0]) == "cpu"
    assert devices()[0].platform == "cpu"


def test_one_process_has_the_devices() -> None:
    assert device_count() == local_device_count("cpu") == process_count() == len(local_devices(0, "cpu")) == 1
    assert (default_backend(), process_index()) == ("cpu", 0)
    with pytest.raises(DeviceError, match=r"^local_devices at test_devices.py:\d+: no process 1"):
        local_devices(1)
    with pytest.raises(DeviceError, match=r"^device_count at test_devices.py:\d+: no device 'tpu'"):
        device_count("tpu")


def test_an_array_says_how_it_is_spread() -> None:
    x = device_put(np.arange(2.0), SingleDeviceSharding(CpuDevice(0)))
    assert x.sharding == SingleDeviceSharding(CpuDevice(0))
    assert x.sharding.device_set == x.devices() == {CpuDevice(0)}
    assert x.sharding.shard_shape(x.shape) == (2,)
    assert jit(lambda x: x * len(x.sharding.device_set))(x).tolist() == [0.0, 1.0]


def test_device_put_makes_arrays_of_a_tree() -> None:
    tree = device_put({"a": np.arange(2), "b": [1.0]}, "cpu")
    assert type(tree["a"]) is type(tree["b"][0]) is Array
    assert device_put(tree["a"]) is tree["a"]
    assert device_of(tree["a"]) == CpuDevice(0)


def test_default_device_takes_the_cpu() -> None:
    with default_device("cpu"):
        assert devices() == [CpuDevice(0)]


@pytest.mark.parametrize("what", [devices, lambda d: device_put(1.0, d), lambda d: default_device(d).__enter__()])
def test_a_gpu_is_refused_with_what_is_missing(what: object) -> None:
    with pytest.raises(DeviceError, match=r"no device 'cuda:1'\n  (CuPy|there is no)"):
        what("cuda:1")  # type: ignore[operator]


def test_a_device_that_does_not_exist_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"^device_put at test_devices.py:\d+: no device 'tpu'\n  help: there are "):
        device_put(1.0, "tpu")
