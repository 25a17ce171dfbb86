"""Array attributes of NumPy and JAX that are absent here, with reasons, for AttributeError and docs/numpy.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

from tracer.torch_names import MEMBERS

_MEMORY = "arrays are values, whose memory is hidden"
_PLACE = "arrays are values, which nothing changes in place"

ABSENT_MEMBERS: dict[str, str] = {
    **dict.fromkeys(
        (
            "addressable_data",
            "addressable_shards",
            "committed",
            "global_shards",
            "is_fully_addressable",
            "is_fully_replicated",
        ),
        "arrays lie on one device; x.sharding says on which",
    ),
    **dict.fromkeys(
        ("delete", "device_buffer", "device_buffers", "is_deleted", "unsafe_buffer_pointer"),
        "memory is freed with the last reference to the array; jit(f, donate_argnums=...) donates it",
    ),
    "aval": "x.shape, x.dtype and x.weak_type, or tracer.typeof(x)",
    "clone": "x.copy()",
    "copy_to_host_async": "arrays are in the memory of the processor",
    "format": "there is one layout, row-major",
    "is_ready": "a result is complete when the call returns; x.block_until_ready() returns at once",
    "on_device_size_in_bytes": "x.nbytes",
    "platform": "x.device.platform",
    "traceback": "f.lower(x).program() shows where every value comes from",
    "base": f"{_MEMORY}; every one owns its elements",
    "byteswap": "all arrays are in the machine's order of bytes",
    "ctypes": f"{_MEMORY}; np.asarray(x).ctypes reads a concrete one",
    "data": f"{_MEMORY}; memoryview(np.asarray(x)) reads a concrete one",
    "dump": "use pickle.dump(x, file), or tracer.numpy.save",
    "dumps": "use pickle.dumps(x)",
    "fill": f"{_PLACE}; x[...] = value rebinds x",
    "flags": f"{_MEMORY}; all are C-contiguous and read-only",
    "flat": f"{_MEMORY}; x.ravel() has the elements in order, and x.ravel()[i] is x.flat[i]",
    "getfield": "elements are numbers, without fields; x.view(dtype) reads their bytes as another dtype",
    "itemset": "NumPy has removed it; use x[i] = value",
    "newbyteorder": "NumPy has removed it; all arrays are in the machine's order of bytes",
    "partition": f"{_PLACE}; tracer.numpy.partition(x, kth) gives another",
    "put": f"{_PLACE}; tracer.numpy.put(x, i, values) rebinds x",
    "resize": f"{_PLACE}; tracer.numpy.resize(x, shape) gives another",
    "setfield": "elements are numbers, without fields",
    "setflags": f"{_MEMORY}; all are C-contiguous and read-only",
    "strides": f"{_MEMORY}; all are C-contiguous, np.asarray(x).strides counts the bytes of a concrete one",
    "tofile": "use np.asarray(x).tofile(file), or tracer.numpy.save",
    "tostring": "NumPy has removed it; use x.tobytes()",
}


ASSIGNED: dict[str, str] = {  # remedies for `x.shape = ...` and other assignments
    "T": "assign to x itself",
    "dtype": "x = x.astype(dtype), or x.view(dtype)",
    "imag": "x = x.real + 1j * value",
    "real": "x = value + 1j * x.imag, or x[...] = value",
    "shape": "x = x.reshape(shape)",
}


def refusing(name: str, remedy: str) -> Callable[[Any, Any], None]:
    """Return the setter of a property of arrays, which raises AttributeError with a remedy."""

    def refuse(x: Any, value: Any) -> None:
        del value
        raise AttributeError(f"property {name!r} of {type(x).__name__!r} object has no setter ({_PLACE}; {remedy})")

    return refuse


class Absent:
    """Descriptor that raises AttributeError with a reason; `hasattr` and `dir` do not find the attribute."""

    __slots__ = ("_name", "_why")

    def __init__(self, name: str, why: str) -> None:
        self._name, self._why = name, why

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(f"'{owner.__name__}' object has no attribute {self._name!r} ({self._why})")

    def __set__(self, instance: Any, value: Any) -> NoReturn:
        self.__get__(instance, type(instance))


_ON_CARDS: Final = "__cuda_array_interface__"


def present(x: Any) -> list[str]:
    """Return the attributes that `dir` lists: all except the absent ones.

    >>> "strides" in dir(tnp.ones(2)), "shape" in dir(tnp.ones(2))
    (False, True)
    """
    lacking = () if hasattr(x, _ON_CARDS) else (_ON_CARDS,)
    return [name for name in object.__dir__(x) if name not in (*ABSENT_MEMBERS, *MEMBERS, *lacking)]
