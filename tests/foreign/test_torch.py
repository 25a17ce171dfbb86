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
from tracer.errors import DTypeError, ExportError, TracerArrayError

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


@pytest.mark.parametrize(
    "dtype",
    ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex64"],
)
def test_narrow_floats_share_memory_both_ways(torch: Any, dtype: str) -> None:
    tensor = torch.tensor([0.5, 2.0, 1.0]).to(getattr(torch, dtype))
    x = tnp.from_dlpack(tensor)
    assert x.dtype == dtype
    assert x._value.ctypes.data == tensor.data_ptr()
    assert x.astype("complex64").real.tolist() == [0.5, 2.0, 1.0]
    back = torch.from_dlpack(x)
    assert back.dtype == tensor.dtype
    assert back.data_ptr() == tensor.data_ptr()
    made = tnp.asarray([0.5, 2.0, 1.0], dtype)
    theirs = torch.from_dlpack(made)
    assert theirs.dtype == tensor.dtype
    assert theirs.data_ptr() == made._value.ctypes.data
    assert theirs.to(torch.complex64).real.tolist() == [0.5, 2.0, 1.0]
    record(LIBRARY, f"from_dlpack both ways of {dtype}, no copy", "eager", OURS)


def test_what_torch_packs_is_refused(torch: Any) -> None:
    with pytest.raises(DTypeError, match=r"this dtype is not supported\n  got torch\.complex32"):
        tnp.from_dlpack(torch.zeros(2, dtype=torch.complex32))
    with pytest.raises(ExportError, match="elements of fewer than 8 bits"):
        torch.from_dlpack(tnp.ones(2, "int4"))


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
