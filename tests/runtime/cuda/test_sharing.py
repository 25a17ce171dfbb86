"""Memory of devices shared with other libraries: the simulated device's is the host's, a card's goes by CuPy."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.runtime.cuda.stand_in import CudaArray, installed
from tracer import jit
from tracer.errors import ExportError, OutOfBoundsError

SIM = "cuda-sim:0"
X = np.linspace(0.1, 2.0, 12).reshape(3, 4)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool", "complex64"])
def test_the_simulated_device_shares_its_memory_as_the_hosts(dtype: str) -> None:
    x = tracer.device_put((10 * X).astype(dtype), SIM)
    assert x.__dlpack_device__() == (1, 0)
    shared = np.from_dlpack(x)
    assert shared.ctypes.data == x._value.memory.address
    assert not shared.flags.writeable
    np.testing.assert_array_equal(shared, (10 * X).astype(dtype))
    assert not hasattr(x, "__cuda_array_interface__")
    del x
    gc.collect()
    np.testing.assert_array_equal(shared, (10 * X).astype(dtype))


def test_short_floats_are_shared_and_streams_refused() -> None:
    x = tnp.asarray(X, "bfloat16", device=SIM)
    np.testing.assert_array_equal(np.asarray(tnp.from_dlpack(_Lender(x))), np.asarray(x))
    with pytest.raises(ExportError, match="have no stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(ExportError, match="the array is on the CPU"):
        x.__dlpack__(dl_device=(2, 0))


class _Lender:
    """Array of another library."""

    def __init__(self, x: Any) -> None:
        self.__dlpack__, self.__dlpack_device__ = x.__dlpack__, x.__dlpack_device__


def test_memory_from_outside_goes_to_a_device() -> None:
    x = tnp.from_dlpack(X, device=SIM)
    assert str(x.device) == SIM
    np.testing.assert_array_equal(np.asarray(x), X)
    with tracer.default_device(SIM):
        assert str(tnp.from_dlpack(X).device) == SIM


def test_sharing_waits_and_raises_the_faults_of_a_value() -> None:
    x, place = tracer.device_put(X, SIM), tracer.device_put(np.array(7), SIM)
    with pytest.raises(OutOfBoundsError):
        np.from_dlpack(jit(lambda x, i: x[i])(x, place))


@pytest.fixture
def _card(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch)


@pytest.mark.usefixtures("_card")
def test_a_card_shares_its_memory_by_cupy() -> None:
    x = tracer.device_put(X, "cuda")
    assert x.__dlpack_device__() == (2, 0)
    address = x._value.memory.ctypes.data
    assert x.__dlpack__(stream=2) == ("capsule", address, 2)
    found = x.__cuda_array_interface__
    assert (found["data"], found["shape"], found["typestr"], found["stream"]) == ((address, True), (3, 4), "<f8", None)
    np.testing.assert_array_equal(np.asarray(x), X)


@pytest.mark.usefixtures("_card")
def test_arrays_on_a_card_are_taken_without_a_copy() -> None:
    theirs = X.copy().view(CudaArray)
    lent = SimpleNamespace(__cuda_array_interface__={}, array=theirs)  # as Numba's, without DLPack
    for x in (tnp.from_dlpack(theirs), tnp.asarray(theirs), tnp.asarray(lent)):
        assert str(x.device) == "cuda:0"
        assert x._value.memory.ctypes.data == theirs.ctypes.data
        np.testing.assert_array_equal(np.asarray(x), X)
    assert str(tnp.from_dlpack(theirs, device="cpu").device) == "cpu"


@pytest.mark.usefixtures("_card")
def test_cards_are_listed_with_their_names_and_memory() -> None:
    cpu, card = tracer.devices()
    assert (str(cpu), str(card), card.device_kind) == ("cpu", "cuda:0", "Stand-in")
    assert card.memory_stats() == {"bytes_in_use": 512, "peak_bytes_in_use": 512}
    assert "Stand-in" in tracer.devices()._repr_html_()
