"""C interfaces of CPython and NumPy: functions by name, and the layout of objects that the entry assumes.

The compiled entry reads a few fields of objects directly. Each offset is either CPython's ABI since 3.8 or NumPy's
since 1.7, or is read from a descriptor; all are tried on live objects before they are used.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from functools import cache
from types import CellType, FunctionType
from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.once import once
from tracer.runtime.guards.guards import FUNCTION_SLOTS
from tracer.runtime.native.result_pool import C_FUNCTIONS
from tracer.trace.array import Array, concrete

OB_TYPE = 8
TUPLE_SIZE, TUPLE_ITEMS = 16, tuple.__basicsize__  # 24; more from CPython 3.14 on, which has a hash first
LIST_SIZE, LIST_ITEMS = 16, 24  # the count, and the pointer to the items
DICT_USED = 16
CELL_CONTENT = 16
NUMBER_VALUE = 16  # in NumPy's scalars of any dtype
CDATA_POINTER = 16  # the address of a ctypes object's memory
NDARRAY_DATA, NDARRAY_NDIM, NDARRAY_SHAPE = 16, 24, 32
NDARRAY_DESCR, NDARRAY_FLAGS = 56, 64
C_CONTIGUOUS, OWNDATA, ALIGNED = 0x0001, 0x0004, 0x0100  # bits of an array's flags
LAID_OUT = C_CONTIGUOUS | ALIGNED

_NUMPY_ABI = 0x02000000
_NUMPY_FUNCTIONS = {"PyArray_NewFromDescr": 94, "PyDataMem_SetHandler": 304}
_PYTHON_FUNCTIONS = (
    "PyComplex_ImagAsDouble", "PyComplex_RealAsDouble", "PyDict_Copy", "PyDict_GetItemWithError",
    "PyDict_SetItem", "PyErr_CheckSignals", "PyErr_Clear", "PyErr_NoMemory", "PyErr_Occurred",
    "PyErr_SetInterrupt", "PyErr_SetObject", "PyEval_RestoreThread", "PyEval_SaveThread", "PyFloat_AsDouble",
    "PyLong_AsLongLongAndOverflow", "PyLong_FromLongLong", "PyLong_FromVoidPtr", "PyOS_InterruptOccurred",
    "PyObject_GenericGetDict", "PyObject_GenericSetDict", "PyObject_RichCompareBool", "PyObject_Vectorcall",
    "PySequence_List", "PySequence_Tuple", "PyTuple_New", "PyType_GenericAlloc", "Py_DecRef", "Py_IncRef",
)  # fmt: skip
_PYTHON_DATA = (
    "PyBool_Type", "PyComplex_Type", "PyDict_Type", "PyFloat_Type", "PyList_Type", "PyLong_Type", "PyTuple_Type",
    "_Py_NoneStruct", "_Py_TrueStruct",
)  # fmt: skip
_SIGNALS = ("PyOS_getsig", "PyOS_setsig", "PyThread_get_thread_ident")
_C_FUNCTIONS = ("aligned_alloc", "free", "memcmp", *C_FUNCTIONS)


def signal_symbols() -> dict[str, int]:
    """Return the addresses that the handling of Ctrl-C binds."""
    return {name: _function(ctypes.pythonapi, name) for name in _SIGNALS}


def entry_symbols() -> dict[str, int]:
    """Return the addresses that the entry binds in CPython, NumPy and C."""
    python = ctypes.pythonapi
    found = {name: _function(python, name) for name in _PYTHON_FUNCTIONS}
    found |= {name: ctypes.addressof(ctypes.c_char.in_dll(python, name)) for name in _PYTHON_DATA}
    found |= {name: _function(ctypes.CDLL(None), name) for name in _C_FUNCTIONS}
    table = _numpy_table()
    return found | {name: table[index] or 0 for name, index in _NUMPY_FUNCTIONS.items()}


def _function(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(library[name], ctypes.c_void_p).value or 0


def _numpy_table() -> ctypes.Array[ctypes.c_void_p]:
    """Return NumPy's C interface, an array of addresses in a capsule."""
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    capsule: Any = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]  # private, as for all extensions
    return (ctypes.c_void_p * 305).from_address(get_pointer(capsule, None) or 0)


def _numpy_abi() -> int:
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(_numpy_table()[0] or 0)
    return int(version())  # PyArray_GetNDArrayCVersion


