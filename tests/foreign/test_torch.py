"""PyTorch's tensors and our arrays, by DLPack both ways: shared memory, and who keeps it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.foreign.outcomes import OURS, PLAIN, REFUSED, record
from tests.foreign.requirements import installed
from tracer.errors import ExportError, TracerArrayError

pytestmark = installed("torch")

LIBRARY = "PyTorch"
X = np.linspace(0.5, 2.0, 6).reshape(2, 3)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def test_tensors_share_our_memory(torch: Any) -> None:
    for x in (tnp.asarray(X), tracer.jit(lambda x: 2.0 * x)(X)):
        tensor = torch.from_dlpack(x)
        assert tensor.data_ptr() == x._value.ctypes.data
        assert tensor.tolist() == x.tolist()
    record(LIBRARY, "from_dlpack(x), no copy", "eager", PLAIN)
    with pytest.raises(TracerArrayError, match="a traced array has no memory"):
        tracer.jit(torch.from_dlpack)(X)
    record(LIBRARY, "from_dlpack(x), no copy", "jit", f"{REFUSED} (TracerArrayError)")


def test_constants_are_copied_since_torch_writes_all_the_same(torch: Any) -> None:
    value = X.copy()
    value.flags.writeable = False
    x = tnp.from_dlpack(value)
    tensor = torch.from_dlpack(x)
    tensor[0, 0] = 9.0
    assert x.tolist() == X.tolist()
    record(LIBRARY, "from_dlpack(constant), a copy", "eager", PLAIN)


def test_a_copy_on_request(torch: Any) -> None:
    x = tnp.asarray(X)
    tensor = torch.from_dlpack(x, copy=True)
    tensor[0, 0] = 9.0
    assert x.tolist() == X.tolist()


def test_our_arrays_share_tensors_memory(torch: Any) -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    x = tnp.from_dlpack(tensor)
    assert x._value.ctypes.data == tensor.data_ptr()
    assert x.dtype == "float32"
    assert tracer.jit(lambda x: x.sum())(x) == 15.0
    record(LIBRARY, "tracer.numpy.from_dlpack(tensor), no copy", "eager", OURS)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"],
)
def test_dtypes_go_both_ways(torch: Any, dtype: str) -> None:
    tensor = torch.ones(3, dtype=getattr(torch, dtype))
    x = tnp.from_dlpack(tensor)
    assert x.dtype == dtype
    assert torch.from_dlpack(x).dtype == tensor.dtype


def test_what_capsules_do_not_have_goes_by_its_bits(torch: Any) -> None:
    x = tnp.asarray([1.5, -2.0], "bfloat16")
    with pytest.raises(ExportError, match=r'x.view\("uint16"\)'):
        torch.from_dlpack(x)
    assert torch.from_dlpack(x.view("uint16")).view(torch.bfloat16).tolist() == [1.5, -2.0]
    back = tnp.from_dlpack(torch.tensor([1.5, -2.0], dtype=torch.bfloat16).view(torch.int16)).view("bfloat16")
    assert back.tolist() == [1.5, -2.0]


def test_tensors_are_arguments_of_our_functions(torch: Any) -> None:
    tensor = torch.linspace(0.0, 1.0, 4, dtype=torch.float64)
    assert tnp.asarray(tensor).tolist() == tensor.tolist()
    np.testing.assert_allclose(tracer.jit(tnp.sin)(tensor), np.sin(tensor.numpy()), rtol=1e-15)
    record(LIBRARY, "jit(f)(tensor)", "eager", OURS)
    assert torch.as_tensor(tnp.asarray(X)).tolist() == X.tolist()
    record(LIBRARY, "as_tensor(x)", "eager", PLAIN)
    assert tnp.from_dlpack(tensor.reshape(2, 2).T).tolist() == tensor.reshape(2, 2).T.tolist()


def test_memory_lives_as_long_as_either_side_holds_it(torch: Any) -> None:
    x = tnp.asarray(X)
    value = weakref.ref(x._value)
    tensor = torch.from_dlpack(x)
    del x
    gc.collect()
    assert value() is not None
    assert tensor.tolist() == X.tolist()
    del tensor
    gc.collect()
    assert value() is None
    tensor = torch.arange(1000.0)
    x = tnp.from_dlpack(tensor)
    del tensor
    gc.collect()
    filler = [torch.zeros(1000) for _ in range(50)]
    assert x.tolist() == np.arange(1000.0).tolist()
    assert len(filler) == 50
