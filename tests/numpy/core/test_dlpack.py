"""DLPack both ways: no copies, lifetimes, what is refused."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer.errors import ArgumentError, DeviceError, DTypeError, ExportError, TracerArrayError
from tracer.numpy.core.dlpack_ml_dtypes import _CODES, _named

X = np.linspace(0.5, 2.0, 6).reshape(2, 3)
DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
]  # fmt: skip


class Theirs:
    """An array of another library: it speaks DLPack, and nothing else."""

    def __init__(self, value: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.value, self.device = value, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.value.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


@each("dtype", DTYPES)
def test_every_dtype_goes_both_ways_without_a_copy(dtype: str) -> None:
    x = tnp.asarray(np.array([0, 1, 1], dtype))
    theirs = np.from_dlpack(x)
    assert theirs.dtype == dtype
    assert np.shares_memory(theirs, x._value)
    back = tnp.from_dlpack(Theirs(theirs.copy()))
    assert back.dtype == dtype
    assert back.tolist() == x.tolist()


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_every_shape_goes_both_ways(shape: tuple[int, ...]) -> None:
    value = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
    assert np.from_dlpack(tnp.asarray(value)).shape == shape
    assert tnp.from_dlpack(Theirs(value)).shape == shape


def test_results_of_compiled_programs_are_shared() -> None:
    made = tracer.jit(lambda x: 2 * x)(X)
    assert np.shares_memory(np.from_dlpack(made), made._value)


def test_capsules_say_read_only_where_they_can() -> None:
    x = tnp.asarray(X)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert "dltensor_versioned" not in repr(x.__dlpack__())
    assert "dltensor_versioned" not in repr(x.__dlpack__(max_version=(0, 8)))
    view = np.from_dlpack(x)
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 1.0


def constant() -> tracer.Array:
    value = X.copy()
    value.flags.writeable = False
    x = tnp.from_dlpack(value)
    assert x._value is value
    return x


def test_constants_are_copied_unless_that_is_forbidden() -> None:
    x = constant()
    assert not np.shares_memory(np.from_dlpack(x), x._value)
    assert np.shares_memory(np.from_dlpack(x, copy=False), x._value)
    with pytest.raises(ExportError, match="a constant cannot be shared by a capsule"):
        x.__dlpack__(copy=False)


@pytest.mark.parametrize("make", [lambda: tnp.asarray(X), constant])
def test_a_copy_is_one(make: Any) -> None:
    x = make()
    copied = np.from_dlpack(x, copy=True)
    assert not np.shares_memory(copied, x._value)
    copied[...] = 0.0
    assert x.tolist() == X.tolist()


def test_memory_lives_as_long_as_its_consumer() -> None:
    x = tnp.asarray(X)
    value = weakref.ref(x._value)
    theirs = np.from_dlpack(x)
    capsule = x.__dlpack__()
    del x
    gc.collect()
    assert value() is not None
    assert theirs.tolist() == X.tolist()
    del theirs
    gc.collect()
    assert value() is not None  # the capsule that nobody consumed holds it
    del capsule
    gc.collect()
    assert value() is None


def test_their_memory_lives_as_long_as_our_array() -> None:
    given = X.copy()
    held = weakref.ref(given)
    x = tnp.from_dlpack(Theirs(given))
    assert np.shares_memory(x._value, given)
    del given
    gc.collect()
    assert x.tolist() == X.tolist()
    assert held() is not None
    del x
    gc.collect()
    assert held() is None


@pytest.mark.parametrize("given", [X.T, X[:, ::2], X[::-1]])
def test_memory_in_another_order_is_copied_or_refused(given: Any) -> None:
    assert tnp.from_dlpack(Theirs(given)).tolist() == given.tolist()
    with pytest.raises(ExportError, match="arrays are in C order"):
        tnp.from_dlpack(Theirs(given), copy=False)
    assert np.shares_memory(tnp.from_dlpack(Theirs(X), copy=False)._value, X)
    assert not np.shares_memory(tnp.from_dlpack(Theirs(X), copy=True)._value, X)


def test_our_own_arrays_are_taken_too() -> None:
    x = tnp.asarray(X)
    shared, copied = tnp.from_dlpack(x), tnp.from_dlpack(x, copy=True)
    assert np.shares_memory(shared._value, x._value)
    assert not np.shares_memory(copied._value, x._value)
    shared[0, 0] = 9.0
    assert x.tolist() == X.tolist()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"stream": 1}, ExportError, "arrays on a CPU have no stream"),
        ({"dl_device": (2, 0)}, ExportError, r"the array is on the CPU, which is device \(1, 0\)"),
        ({"dl_device": (1, 1)}, ExportError, r"got dl_device=\(1, 1\)"),
    ],
)
def test_what_cannot_be_exported_is_refused(options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        tnp.asarray(X).__dlpack__(max_version=(1, 0), **options)


def test_dtypes_and_values_without_capsules_are_refused() -> None:
    for dtype in ("int4", "float4_e2m1fn", "float6_e2m3fn"):
        with pytest.raises(ExportError, match="elements of fewer than 8 bits cannot be exported"):
            np.from_dlpack(tnp.ones(2, dtype))
    with pytest.raises(ExportError, match="random keys have no memory to share"):
        np.from_dlpack(tracer.random.key(0))
    with pytest.raises(TracerArrayError, match="a traced array has no memory"):
        tracer.jit(np.from_dlpack)(X)


def test_what_cannot_be_taken_is_refused() -> None:
    with pytest.raises(ArgumentError, match="takes an array with __dlpack__"):
        tnp.from_dlpack([1.0, 2.0])
    with pytest.raises(DeviceError, match=r"got Theirs on DLPack's device \(10, 0\)"):
        tnp.from_dlpack(Theirs(X, device=(10, 0)))
    with pytest.raises(DeviceError, match=r"^from_dlpack at .*: Theirs lies on a CUDA device\n  (CuPy|there is no)"):
        tnp.from_dlpack(Theirs(X, device=(2, 0)))
    with pytest.raises(DeviceError):
        tnp.from_dlpack(X, device="cuda:0")

    class Strange(Theirs):
        dtype = "complex32"

        def __dlpack__(self, **options: Any) -> Any:
            capsule = np.ones(2, np.float32).__dlpack__(**options)
            _named(capsule)[0] = 200
            return capsule

    with pytest.raises(DTypeError, match="this dtype is not supported\n  got complex32"):
        tnp.from_dlpack(Strange(X))


NARROW = ["bfloat16", *(name for name in tnp.__all__ if name.startswith("float8_"))]


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize("dtype", NARROW)
def test_dtypes_that_numpy_lacks_go_both_ways_without_a_copy(dtype: str, version: Any) -> None:
    """The capsule of bfloat16 or float8 says so, by a code of DLPack's; one that says so is taken."""
    x = tnp.asarray([0.5, 2.0, 1.0], dtype)

    class Says(Theirs):
        def __dlpack__(self, **options: Any) -> Any:
            if version is None and options:
                raise TypeError("__dlpack__() takes no options")
            return self.value.__dlpack__(max_version=version)

    capsule = x.__dlpack__(max_version=version)
    assert tuple(_named(capsule)) == (_CODES[x.dtype], 8 * x.dtype.itemsize)
    back = tnp.from_dlpack(Says(x))
    assert back.dtype == x.dtype
    assert back.tolist() == x.tolist() == [0.5, 2.0, 1.0]
    assert np.shares_memory(back._value, x._value)
    held = weakref.ref(x._value)
    del x
    gc.collect()
    assert held() is not None
    assert back.astype("float32").sum() == 3.5
    del back, capsule
    gc.collect()
    assert held() is None


def test_asarray_takes_what_speaks_dlpack_alone() -> None:
    assert tnp.asarray(Theirs(X)).tolist() == X.tolist()
    assert tracer.jit(lambda x: tnp.asarray(x) + 1)(tnp.from_dlpack(Theirs(X))).tolist() == (X + 1).tolist()


@each("device", [(), None, ..., 5, (1,), ("cpu", 0)])
def test_a_device_that_is_no_pair_is_refused(device: Any) -> None:
    class Lender:
        def __dlpack__(self, **_: Any) -> Any:
            return np.ones(2).__dlpack__()

        def __dlpack_device__(self) -> Any:
            return device

    with pytest.raises(ExportError, match=r"^from_dlpack at .*: Lender.__dlpack_device__ gives a type and a number"):
        tnp.from_dlpack(Lender())