class _Member(ctypes.Structure):
    """CPython's PyMemberDef."""

    _fields_ = (("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t))


_DESCRIPTOR_MEMBER = 40  # the pointer of a member descriptor to PyMemberDef


@cache
def slot_offsets() -> dict[str, int]:
    """Return the offset of each of `Array`'s slots, by name."""
    return {name: member_offset(Array, name) for name in ("_value", "_weak", "_trace", "_atom", "_type", "_owner")}


@cache
def function_offsets() -> dict[str, int]:
    """Return the offsets of a function's code and defaults, by name.

    They moved between versions of CPython, so a function is searched for them. Raises LookupError if they are not
    found.
    """

    def probe(x: object = (), *, y: object = ()) -> object:
        return x, y

    values = [getattr(probe, name) for name in FUNCTION_SLOTS]
    words = range(OB_TYPE + 8, FunctionType.__basicsize__, 8)
    found = [[at for at in words if _word(id(probe) + at) == id(value)] for value in values]
    if any(len(places) != 1 for places in found):
        raise LookupError("function")
    return {name: places[0] for name, places in zip(FUNCTION_SLOTS, found, strict=True)}


def member_offset(owner: type, name: str) -> int:
    """Return the offset of a slot in instances. Raises LookupError if the descriptor's layout is unknown."""
    member = _Member.from_address(_word(id(owner.__dict__[name]) + _DESCRIPTOR_MEMBER))
    if member.name != name.encode():
        raise LookupError(owner.__name__)
    return int(member.offset)


class MethodDef(ctypes.Structure):
    """CPython's PyMethodDef. It must outlive the functions that are made of it."""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p))  # fmt: skip


def new_function(method: MethodDef, itself: Any) -> Any:
    """Return a builtin function whose C function gets `itself` as its first argument."""
    return _method_maker()(ctypes.addressof(method), itself, None, None)


@once
def _method_maker() -> Any:
    """Return CPython's PyCMethod_New. Every prototype is a class, which only the collector frees."""
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)
    return kind(("PyCMethod_New", ctypes.pythonapi))


def _word(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


@cache
def why_not() -> str | None:
    """Return why the compiled entry cannot be used with this Python and NumPy, or None if it can."""
    if sys.implementation.name != "cpython":
        return f"Python is {sys.implementation.name}, not CPython"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "Python is built without the GIL, and lays objects out differently"
    if hasattr(sys, "gettotalrefcount") or ctypes.sizeof(ctypes.c_void_p) != 8:
        return "Python is a debug build, or has 32-bit pointers"
    if _numpy_abi() != _NUMPY_ABI:
        return f"NumPy's binary interface is {_numpy_abi():#x}, not {_NUMPY_ABI:#x}"
    failed = [name for name, holds in _layout().items() if not holds]
    return f"objects are laid out differently: {', '.join(failed)}" if failed else None


def _layout() -> dict[str, bool]:
    """Return whether each assumption on the layout of objects holds, by its name."""
    value = np.arange(6.0).reshape(2, 3)
    array = concrete(value)
    array._owner = 0  # rather than the owner of an open trace
    a, handle, items = id(value), id(array), (value, array)
    sequence, mapping, memory = [value, array], {"a": 1, "b": 2, "c": 3}, (ctypes.c_int64 * 2)()
    cell, plain = CellType(value), FunctionType(_word.__code__, {})
    try:
        slots, of_functions = slot_offsets(), function_offsets()
    except LookupError as error:
        return {str(error): False}
    owner = array._owner  # an open trace's, if this first runs within one
    stored = {"_value": value, "_weak": False, "_trace": None, "_atom": None, "_type": None, "_owner": owner}
    return {
        "object": _word(a + OB_TYPE) == id(np.ndarray) and _word(handle + OB_TYPE) == id(Array),
        "tuple": _word(id(items) + TUPLE_SIZE) == 2 and _word(id(items) + TUPLE_ITEMS + 8) == handle,
        "list": _word(id(sequence) + LIST_SIZE) == 2 and _word(_word(id(sequence) + LIST_ITEMS)) == a,
        "dict": _word(id(mapping) + DICT_USED) == 3,
        "number": all(ctypes.string_at(id(x) + NUMBER_VALUE, x.nbytes) == x.tobytes() for x in _numbers()),
        "function": _word(id(plain) + of_functions["__defaults__"]) == 0,
        "cell": _word(id(cell) + CELL_CONTENT) == a,
        "ctypes": _word(id(memory) + CDATA_POINTER) == ctypes.addressof(memory),
        "ndarray": _ndarray_layout(value),
        "Array": all(_word(handle + slots[name]) == id(x) for name, x in stored.items()),
    }


def _numbers() -> list[np.generic]:
    """Return a NumPy scalar of each dtype of arrays."""
    return [dtype.type(dtype.itemsize) for dtype in dtypes.OF_NUMPY]


def _ndarray_layout(value: np.ndarray[Any, Any]) -> bool:
    a, turned = id(value), value.T
    shape = (ctypes.c_int64 * 2).from_address(_word(a + NDARRAY_SHAPE))
    flags = ctypes.c_int.from_address(a + NDARRAY_FLAGS).value
    return (
        _word(a + NDARRAY_DATA) == value.ctypes.data
        and ctypes.c_int.from_address(a + NDARRAY_NDIM).value == 2
        and tuple(shape) == (2, 3)
        and _word(a + NDARRAY_DESCR) == id(value.dtype)
        and flags & LAID_OUT == LAID_OUT
        and bool(flags & OWNDATA) == value.flags.owndata
        and not ctypes.c_int.from_address(id(turned) + NDARRAY_FLAGS).value & C_CONTIGUOUS
    )
