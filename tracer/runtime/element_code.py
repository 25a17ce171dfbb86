"""The compiled code for the slots of `Array`, loaded, and as what Python takes: descriptors and functions.

A descriptor is of CPython's own kind for slots: when a class has it under the slot's name, the slot is the C function.
"""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tracer.codegen.llvm.toolchain.object_code import load_object
from tracer.ir import dtypes
from tracer.ir.types import ArrayType
from tracer.once import once
from tracer.runtime.element_slots import slots
from tracer.runtime.element_text import Elements, element_text
from tracer.runtime.native import capi
from tracer.runtime.native.object_cache import objects
from tracer.settings import gate
from tracer.trace.array import Array

_OPT = 0  # a quarter of the time to compile; calls take some 10 ns more
_METH_FASTCALL = 0x0080
_ELEMENTS = Elements()
_kept: list[Any] = []  # what the code refers to lives as long as the process


class ElementCode(NamedTuple):
    """By names of slots, the descriptors; and the functions of `element_slots.Slots`."""

    descriptors: dict[str, Any]
    get: Any
    written: Any


@once
def element_code() -> ElementCode:
    """The code for this process."""
    functions = slots.functions
    referred = {
        "array": Array, "ndarray": np.ndarray, "array_type": ArrayType, "zero": 0, "int64": np.int64,
        "float64": np.float64, "f32": dtypes.F32, "f64": dtypes.F64, **functions._asdict(),
    }  # fmt: skip
    _kept.append(referred)
    for name, thing in referred.items():
        setattr(_ELEMENTS, name, id(thing))
    symbols = {
        **capi.entry_symbols(), "tracer_gate": ctypes.addressof(gate.words),
        "tracer_elements": ctypes.addressof(_ELEMENTS),
    }  # fmt: skip
    loaded = load_object(objects.kernel(element_text(), _OPT), symbols, export="tracer_get")
    _kept.append(loaded)
    get, write = loaded.address("tracer_get"), loaded.address("tracer_set")
    descriptors = {
        "__getitem__": capi.slot_wrapper(Array, MappingProxyType.__dict__["__getitem__"], get),
        "__setitem__": capi.slot_wrapper(Array, list.__dict__["__setitem__"], write),
        "__delitem__": capi.slot_wrapper(Array, list.__dict__["__delitem__"], write),
    }
    get_of, written = (_function(loaded.address(f"tracer_{name}"), name) for name in ("get_of", "written"))
    return ElementCode(descriptors, get_of, written)


def _function(address: int, name: str) -> Any:
    method = capi.MethodDef(name.encode(), address, _METH_FASTCALL, None)
    _kept.append(method)
    return capi.new_function(method, None)
